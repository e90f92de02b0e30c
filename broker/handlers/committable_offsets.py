"""What OffsetCommit and TxnOffsetCommit have in common: which partitions may be committed, and the answer.

Not a handler. Both requests name topics, by id from some version on, with partitions; what cannot be
committed is answered at once, and stands before the rest in the answer, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from broker.handlers.group_context import require_topic
from broker.security.authorizer import Operation
from wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext


class OffsetCommitAnswer:
    """The response under construction: one entry per topic, errors first."""

    def __init__(self, response: Any, topic_class: type[Any], partition_class: type[Any], *, by_id: bool) -> None:
        self.response = response
        self._topic_class = topic_class
        self._partition_class = partition_class
        self._by_id = by_id
        self._topics: dict[str | bytes, Any] = {}

    def add(self, topic: Any, partition_index: int, code: ErrorCode) -> None:
        """One partition's outcome; `topic` is that of the request."""
        part = self._partition_class(partition_index=partition_index, error_code=code)
        self._entry(topic).partitions.append(part)

    def add_all(self, topic: Any, code: ErrorCode) -> None:
        """The same outcome for every partition of a topic, which is named even if there are none."""
        self._entry(topic)
        for partition in topic.partitions:
            self.add(topic, partition.partition_index, code)

    def add_refused(self, topics: Iterable[Any], code: ErrorCode) -> None:
        """What the coordinator refused as a whole: an outcome for every partition that it was asked to commit."""
        refused = []
        for topic in topics:
            parts = [self._partition_class(partition_index=each.partition_index) for each in topic.partitions]
            for part in parts:
                part.error_code = code
            refused.append(self._topic_class(name=topic.name, topic_id=topic.topic_id, partitions=parts))
        self.add_committed(refused)

    def add_committed(self, committed: list[Any]) -> None:
        """What the coordinator answered. A topic named twice is there twice unless anything stands before it."""
        if not self.response.topics:
            self.response.topics = committed
            return
        for topic in committed:
            self._entry(topic).partitions.extend(topic.partitions)

    def _entry(self, topic: Any) -> Any:
        key = topic.topic_id if self._by_id else topic.name
        answered = self._topics.get(key)
        if answered is None:
            answered = self._topics[key] = self._topic_class(name=topic.name, topic_id=topic.topic_id)
            self.response.topics.append(answered)
        return answered


def committable_topics(
    topics: Iterable[Any], answer: OffsetCommitAnswer, context: RequestContext, *, by_id: bool
) -> list[Any]:
    """The topics of a request with the partitions that may be committed, names and ids filled in; the
    others are answered: UNKNOWN_TOPIC_ID, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION."""
    committable = []
    for topic in topics:
        partitions = _committable_partitions(topic, answer, context, by_id=by_id)
        if partitions:
            topic.partitions = partitions
            committable.append(topic)
    return committable


def _committable_partitions(
    topic: Any, answer: OffsetCommitAnswer, context: RequestContext, *, by_id: bool
) -> list[Any]:
    topics = context.node.metadata.image.topics
    found = topics.by_id(topic.topic_id) if by_id else topics.by_name(topic.name)
    try:
        if by_id and found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        name = topic.name if found is None else found.name
        require_topic(Operation.READ, name, context)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    except KafkaError as error:
        answer.add_all(topic, error.code)
        return []
    # The id is stored also where the request gives the name: it tells a later topic of that name apart.
    topic.name, topic.topic_id = name, found.topic_id
    committable = []
    for partition in topic.partitions:
        if partition.partition_index in found.partitions:
            committable.append(partition)
        else:
            answer.add(topic, partition.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return committable
