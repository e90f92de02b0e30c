"""Transactions under attack: forged identities, markers by anybody, stale members, storms of instances."""

from __future__ import annotations

import itertools
from typing import Any

from tests.parity.corpus.classic_groups import stable_member
from tests.parity.corpus.consumer_groups import enter
from tests.parity.corpus.produce_and_fetch import create, fetch, offsets
from tests.parity.corpus.transaction_corners import held, settled_state
from tests.parity.corpus.transactions import Producer, await_stable, commit_in_transaction, ready
from tests.parity.player import Player
from wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from wire.messages.delete_topics import DeleteTopicsRequest
from wire.messages.end_txn import EndTxnRequest
from wire.messages.find_coordinator import FindCoordinatorRequest
from wire.messages.init_producer_id import InitProducerIdRequest
from wire.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from wire.primitives import coordinator_partition

UNKNOWN_TOPIC = 3
EPOCH_MAX = 32_767
OFFSETS_PARTITIONS = 50
ID_MAX = 2**63 - 1


def forged(producer: Producer) -> dict[str, dict[str, int]]:
    """Identities that are not the producer's, by what is wrong with them."""
    producer_id, epoch = producer.producer_id, producer.producer_epoch
    return {
        "epoch below": {"producer_id": producer_id, "producer_epoch": epoch - 1},
        "epoch above": {"producer_id": producer_id, "producer_epoch": epoch + 1},
        "highest epoch": {"producer_id": producer_id, "producer_epoch": EPOCH_MAX},
        "no epoch": {"producer_id": producer_id, "producer_epoch": -1},
        "no id": {"producer_id": -1, "producer_epoch": epoch},
        "neither": {"producer_id": -1, "producer_epoch": -1},
        "highest id": {"producer_id": ID_MAX, "producer_epoch": epoch},
    }


def scenario_forged_identities(player: Player) -> None:
    """Every request that names a producer, with identities that are not right, before, in and after a transaction."""
    producer, topic, group = ready(player), player.name("t"), player.name("g")
    create(producer.connection, topic)
    find_group(producer, group)
    producer.init(version=5)
    producer.send(topic, b"bump", version=12)
    producer.end(True, version=5)
    await_stable(producer, topic, 2)
    forge(producer, topic, group, "empty")
    producer.send(topic, b"open", version=12)
    forge(producer, topic, group, "ongoing")
    producer.end(False, version=5)
    await_stable(producer, topic, 4)
    settled_state(producer, "aborted")
    forge(producer, topic, group, "aborted")
    producer.connection.call(fetch(topic, (0, 0), isolation_level=1), 12, "what is there")
    settled_state(producer, "at last")


def find_group(producer: Producer, group: str) -> None:
    """The group's coordinator answers."""
    request = FindCoordinatorRequest(coordinator_keys=[group], key_type=0)
    player, call = producer.connection.player, producer.connection.call
    player.unwritten(
        lambda: player.until(lambda: call(request, 4), lambda answer: answer.coordinators[0].error_code == 0)
    )


def forge(producer: Producer, topic: str, group: str, state: str) -> None:
    """All requests with all forged identities; none may have an effect."""
    transactional_id, call = producer.transactional_id, producer.connection.call
    for wrong, identity in forged(producer).items():
        about = f"{state}, {wrong}"
        added = {f"v3_and_below_{name}": value for name, value in identity.items()}
        producer.add(topic, 0, label=f"{about}: add v3", **added)
        for verify_only in (True, False):
            topics = [AddPartitionsToTxnTopic(name=topic, partitions=[0])]
            transaction = AddPartitionsToTxnTransaction(
                transactional_id=transactional_id, topics=topics, verify_only=verify_only, **identity
            )
            call(AddPartitionsToTxnRequest(transactions=[transaction]), 5, f"{about}: add v5 {verify_only=}")
        request = AddOffsetsToTxnRequest(transactional_id=transactional_id, group_id=group, **identity)
        producer.settled(request, 4, f"{about}: add offsets")
        for version in (4, 5):
            call(commit_in_transaction(producer, group, topic, 5, **identity), version, f"{about}: offsets v{version}")
        if min(identity.values()) >= 0:
            for version in (11, 12):
                producer.send(topic, b"forged", version=version, label=f"{about}: produce v{version}", **identity)
                producer.sequence -= 1
        for version in (4, 5):
            for committed in (True, False):
                end = EndTxnRequest(transactional_id=transactional_id, committed=committed, **identity)
                producer.settled(end, version, f"{about}: end v{version} {committed=}")


def markers(*items: WritableTxnMarker) -> WriteTxnMarkersRequest:
    """WriteTxnMarkers."""
    return WriteTxnMarkersRequest(markers=list(items))


def marker(producer_id: int, epoch: int, *topics: tuple[str, list[int]], **fields: Any) -> WritableTxnMarker:
    """An abort for partitions."""
    values = {"transaction_result": False, "coordinator_epoch": 0, **fields}
    where = [WritableTxnMarkerTopic(name=name, partition_indexes=indexes) for name, indexes in topics]
    return WritableTxnMarker(producer_id=producer_id, producer_epoch=epoch, topics=where, **values)


def scenario_forged_markers(player: Player) -> None:
    """WriteTxnMarkers by a client: partitions that are not there, identities that cannot be, what is named twice."""
    producer, topic = ready(player), player.name("t")
    create(producer.connection, topic, 2)
    producer.init()
    producer.add(topic, 0)
    producer.send(topic, b"open")
    call, me, epoch = producer.connection.call, producer.producer_id, producer.producer_epoch
    nosuch = player.name("nosuch")
    for version in (1, 2):
        for name, where in {
            "an unknown topic": (nosuch, [0]),
            "an unknown partition": (topic, [7]),
            "a negative partition": (topic, [-1]),
            "the empty topic": ("", [0]),
            "no partition": (topic, []),
        }.items():
            call(markers(marker(me, epoch, where)), version, f"{name} v{version}")
            call(markers(marker(-1, -1, where)), version, f"{name}, no producer v{version}")
            call(markers(marker(me, -1, where)), version, f"{name}, no epoch v{version}")
        call(markers(marker(me, epoch)), version, f"no topic v{version}")
        call(markers(marker(-1, epoch)), version, f"no topic, no producer v{version}")
    for label, item in {
        "no producer": marker(-1, epoch, (topic, [0])),
        "no epoch": marker(me, -1, (topic, [1])),
        "a known and an unknown partition": marker(me, epoch - 1, (topic, [0, 9])),
        "an unknown partition twice": marker(me, epoch, (topic, [9, 9])),
        "offsets, no producer": marker(-1, epoch, ("__consumer_offsets", [0])),
        "the highest epoch": marker(me, EPOCH_MAX, (topic, [1])),
        "the highest id": marker(ID_MAX, EPOCH_MAX, (topic, [1])),
        "the highest coordinator epoch": marker(me, EPOCH_MAX, (topic, [1]), coordinator_epoch=2**31 - 1),
        "a lower coordinator epoch": marker(me, EPOCH_MAX, (topic, [1]), coordinator_epoch=3),
        "no coordinator epoch": marker(me, EPOCH_MAX, (topic, [1]), coordinator_epoch=-1),
        "offsets": marker(me, epoch, ("__consumer_offsets", [0])),
        "unknown offsets": marker(me, epoch, ("__consumer_offsets", [4711])),
        "transactions": marker(me, epoch, ("__transaction_state", [0])),
        "metadata": marker(me, epoch, ("__cluster_metadata", [0])),
    }.items():
        call(markers(item), 1, label)
    for level in (-1, 3, 127):
        call(markers(marker(me, epoch, (topic, [1]), transaction_version=level)), 2, f"transaction.version {level}")
    call(markers(marker(me, epoch, (nosuch, [0])), marker(me, epoch, (topic, [9]))), 1, "a producer twice")
    call(markers(marker(-1, 0, (nosuch, [0])), marker(me, epoch, (nosuch, [0]))), 1, "one of two has no producer")
    call(fetch(topic, (0, 0), (1, 0)), 12, "what was written")
    call(offsets(topic, (0, -1), isolation_level=1), 7, "the last stable offset")
    producer.end(True, label="its own end")


def groups_apart(player: Player, *kinds: str) -> list[str]:
    """Names of groups whose offsets lie in different partitions: what is added for one does not open another."""
    taken: set[int] = set()
    names = []
    for kind in kinds:
        tried = (player.name(f"{number}-{kind}") for number in itertools.count())
        name = next(each for each in tried if coordinator_partition(each, OFFSETS_PARTITIONS) not in taken)
        taken.add(coordinator_partition(name, OFFSETS_PARTITIONS))
        names.append(name)
    return names


def scenario_transactional_offsets_of_stale_members(player: Player) -> None:
    """TxnOffsetCommit by members of a classic group and of a consumer group, with epochs that are not theirs."""
    producer, topic = ready(player), player.name("t")
    create(producer.connection, topic)
    classic, modern, unknown = groups_apart(player, "classic", "modern", "unknown")
    call = producer.connection.call
    member, generation = stable_member(player.connect(), classic)
    entered = call(enter(modern, "me", topic), 1, "enter")
    producer.init(version=5)

    def commit(label: str, group: str, **fields: Any) -> None:
        for version in (3, 4, 5):
            request = commit_in_transaction(producer, group, topic, 7, **fields)
            player.until(
                lambda request=request, version=version: call(request, version, f"{label} v{version}"),
                lambda answer: answer.topics[0].partitions[0].error_code not in (14, 15, 16, 51),
            )

    epochs = (-2, -1, 0, 1)
    for group, name, now in ((classic, member, generation), (modern, "me", entered.member_epoch)):
        kind = group.rpartition("-")[2]
        for epoch in epochs:
            commit(f"{kind}, epoch {epoch:+d} of now", group, member_id=name, generation_id_or_member_epoch=now + epoch)
        commit(f"{kind}, no epoch", group, member_id=name, generation_id_or_member_epoch=-1)
        commit(f"{kind}, no member", group, generation_id_or_member_epoch=now)
        commit(f"{kind}, nobody", group)
        commit(f"{kind}, another member", group, member_id="you", generation_id_or_member_epoch=now)
        commit(f"{kind}, an instance", group, member_id=name, group_instance_id="i", generation_id_or_member_epoch=now)
    commit("unknown group, nobody", unknown)
    commit("unknown group, a member", unknown, member_id="me", generation_id_or_member_epoch=0)
    commit("unknown group, a member without an epoch", unknown, member_id="me")
    producer.end(False, version=5)


def scenario_storm_of_instances(player: Player) -> None:
    """Fifty instances of one transactional id at once, over an open transaction: all but the last are fenced."""
    producer, topic = ready(player), player.name("t")
    create(producer.connection, topic)
    producer.init(version=5)
    producer.send(topic, b"open", version=12)
    request = InitProducerIdRequest(transactional_id=producer.transactional_id, transaction_timeout_ms=60_000)
    connections = [player.connect() for _ in range(50)]

    def storm() -> list[Any]:
        won = []
        waiting = connections
        while waiting:
            answers = [(each, each.receive(sent)) for each, sent in [(c, c.send(request, 5)) for c in waiting]]
            for _, answer in answers:
                assert answer.error_code in (0, 51), answer
            won += [answer for _, answer in answers if answer.error_code == 0]
            waiting = [each for each, answer in answers if answer.error_code]
        return won

    won = player.unwritten(storm)
    identities = sorted((answer.producer_id, answer.producer_epoch) for answer in won)
    assert len(set(identities)) == len(connections), "two instances have the same epoch"
    assert identities[0] > (producer.producer_id, producer.producer_epoch)
    zombie = Producer(producer.connection, producer.transactional_id)
    for place, label in ((-1, "the last"), (-2, "the last but one"), (0, "the first")):
        zombie.producer_id, zombie.producer_epoch = identities[place]
        zombie.sequence = 0
        zombie.send(topic, b"x", version=12, label=f"{label} produces")
        zombie.end(True, version=5, label=f"{label} commits")
    await_stable(producer, topic, 4)
    producer.connection.call(fetch(topic, (0, 0), isolation_level=1), 12, "what is there")
    assert held(producer)["producer_epoch"] == 0


def delete(producer: Producer, topic: str) -> None:
    """Delete a topic, and wait until its partition is gone."""
    player, call = producer.connection.player, producer.connection.call
    request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=30_000)
    player.unwritten(lambda: call(request, 5))
    gone = fetch(topic, (0, 0))
    player.unwritten(
        lambda: player.until(
            lambda: call(gone, 12), lambda answer: answer.responses[0].partitions[0].error_code == UNKNOWN_TOPIC
        )
    )


def scenario_transactions_over_deleted_topics(player: Player) -> None:
    """A topic of an open transaction is deleted, or deleted and made anew, before the transaction ends."""
    producer, stays = ready(player), player.name("stays")
    create(producer.connection, stays)
    call = producer.connection.call
    for version in (12, 11):
        for is_made_anew in (False, True):
            about = f"v{version}, {is_made_anew=}"
            goes = player.name(f"goes-{version}-{is_made_anew}")
            create(producer.connection, goes)
            producer.init(version=5, label=f"{about}: init")
            for topic in (stays, goes):
                if version == 11:
                    producer.add(topic, 0)
                producer.sequence = 0
                producer.send(topic, b"open", version=version)
            delete(producer, goes)
            if is_made_anew:
                create(producer.connection, goes)
            producer.end(True, version=5 if version == 12 else 4, label=f"{about}: commit")
            settled_state(producer, f"{about}: afterwards")
            call(offsets(stays, (0, -1), isolation_level=1), 7, f"{about}: what stays is stable")
            call(fetch(goes, (0, 0)), 12, f"{about}: what went")
    call(fetch(stays, (0, 0), isolation_level=1), 12, "what is committed")


def scenario_records_deleted_under_a_transaction(player: Player) -> None:
    """DeleteRecords goes past the beginning of an open transaction."""
    producer, topic = ready(player), player.name("t")
    create(producer.connection, topic)
    call = producer.connection.call
    for commits in (True, False):
        producer.init(version=5)
        answer = producer.send(topic, b"one", b"two", b"three", version=12)
        first = answer.responses[0].partition_responses[0].base_offset
        partitions = [DeleteRecordsPartition(partition_index=0, offset=first + 2)]
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic, partitions=partitions)], timeout_ms=30_000
        )
        call(request, 2, f"{commits=}: delete into it")
        # What readers of committed data are told meanwhile: see differences.
        for time in (-2, -1):
            call(offsets(topic, (0, time)), 7, f"{commits=} {time=}")
        producer.end(commits, version=5)
        await_stable(producer, topic, first + 4)
        call(fetch(topic, (0, first + 2), isolation_level=1), 12, f"{commits=}: afterwards")
