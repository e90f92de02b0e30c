"""An image as the records that make it: the content of a metadata snapshot.

Replaying them on an empty image gives the same image again. Source: Kafka's MetadataImage.write
and the `toRecord` methods of its parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from coordinator.machine import MetadataRecord
from coordinator.metadata import features
from coordinator.metadata.image import BrokerImage, ControllerImage, MetadataImage
from coordinator.metadata.replay_topics import partition_record
from wire.messages.records import cluster_metadata as records


def snapshot_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """The records of a snapshot of this image, at the versions of its metadata.version. The
    features come first: they say how the rest is to be read."""
    levels = image.features.levels
    for name in sorted(levels, key=lambda name: (name != features.METADATA_VERSION, name)):
        yield MetadataRecord(records.FeatureLevelRecord(name=name, feature_level=levels[name]))
    metadata_version = image.features.metadata_version
    for broker_id in sorted(image.brokers):
        yield broker_record(image.brokers[broker_id], metadata_version)
    if features.supports_controller_registration(metadata_version):
        for controller_id in sorted(image.controllers):
            yield controller_record(image.controllers[controller_id])
    yield from _topics(image, metadata_version)
    yield from _configs(image)
    yield from _quotas(image)
    if image.next_producer_id > 0:
        yield MetadataRecord(
            records.ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
        )
    yield from _security(image)


def _end_points(kind: Any, endpoints: Any) -> list[Any]:
    return [
        kind(
            name=endpoint.listener_name,
            host=endpoint.host,
            port=endpoint.port,
            security_protocol=endpoint.security_protocol,
        )
        for endpoint in endpoints
    ]


def _features(kind: Any, ranges: Any) -> list[Any]:
    return [
        kind(
            name=name,
            min_supported_version=levels.min_level,
            max_supported_version=levels.max_level,
        )
        for name, levels in ranges
    ]


def broker_record(broker: BrokerImage, metadata_version: int) -> MetadataRecord:
    """The record that registers a broker as it is."""
    version = features.register_broker_version(metadata_version)
    cordoned = broker.cordoned_log_dirs
    record = records.RegisterBrokerRecord(
        broker_id=broker.broker_id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.broker_epoch,
        end_points=_end_points(records.BrokerEndpoint, broker.endpoints),
        features=_features(records.BrokerFeature, broker.features),
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.log_dirs) if version >= 3 else [],
        cordoned_log_dirs=None if cordoned is None or version < 4 else list(cordoned),
    )
    return MetadataRecord(record, version)


def controller_record(controller: ControllerImage) -> MetadataRecord:
    """The record that registers a controller as it is."""
    return MetadataRecord(
        records.RegisterControllerRecord(
            controller_id=controller.controller_id,
            incarnation_id=controller.incarnation_id,
            zk_migration_ready=controller.zk_migration_ready,
            end_points=_end_points(records.ControllerEndpoint, controller.endpoints),
            features=_features(records.ControllerFeature, controller.features),
        )
    )


def _topics(image: MetadataImage, metadata_version: int) -> Iterator[MetadataRecord]:
    version = features.partition_version(metadata_version)
    for topic in image.topics:
        yield MetadataRecord(records.TopicRecord(name=topic.name, topic_id=topic.topic_id))
        for index, partition in topic.in_order():
            yield MetadataRecord(partition_record(topic.topic_id, index, partition, version), version)


def _configs(image: MetadataImage) -> Iterator[MetadataRecord]:
    for resource_type, resource_name in sorted(image.configs.resources):
        settings = image.configs.resources[resource_type, resource_name]
        for name in sorted(settings):
            yield MetadataRecord(
                records.ConfigRecord(
                    resource_type=resource_type,
                    resource_name=resource_name,
                    name=name,
                    value=settings[name],
                )
            )


def _quotas(image: MetadataImage) -> Iterator[MetadataRecord]:
    for entity, quotas in image.client_quotas.items():
        for key in sorted(quotas):
            yield MetadataRecord(
                records.ClientQuotaRecord(
                    entity=[
                        records.EntityData(entity_type=kind, entity_name=name)
                        for kind, name in sorted(entity, key=lambda part: part[0])
                    ],
                    key=key,
                    value=quotas[key],
                    remove=False,
                )
            )


def _security(image: MetadataImage) -> Iterator[MetadataRecord]:
    for acl_id in sorted(image.acls):
        yield MetadataRecord(records.AccessControlEntryRecord(id=acl_id, **image.acls[acl_id]._asdict()))
    for mechanism, user in sorted(image.scram):
        yield MetadataRecord(
            records.UserScramCredentialRecord(name=user, mechanism=mechanism, **image.scram[mechanism, user]._asdict())
        )
    for token_id in sorted(image.delegation_tokens):
        token = image.delegation_tokens[token_id]
        yield MetadataRecord(
            records.DelegationTokenRecord(
                owner=token.owner,
                requester=token.requester,
                renewers=list(token.renewers),
                issue_timestamp=token.issue_timestamp_ms,
                max_timestamp=token.max_timestamp_ms,
                expiration_timestamp=token.expiration_timestamp_ms,
                token_id=token_id,
            )
        )
