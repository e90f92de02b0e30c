"""UpdateFeatures: what is refused for the whole request, and what is written (I25)."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.metadata.image import PartitionImage
from tests.coordinator.controller.controller_world import ControllerWorld
from wire.errors import ErrorCode, KafkaError
from wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

METADATA, ELR = "metadata.version", "eligible.leader.replicas.version"
UPGRADE, SAFE, UNSAFE = 1, 2, 3


def update(world: ControllerWorld, *updates: tuple[str, int, int], validate_only: bool = False) -> Any:
    keys = [FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind) for name, level, kind in updates]
    return world.submit(UpdateFeaturesRequest(feature_updates=keys, validate_only=validate_only))


REFUSED = [
    ((METADATA, 99, UPGRADE), "7-33"),
    ((METADATA, 0, UNSAFE), "7-33"),
    ((METADATA, 33, 9), "upgrade type 9"),
    ((METADATA, 30, UPGRADE), "Can't downgrade"),
    ((METADATA, 30, SAFE), "might delete metadata"),
    ((METADATA, 30, UNSAFE), "Unsafe metadata downgrade"),
    ((ELR, -1, SAFE), "less than 0"),
    ((ELR, 2, UPGRADE), "0-1"),
    ((ELR, 0, UPGRADE), "Can't downgrade"),
    (("of.tomorrow", 1, UPGRADE), "does not support"),
    (("kraft.version", 1, UPGRADE), "quorum"),
]


@pytest.mark.parametrize(("asked", "words"), REFUSED)
def test_what_is_refused(asked: tuple[str, int, int], words: str) -> None:
    world = ControllerWorld()
    before = list(world.records)
    with pytest.raises(KafkaError) as raised:
        update(world, asked)
    assert raised.value.code is ErrorCode.INVALID_UPDATE_VERSION
    assert words in str(raised.value)
    assert asked[0] in str(raised.value)
    assert world.records == before


def test_one_refused_feature_refuses_the_others() -> None:
    world = ControllerWorld()
    with pytest.raises(KafkaError):
        update(world, (ELR, 0, SAFE), ("of.tomorrow", 1, UPGRADE))
    assert world.image.features.level(ELR) == 1


def test_a_dependency_counts_as_of_after_the_update() -> None:
    world = ControllerWorld()
    update(world, (ELR, 0, SAFE))
    with pytest.raises(KafkaError, match=r"metadata\.version"):
        update(world, (METADATA, 22, SAFE), (ELR, 1, UPGRADE))


def test_levels_that_hold_already_write_nothing() -> None:
    world = ControllerWorld()
    before = list(world.records)
    response = update(world, (METADATA, 33, UPGRADE), (ELR, 1, SAFE))
    assert [result.error_code for result in response.results] == [0, 0]
    assert world.records == before


def test_validate_only_writes_nothing() -> None:
    world = ControllerWorld()
    before = list(world.records)
    assert update(world, (ELR, 0, SAFE), validate_only=True).results[0].error_code == 0
    assert world.records == before


def test_elr_that_is_switched_off_is_forgotten() -> None:
    world = ControllerWorld(brokers=2)
    world.submit(CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)]))
    world.heartbeat(world.partition("t").leader, want_fence=True)
    partition: PartitionImage = world.partition("t")
    assert partition.elr
    update(world, (ELR, 0, SAFE))
    assert world.image.features.level(ELR) == 0
    assert (world.partition("t").elr, world.partition("t").last_known_elr) == ((), ())


def test_version_0_of_the_request_allows_a_downgrade_by_a_flag() -> None:
    world = ControllerWorld()
    key = FeatureUpdateKey(feature=ELR, max_version_level=0, allow_downgrade=True)
    world.submit(UpdateFeaturesRequest(feature_updates=[key]))
    assert world.image.features.level(ELR) == 0
