"""Partitions as their leader and followers see them: appends, reads, in-sync replicas, high watermark, waits."""
