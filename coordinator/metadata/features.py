"""The features this code serves, at which levels, and what a metadata.version changes in records.

The one table of features: what is here is what a node supports, what a new cluster finalizes, and
what a stored cluster may have finalized if we are to open it. A level is in it only when everything
that clients may conclude from it is served. Source: facts/features.tsv of Apache Kafka 4.4
(MetadataVersion, Feature, KRaftVersion).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
GROUP_VERSION = "group.version"
TRANSACTION_VERSION = "transaction.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"
ELR_VERSION = "eligible.leader.replicas.version"

MINIMUM_METADATA_VERSION = 7


class ServedFeature(NamedTuple):
    """The levels of a feature that are served, and the one a new cluster starts with."""

    name: str
    min_level: int
    max_level: int
    initial_level: int


SERVED_FEATURES: tuple[ServedFeature, ...] = (
    ServedFeature(METADATA_VERSION, MINIMUM_METADATA_VERSION, 33, 33),
    ServedFeature(KRAFT_VERSION, 0, 1, 0),
    ServedFeature(ELR_VERSION, 0, 1, 1),
    ServedFeature(GROUP_VERSION, 0, 1, 1),
    ServedFeature(TRANSACTION_VERSION, 0, 2, 2),
    ServedFeature(SHARE_VERSION, 0, 0, 0),
    ServedFeature(STREAMS_VERSION, 0, 0, 0),
)
"""In the order in which a format writes them: metadata.version first, the others by use."""

_BY_NAME = {feature.name: feature for feature in SERVED_FEATURES}

METADATA_VERSION_NAMES = {
    7: "3.3-IV3", 8: "3.4-IV0", 9: "3.5-IV0", 10: "3.5-IV1", 11: "3.5-IV2", 12: "3.6-IV0",
    13: "3.6-IV1", 14: "3.6-IV2", 15: "3.7-IV0", 16: "3.7-IV1", 17: "3.7-IV2", 18: "3.7-IV3",
    19: "3.7-IV4", 20: "3.8-IV0", 21: "3.9-IV0", 22: "4.0-IV0", 23: "4.0-IV1", 24: "4.0-IV2",
    25: "4.0-IV3", 26: "4.1-IV0", 27: "4.1-IV1", 28: "4.2-IV0", 29: "4.2-IV1", 30: "4.3-IV0",
    31: "4.4-IV0", 32: "4.4-IV1", 33: "4.4-IV2",
}  # fmt: skip


def served_feature(name: str) -> ServedFeature | None:
    """The served levels of a feature, or None if the name is unknown."""
    return _BY_NAME.get(name)


def refusal(name: str, level: int) -> str | None:
    """Why a cluster that has finalized `name` at `level` cannot be opened; None if it can."""
    served = _BY_NAME.get(name)
    if served is None:
        if level == 0:
            return None
        return f"the feature {name} is finalized at level {level}, but is not known here"
    if served.min_level <= level <= served.max_level:
        return None
    return (
        f"the feature {name} is finalized at level {level}, but levels "
        f"{served.min_level} to {served.max_level} are served here"
    )


def highest_level(name: str) -> int:
    """The highest level of a feature at which a cluster can be opened; 0, which is none, for one that is not known."""
    served = _BY_NAME.get(name)
    return 0 if served is None else served.max_level


def register_broker_version(metadata_version: int) -> int:
    """The version at which RegisterBrokerRecord is written."""
    if metadata_version >= 30:
        return 4
    if metadata_version >= 17:
        return 3
    return 2 if metadata_version >= 8 else 1


def broker_registration_change_version(metadata_version: int) -> int:
    """The version at which BrokerRegistrationChangeRecord is written when it needs the newest."""
    if metadata_version >= 30:
        return 3
    return 2 if metadata_version >= 17 else 1


def partition_version(metadata_version: int) -> int:
    """The version at which PartitionRecord and PartitionChangeRecord are written."""
    if metadata_version >= 23:
        return 2
    return 1 if metadata_version >= 17 else 0


def supports_transactions(metadata_version: int) -> bool:
    """Whether metadata transactions (BeginTransactionRecord) may be written: from 3.6-IV1."""
    return metadata_version >= 13


def supports_controller_registration(metadata_version: int) -> bool:
    """Whether RegisterControllerRecord may be written: from 3.7-IV0."""
    return metadata_version >= 15


def supports_directory_assignment(metadata_version: int) -> bool:
    """Whether partitions name the log directories of their replicas: from 3.7-IV2."""
    return metadata_version >= 17


def supports_elr(metadata_version: int) -> bool:
    """Whether partitions may have eligible leader replicas: from 4.0-IV1."""
    return metadata_version >= 23


_METADATA_CHANGES = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33})


def changes_metadata(metadata_version: int) -> bool:
    """Whether this level of metadata.version brought records that those below cannot read
    (MetadataVersion.didMetadataChange)."""
    return metadata_version in _METADATA_CHANGES


def missing_dependency(name: str, level: int, levels: Mapping[str, int]) -> str | None:
    """What a feature at this level needs and these levels do not have, as a sentence; None if nothing."""
    metadata_version = levels.get(METADATA_VERSION, MINIMUM_METADATA_VERSION)
    if name == ELR_VERSION and level >= 1 and not supports_elr(metadata_version):
        return f"It needs {METADATA_VERSION} 23 or above, which is {metadata_version}."
    if name == METADATA_VERSION and levels.get(ELR_VERSION, 0) >= 1 and not supports_elr(level):
        return f"{ELR_VERSION} is finalized at level {levels[ELR_VERSION]}, which needs {METADATA_VERSION} 23 or above."
    return None
