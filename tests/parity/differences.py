"""The differences from Apache Kafka that are kept on purpose, each with its reason.

No scenario plays what Kafka itself stumbles over. A node of this tree answers there:

- AlterConfigs that names a resource twice, and Produce with null records: Kafka never answers;
  INVALID_REQUEST for the resource, INVALID_RECORD for the partition.
- WriteTxnMarkers that names a partition twice in one marker: Kafka never answers; the partition's outcome, once.
- Records are deleted under an open transaction: Kafka's last stable offset stays where the transaction began, below the
  log's start, so that a reader of committed data is told an end before the beginning; the log's start.
- A batch that says to be almost 2 GB long, a record length of more than five bytes: Kafka's arithmetic
  overflows into UNKNOWN_SERVER_ERROR; INVALID_RECORD.
- A JoinGroup or SyncGroup of a member that waits for the answer to another one: Kafka never answers the
  first; REBALANCE_IN_PROGRESS.
- A consumer group becomes a classic one while a member waits for a part of its target: Kafka says that it is
  assigned the whole target, which others may still have; what it has.
- Fetch by topic ids that names the zero id before another id that there is not: Kafka's answer is
  UNKNOWN_SERVER_ERROR for the whole request; UNKNOWN_TOPIC_ID for each.
- DescribeTopicPartitions of the empty name: Kafka's answer is UNKNOWN_SERVER_ERROR for every topic of
  the request; INVALID_TOPIC_EXCEPTION for that one.

Features, coordinators and resources of what is not served (share and streams groups) are not known: UpdateFeatures
of share.version and FindCoordinator of a share partition are refused.

And one answer comes at once where Kafka's does not:

- Metadata that may create a topic has it, or says why not, in the first answer: a name that collides
  with another (`a_b` beside `a.b`) is INVALID_TOPIC_EXCEPTION, where Kafka answers
  UNKNOWN_TOPIC_OR_PARTITION for as long as one asks.
"""

from __future__ import annotations

from typing import Any

# What random sequences find, by the signature of the difference: Kafka itself stumbles, or is not followed.
STUMBLES = {
    "ConsumerGroupHeartbeat .error_code:-1/69": "A consumer would take along a classic group of whose members one is"
    " joining without the protocol of the generation: Kafka does not expect it; the group stays as it is.",
    "IncrementalAlterConfigs .responses.error_code:-1/40": "Kafka stumbles over an operation that there is not, where"
    " it looks at all of a resource's; INVALID_CONFIG.",
    "AddPartitionsToTxn answered by one": "Kafka never answers a request (v4 and later) that names no transaction.",
}

# Kafka leaves these null for many errors; a text that names the object, the value and the limit
# helps whoever reads the client's log, and no client decides by it.
KINDER_TEXTS = ("error_message", "batch_index_error_message")


def without_kinder_texts(recorded: Any, answered: Any) -> Any:
    """The answer without error texts at places where the recorded answer has none."""
    if isinstance(recorded, list) and isinstance(answered, list):
        if len(recorded) != len(answered):
            return answered
        return [without_kinder_texts(*pair) for pair in zip(recorded, answered, strict=True)]
    if isinstance(recorded, dict) and isinstance(answered, dict):
        kept = {}
        for key, value in answered.items():
            if key not in KINDER_TEXTS or recorded.get(key) is not None:
                kept[key] = without_kinder_texts(recorded.get(key), value)
            elif key in recorded:
                kept[key] = None
        return kept
    return answered
