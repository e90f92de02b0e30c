"""The metadata controller: what becomes of a request that changes the cluster, as records."""
