"""Every request type has an error answer that its version can carry, or none for a stated reason."""

from __future__ import annotations

from typing import Any

import pytest

from broker.handlers.error_responses import ITEM_ERRORS, Items, error_response
from wire.api import API_SPECS
from wire.errors import ErrorCode, KafkaError
from wire.primitives import ZERO_UUID

ERROR = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "why")


def filled(items: Items | None, request_class: Any, key: int) -> dict[str, Any]:
    """One item in the list that is mirrored, all the way down."""
    if items is None:
        return {}
    module = __import__(f"wire.messages.{API_SPECS[key].module}", fromlist=["x"])
    if "" in items.copied:
        return {items.request_list: [1] if items.copied[""] == "partition_index" else ["name"]}
    fields = set(items.copied)
    for candidate in vars(module).values():
        slots = set(getattr(candidate, "__slots__", ()))
        needed = fields | ({items.children.request_list} if items.children else set())
        is_response = "Response" in candidate.__name__ if isinstance(candidate, type) else True
        if isinstance(candidate, type) and needed and needed <= slots and not is_response and "error_code" not in slots:
            return {items.request_list: [candidate(**filled(items.children, candidate, key))]}
    return {items.request_list: []}


@pytest.mark.parametrize("key", sorted(API_SPECS))
def test_every_version_of_every_request_has_an_error_answer(key: int) -> None:
    spec = API_SPECS[key]
    request_class, response_class = spec.load()
    for version in range(spec.min_version, spec.max_version + 1):
        request = request_class(**filled(ITEM_ERRORS.get(key), request_class, key))
        if spec.name == "Produce":
            request.acks = -1
        response = error_response(request, version, ERROR)
        assert isinstance(response, response_class)
        decoded = response_class.decode(response.encode(version), version)
        assert decoded is not None


@pytest.mark.parametrize("key", sorted(set(API_SPECS) - set(ITEM_ERRORS) - {1, 9, 10, 20, 24, 34, 43, 49, 51}))
def test_every_other_response_has_its_error_code_at_the_top(key: int) -> None:
    spec = API_SPECS[key]
    request_class, response_class = spec.load()
    response = error_response(request_class(), spec.max_version, ERROR)
    assert response_class.decode(response.encode(spec.max_version), spec.max_version).error_code == 56


@pytest.mark.parametrize("key", sorted(ITEM_ERRORS))
def test_every_mirrored_item_carries_the_error(key: int) -> None:
    spec = API_SPECS[key]
    request_class, _ = spec.load()
    items: Items | None = ITEM_ERRORS[key]
    request = request_class(**filled(items, request_class, key))
    if spec.name == "Produce":
        request.acks = 1
    level: Any = error_response(request, spec.max_version, ERROR)
    while items is not None:
        mirrored = getattr(level, items.response_list)
        if items.copied:
            assert len(mirrored) == 1
            (level,) = mirrored
        if items.children is None and items.copied:
            assert level.error_code == 56
        items = items.children


def test_an_unexpected_error_tells_nothing_internal() -> None:
    from wire.messages.describe_cluster import DescribeClusterRequest

    response = error_response(DescribeClusterRequest(), 0, ValueError("secret"))
    assert response is not None
    assert response.error_code == -1
    assert "secret" not in response.error_message


def test_fetch_before_13_repeats_its_partitions_and_later_not() -> None:
    from wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

    topics = [FetchTopic(topic="t", topic_id=ZERO_UUID, partitions=[FetchPartition(partition=3)])]
    early = error_response(FetchRequest(topics=topics, session_id=9), 12, ERROR)
    late = error_response(FetchRequest(topics=topics, session_id=9), 13, ERROR)
    assert early is not None
    assert late is not None
    assert [(topic.topic, topic.partitions[0].partition_index) for topic in early.responses] == [("t", 3)]
    assert early.responses[0].partitions[0].error_code == 56
    assert early.responses[0].partitions[0].records == b"", "an empty record set is never null (W10)"
    assert (late.responses, late.error_code, late.session_id) == ([], 56, 9)
