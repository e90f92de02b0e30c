"""What each setting of our own is for."""

# ruff: noqa: E501

SENTENCES = """\
odradek.cluster.id: The id a new cluster gets; a directory that already belongs to another cluster is refused.
odradek.control.enable: Whether the control endpoint listens, which resets the node and says whether it is ready.
odradek.control.port: The port of the control endpoint on loopback; 0 takes a free one, which the ready line tells.
odradek.flush.on.acknowledge: Whether every batch is on disk before it is acknowledged, unless flush.messages of its topic says otherwise.
odradek.kafka.release: The release of Apache Kafka whose API versions the node offers.
odradek.memory: Whether logs lie in memory alone and are gone when the node stops.
odradek.memory.max.bytes: How many bytes of logs may lie in memory; past it a produce is refused with KAFKA_STORAGE_ERROR.
"""
