"""The declared rules by which two brokers' answers are made comparable.

Identities (topic ids, producer ids, member ids, session ids) become numbered names in order of
first sight, so that *which* id an answer repeats is still compared. Times, hosts and positions in
the metadata log become their kind. Texts for people become whether there is one.
"""

from __future__ import annotations

import re
from typing import Any

from wire.message import Struct
from wire.primitives import ZERO_UUID
from wire.records import Record, RecordBatch, batches

# Fields whose values name something: the n-th different value of a kind becomes "<kind n>".
IDENTITIES = {
    "topic_id": "topic-id",
    "producer_id": "producer-id",
    "v3_and_below_producer_id": "producer-id",
    "producer_id_filters": "producer-id",
    "session_id": "session-id",
    "cluster_id": "cluster-id",
    "leader_id": "node",
    "node_id": "node",
    "controller_id": "node",
    "broker_id": "node",
}
NODE_LISTS = ("replica_nodes", "isr_nodes", "offline_replicas")
KEPT = {-1, 0, "", ZERO_UUID}

# Fields that are never equal between two runs; only whether they are set is compared.
TIMES = {"log_append_time_ms", "last_timestamp", "commit_timestamp", "transaction_start_time_ms"}
GIVEN_TIMES_MS = range(1_760_000_000_000, 1 << 44)  # a "timestamp" that the broker's clock gave, not the scenario
PLACES = {"host", "port", "finalized_features_epoch", "log_dir", "total_bytes", "usable_bytes"}
PLACES |= {"error_message", "batch_index_error_message", "documentation", "client_host"}
PLACES |= {"topic_config_error_message", "max_version_level", "config_data"}

# Lists that Kafka fills from hash maps; compared in the order of the elements' names.
UNORDERED = {"topics", "responses", "configs", "results", "groups", "supported_features"}
UNORDERED |= {"finalized_features", "members", "synonyms", "partitions"}
UNORDERED |= {"partition_responses", "results_by_partition"}
NAMES = ("name", "topic", "group_id", "resource_name", "member_id")

_DRAWN = re.compile(r"^[A-Za-z0-9_-]{22}$")
"""A member id that a broker drew for a member of a consumer group"""
_MEMBER = re.compile(r"^(.*)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


def _name(item: Any) -> tuple[str, int]:
    if isinstance(item, int):
        return "", item
    text = next((str(getattr(item, name)) for name in NAMES if getattr(item, name, None)), "")
    return text, getattr(item, "partition_index", getattr(item, "index", 0))


class Normaliser:
    """Turns messages into plain data; remembers which identities it has seen."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._seen: dict[str, dict[Any, int]] = {}

    def names(self) -> dict[str, dict[Any, int]]:
        """The identities seen so far, to `restore` later."""
        return {kind: dict(seen) for kind, seen in self._seen.items()}

    def restore(self, names: dict[str, dict[Any, int]]) -> None:
        """Forget the identities seen since `names` was taken."""
        self._seen = names

    def message(self, struct: Struct, *, answer: bool) -> dict[str, Any]:
        """The fields of a message or struct that are not at their constructor's default."""
        default = type(struct)()
        return {
            name: self._field(name, value, answer=answer)
            for name in struct.__slots__
            if name != "unknown_tagged_fields" and (value := getattr(struct, name)) != getattr(default, name)
        }

    def _field(self, name: str, value: Any, *, answer: bool) -> Any:
        if isinstance(value, list):
            if answer and name in UNORDERED:
                value = sorted(value, key=_name)
            kind = "replica" if name in NODE_LISTS else name
            return [self._field(kind, item, answer=answer) for item in value]
        if isinstance(value, Struct):
            return self.message(value, answer=answer)
        if value is None or (isinstance(value, (int, str, bytes)) and value in KEPT):
            return "<zero id>" if value == ZERO_UUID else value
        if name == "replica":
            return self._identity("node", value)
        if name in IDENTITIES:
            return self._identity(IDENTITIES[name], value)
        if answer and (name in TIMES or name in PLACES or (name == "timestamp" and value in GIVEN_TIMES_MS)):
            return f"<{name}>"
        if isinstance(value, str):
            if name == "member_id" and _DRAWN.match(value):
                return self._identity("member-id", value)
            return self._text(value)
        if isinstance(value, bytes):
            if name == "records":
                return [self._batch(b) for b in batches(value)] if answer else "<records>"
            if len(value) == 16:
                return self._identity("topic-id", value)
            return value.replace(self._prefix.encode(), b"<scenario>").hex()
        return int(value) if isinstance(value, int) and not isinstance(value, bool) else value

    def _batch(self, batch: RecordBatch) -> dict[str, Any]:
        stamped = batch.is_control or batch.is_log_append_time
        return {
            "base_offset": batch.base_offset,
            "last_offset_delta": batch.last_offset_delta,
            "leader_epoch": batch.partition_leader_epoch,
            "attributes": batch.attributes,
            "max_timestamp": "<time>" if stamped else batch.max_timestamp,
            "producer_id": self._field("producer_id", batch.producer_id, answer=True),
            "producer_epoch": batch.producer_epoch,
            "base_sequence": batch.base_sequence,
            "valid_crc": batch.has_valid_crc(),
            "records": [self._record(record, stamped=stamped) for record in batch.records()],
        }

    def _record(self, record: Record, *, stamped: bool) -> list[Any]:
        texts = [None if part is None else part.hex() for part in (record.key, record.value)]
        headers = [[key, None if value is None else value.hex()] for key, value in record.headers]
        return [record.offset, "<time>" if stamped else record.timestamp, *texts, headers]

    def _text(self, text: str) -> str:
        member = _MEMBER.match(text)
        if member:
            return f"{self._text(member[1])}-{self._identity('member-id', text)}"
        return text.replace(self._prefix, "<scenario>")

    def _identity(self, kind: str, value: Any) -> str:
        seen = self._seen.setdefault(kind, {})
        return f"<{kind} {seen.setdefault(value, len(seen) + 1)}>"
