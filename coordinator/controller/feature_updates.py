"""UpdateFeatures: finalize features at other levels, all of the request's or none (I25).

Source: Kafka's FeatureControlManager.updateFeatures; KIP-584, KIP-778, KIP-1022.
"""

from __future__ import annotations

from typing import NoReturn

from coordinator.controller.bootstrap import MIN_INSYNC_REPLICAS
from coordinator.controller.view import ControllerView, Outcome
from coordinator.machine import Event, MetadataRecord
from coordinator.metadata.features import (
    ELR_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    changes_metadata,
    missing_dependency,
    served_feature,
)
from coordinator.metadata.image import RESOURCE_BROKER, FeatureRange
from wire.errors import ErrorCode, KafkaError
from wire.messages.records.cluster_metadata import ClearElrRecord, ConfigRecord, FeatureLevelRecord
from wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def update_features(request: UpdateFeaturesRequest, view: ControllerView) -> Outcome:
    """Finalize as asked. Raises KafkaError INVALID_UPDATE_VERSION for the whole request when one feature
    cannot be."""
    levels = dict(view.image.features.levels)
    for update in request.feature_updates:
        _check(update, levels, view)
        levels[update.feature] = update.max_version_level
    for update in request.feature_updates:
        problem = missing_dependency(update.feature, update.max_version_level, levels)
        if problem is not None:
            _refuse(update, problem)
    response = UpdateFeaturesResponse(
        error_message=None,
        results=[
            # Kafka puts the name of the code where other answers have nothing.
            UpdatableFeatureResult(feature=update.feature, error_code=ErrorCode.NONE, error_message="NONE")
            for update in request.feature_updates
        ],
    )
    if request.validate_only:
        return Outcome(response)
    before = view.image.features.levels
    changed = {name: level for name, level in levels.items() if level != before.get(name, 0)}
    records = [MetadataRecord(FeatureLevelRecord(name=name, feature_level=level)) for name, level in changed.items()]
    if ELR_VERSION in changed:
        records += _elr_records(changed[ELR_VERSION], view)
    events = [Event(f"The feature {name} is finalized at level {level}.") for name, level in changed.items()]
    return Outcome(response, records, events)


def _elr_records(level: int, view: ControllerView) -> list[MetadataRecord]:
    """With ELR the cluster-wide min.insync.replicas has to be in the log; without it no ELR may stay."""
    if level == 0:
        return [MetadataRecord(ClearElrRecord(topic_name=""))]
    if MIN_INSYNC_REPLICAS in view.image.configs.of(RESOURCE_BROKER, ""):
        return []
    return [
        MetadataRecord(
            ConfigRecord(
                resource_type=RESOURCE_BROKER,
                resource_name="",
                name=MIN_INSYNC_REPLICAS,
                value=str(view.settings.min_insync_replicas),
            )
        )
    ]


def _refuse(update: FeatureUpdateKey, reason: str) -> NoReturn:
    raise KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION,
        "The update failed for all features since the following feature had an error: Invalid update version "
        f"{update.max_version_level} for feature {update.feature}. {reason}",
    )


def _check(update: FeatureUpdateKey, levels: dict[str, int], view: ControllerView) -> None:
    """One feature by itself, in Kafka's order. Version 0 of the request says allow_downgrade instead of a type."""
    upgrade_type = SAFE_DOWNGRADE if update.allow_downgrade else update.upgrade_type
    level, name = update.max_version_level, update.feature
    if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        _refuse(update, f"The controller does not support the given upgrade type {upgrade_type}.")
    if level < 0:
        _refuse(update, "A feature version cannot be less than 0.")
    served = served_feature(name)
    if served is None:
        _refuse(update, "The local controller does not support this feature.")
    if not served.min_level <= level <= served.max_level:
        _refuse(update, f"The local controller only supports versions {served.min_level}-{served.max_level}.")
    for broker in view.image.brokers.values():
        supported = dict(broker.features).get(name, FeatureRange(0, 0))
        if level and not supported.min_level <= level <= supported.max_level:
            _refuse(
                update,
                f"Broker {broker.broker_id} only supports versions {supported.min_level}-{supported.max_level}.",
            )
    current = levels.get(name, 0)
    if level < current and upgrade_type == UPGRADE:
        _refuse(
            update,
            f"Can't downgrade the version of this feature from {current} without setting the upgrade type to "
            "either safe or unsafe downgrade.",
        )
    if level > current and upgrade_type != UPGRADE:
        _refuse(update, f"Can't downgrade to a newer version: it is {current} now.")
    if name == METADATA_VERSION:
        _check_metadata_version(update, current, upgrade_type)
    if name == KRAFT_VERSION and level != current:
        _refuse(update, f"The version of the quorum is that of its format, {current}, and stays.")


def _check_metadata_version(update: FeatureUpdateKey, current: int, upgrade_type: int) -> None:
    level = update.max_version_level
    if level >= current or not any(changes_metadata(between) for between in range(level + 1, current + 1)):
        return
    reason = (
        "Refusing to perform the requested downgrade because it might delete metadata information."
        if upgrade_type == SAFE_DOWNGRADE
        else "Unsafe metadata downgrade is not supported in this version."
    )
    _refuse(update, f"Unsupported metadata.version downgrade from {current} to {level}. {reason}")
