"""The first records of a new cluster.

A format writes the feature levels into snapshot 0-0; the first leader writes them into the log, in
one transaction where the metadata.version has transactions. Source: Kafka's Formatter,
BootstrapMetadata and ActivationRecordsGenerator.
"""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.controller.view import ControllerView, Outcome
from coordinator.machine import Event, MetadataRecord
from coordinator.metadata.features import (
    ELR_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    SERVED_FEATURES,
    supports_transactions,
)
from coordinator.metadata.image import RESOURCE_BROKER
from wire.messages.records.cluster_metadata import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)

MIN_INSYNC_REPLICAS = "min.insync.replicas"


@dataclass(frozen=True, slots=True)
class Activate:
    """This controller has become active; `bootstrap` are the records of the format's snapshot."""

    bootstrap: tuple[MetadataRecord, ...]


def bootstrap_records() -> list[MetadataRecord]:
    """What a format writes: each served feature that starts above level 0. kraft.version is not
    among them, it belongs to the quorum."""
    return [
        MetadataRecord(FeatureLevelRecord(name=feature.name, feature_level=feature.initial_level))
        for feature in SERVED_FEATURES
        if feature.initial_level > 0 and feature.name != KRAFT_VERSION
    ]


def activate(request: Activate, view: ControllerView) -> Outcome:
    """Fill the log of a new cluster; an existing one needs nothing."""
    if view.image.offset >= 0 and view.image.features.levels:
        return Outcome(None)
    records = list(request.bootstrap)
    levels = {
        record.message.name: record.message.feature_level
        for record in records
        if isinstance(record.message, FeatureLevelRecord)
    }
    if levels.get(ELR_VERSION, 0) >= 1:
        # With ELR the controller decides by the cluster-wide value, so it has to be in the log.
        records.append(
            MetadataRecord(
                ConfigRecord(
                    resource_type=RESOURCE_BROKER,
                    resource_name="",
                    name=MIN_INSYNC_REPLICAS,
                    value=str(view.settings.min_insync_replicas),
                )
            )
        )
    if supports_transactions(levels.get(METADATA_VERSION, 0)):
        begin = MetadataRecord(BeginTransactionRecord(name="Bootstrap records"))
        records = [begin, *records, MetadataRecord(EndTransactionRecord())]
    text = f"A new cluster starts: metadata.version is {levels.get(METADATA_VERSION, 0)}."
    return Outcome(None, records, events=(Event(text),))
