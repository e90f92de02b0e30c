"""New partitions from lists of replicas, and what makes a list invalid."""

from __future__ import annotations

from coordinator.controller.partition_rules import default_directory
from coordinator.controller.view import ControllerView
from coordinator.metadata.image import PartitionImage
from wire.errors import ErrorCode, KafkaError


def check_replicas(replicas: tuple[int, ...], replication_factor: int | None, view: ControllerView) -> None:
    """Raise KafkaError INVALID_REPLICA_ASSIGNMENT unless the list is not empty, names registered
    brokers once each, and has `replication_factor` of them (None: any number)."""
    problem = None
    if not replicas:
        problem = "an empty replica list"
    else:
        previous = None
        for broker_id in sorted(replicas):
            if broker_id not in view.image.brokers:
                problem = f"broker {broker_id}, but no such broker is registered"
            elif broker_id == previous:
                problem = f"the broker {broker_id} more than once"
            if problem is not None:
                break
            previous = broker_id
        else:
            if replication_factor is not None and len(replicas) != replication_factor:
                problem = (
                    f"a partition with {len(replicas)} replica(s), but this is not consistent with "
                    f"previous partitions, which have {replication_factor} replica(s)"
                )
    if problem is not None:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"The manual partition assignment includes {problem}.",
        )


def new_partition(
    replicas: tuple[int, ...], view: ControllerView, refusal: ErrorCode, refusal_text: str
) -> PartitionImage:
    """A new partition: in sync are the active replicas, the first of them leads (I15). Raises
    KafkaError `refusal` when none is active."""
    isr = tuple(broker_id for broker_id in replicas if view.is_active(broker_id))
    if not isr:
        raise KafkaError(refusal, refusal_text)
    brokers = view.image.brokers
    return PartitionImage(
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=tuple(default_directory(brokers.get(broker_id)) for broker_id in replicas),
    )
