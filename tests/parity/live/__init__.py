"""Random sequences of requests, played to Apache Kafka and to a node of this tree side by side."""
