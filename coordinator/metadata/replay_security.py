"""Replay of the records about quotas, credentials, access rules and tokens. Source: Kafka's
ClientQuotasDelta, ScramDelta, AclsDelta and DelegationTokenDelta."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.metadata.image import AclEntry, DelegationTokenImage, ScramCredential
from coordinator.metadata.replay_errors import MetadataReplayError
from wire.messages.records import cluster_metadata as records
from wire.primitives import uuid_text

if TYPE_CHECKING:
    from coordinator.metadata.delta import MetadataDelta


def client_quota(delta: MetadataDelta, record: records.ClientQuotaRecord) -> None:
    """A quota of an entity has been set or removed."""
    entity = frozenset((part.entity_type, part.entity_name) for part in record.entity)
    value = None if record.remove else record.value
    delta.client_quotas.setdefault(entity, {})[record.key] = value


def user_scram_credential(delta: MetadataDelta, record: records.UserScramCredentialRecord) -> None:
    """A user's SCRAM credential for one mechanism has been set."""
    delta.scram[record.mechanism, record.name] = ScramCredential(
        record.salt, record.stored_key, record.server_key, record.iterations
    )


def remove_user_scram_credential(delta: MetadataDelta, record: records.RemoveUserScramCredentialRecord) -> None:
    """A user's SCRAM credential for one mechanism has been removed."""
    delta.scram[record.mechanism, record.name] = None


def access_control_entry(delta: MetadataDelta, record: records.AccessControlEntryRecord) -> None:
    """An access rule has been added under an id."""
    delta.acls[record.id] = AclEntry(
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )


def remove_access_control_entry(delta: MetadataDelta, record: records.RemoveAccessControlEntryRecord) -> None:
    """The access rule with this id has been removed."""
    known = delta.acls[record.id] if record.id in delta.acls else delta.base.acls.get(record.id)
    if known is None:
        raise MetadataReplayError(f"RemoveAccessControlEntryRecord names id {uuid_text(record.id)}, which is unknown")
    delta.acls[record.id] = None


def delegation_token(delta: MetadataDelta, record: records.DelegationTokenRecord) -> None:
    """A delegation token has been made or renewed."""
    delta.delegation_tokens[record.token_id] = DelegationTokenImage(
        token_id=record.token_id,
        owner=record.owner,
        requester=record.requester,
        renewers=tuple(record.renewers),
        issue_timestamp_ms=record.issue_timestamp,
        max_timestamp_ms=record.max_timestamp,
        expiration_timestamp_ms=record.expiration_timestamp,
    )


def remove_delegation_token(delta: MetadataDelta, record: records.RemoveDelegationTokenRecord) -> None:
    """A delegation token has expired."""
    delta.delegation_tokens[record.token_id] = None
