"""InitProducerId with a transactional id: who gets what, and who is refused, in Kafka's order (D.3)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.transaction.context import TransactionContext, TransactionSettings
from coordinator.transaction.initialization import check_request, initialize
from coordinator.transaction.metadata import NO_TIMEOUT_MS, ProducerIdentity, TransactionMetadata, complete
from coordinator.transaction.outcome import Known
from coordinator.transaction.requests import InitTransactionalId, ProducerIdNeeded
from coordinator.transaction.states import TransactionState as S
from tests.coordinator.transaction.transaction_world import START_MS, T0, World
from wire.errors import ErrorCode, KafkaError

MAX_MS = 900_000


def refused(request: InitTransactionalId, settings: TransactionSettings | None = None) -> ErrorCode:
    try:
        check_request(request, settings or TransactionSettings())
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


@pytest.mark.parametrize(
    ("timeout_ms", "code"),
    [
        (1, ErrorCode.NONE),
        (MAX_MS, ErrorCode.NONE),
        (0, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (-1, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (MAX_MS + 1, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (2**31 - 1, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_t07_timeouts_have_limits(timeout_ms: int, code: ErrorCode) -> None:
    assert refused(InitTransactionalId("x", timeout_ms)) is code


def test_what_is_refused_first() -> None:
    wrong = InitTransactionalId("", 0, enable_two_phase_commit=True, keep_prepared=True)
    assert refused(wrong) is ErrorCode.INVALID_REQUEST
    wrong = wrong._replace(transactional_id="x")
    assert refused(wrong) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    allowed = TransactionSettings(two_phase_commit_enable=True)
    assert refused(wrong, allowed) is ErrorCode.UNSUPPORTED_VERSION
    assert refused(wrong._replace(keep_prepared=False), allowed) is ErrorCode.NONE
    assert refused(InitTransactionalId("x", 0), allowed) is ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_a_new_id_gets_a_fresh_producer_id_at_epoch_0() -> None:
    world = World()
    assert world.init("x") == (1001, 0)
    assert world.init("y") == (1002, 0)
    assert world.known("x").state is S.EMPTY
    assert world.texts[0] == "'x' is initialised: producer id 1001, epoch 0."


def test_a_new_id_takes_any_identity_that_the_producer_says_it_has() -> None:
    assert World().init(held=ProducerIdentity(5, 7)) == (1001, 0)


def test_each_initialisation_bumps_the_epoch() -> None:
    world = World()
    assert [world.init() for _ in range(3)] == [(1001, 0), (1001, 1), (1001, 2)]


def test_the_timeout_is_that_of_the_last_initialisation() -> None:
    world = World()
    world.init(timeout_ms=1000)
    world.init(timeout_ms=2000)
    assert world.known().timeout_ms == 2000


def test_a_two_phase_commit_never_times_out() -> None:
    world = World(settings=TransactionSettings(two_phase_commit_enable=True))
    held = world.call(InitTransactionalId("x", 1000, enable_two_phase_commit=True))
    assert world.known().timeout_ms == NO_TIMEOUT_MS
    world.add(held)
    world.advance(10 * MAX_MS)
    assert world.known().state is S.ONGOING


def test_the_holder_bumps_and_a_repeated_request_gets_the_same_answer() -> None:
    world = World()
    first = world.init()
    assert world.init(held=first) == (1001, 1)
    assert world.init(held=first) == (1001, 1), "the answer was lost"
    assert world.init(held=first) == (1001, 1), "and again"
    assert world.init(held=ProducerIdentity(1001, 1)) == (1001, 2)


def test_after_somebody_else_initialised_a_repetition_is_fenced() -> None:
    world = World()
    first = world.init()
    world.init(held=first)
    world.init()
    assert world.error(InitTransactionalId("x", 1000, first)) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize(
    ("held", "code"),
    [
        (ProducerIdentity(999, 0), ErrorCode.PRODUCER_FENCED),
        (ProducerIdentity(1001, 5), ErrorCode.PRODUCER_FENCED),
        (ProducerIdentity(1001, -7), ErrorCode.PRODUCER_FENCED),
    ],
)
def test_another_identity_is_fenced(held: ProducerIdentity, code: ErrorCode) -> None:
    world = World()
    world.init()
    assert world.error(InitTransactionalId("x", 1000, held)) is code


def test_a_repetition_is_not_known_after_a_failover() -> None:
    """The epoch before is in memory only, as in Kafka."""
    world = World()
    first = world.init()
    world.init(held=first)
    world.reload()
    assert world.error(InitTransactionalId("x", 1000, first)) is ErrorCode.PRODUCER_FENCED


# --- exhausted epochs ---------------------------------------------------------------------------------


def at_epoch(epoch: int, state: S = S.EMPTY, last_epoch: int = -1) -> Known:
    return Known(
        TransactionMetadata("x", 7, 60_000, START_MS, producer_epoch=epoch, last_producer_epoch=last_epoch, state=state)
    )


def init_at(known: Known, held: ProducerIdentity | None = None, fresh: int = 8) -> TransactionMetadata:
    request = InitTransactionalId("x", 60_000, held, fresh_producer_id=fresh)
    target = initialize(known, request, TransactionContext(), START_MS).target
    assert target is not None
    return target


def test_the_last_epoch_but_one_is_given_out() -> None:
    assert init_at(at_epoch(32764)).identity == (7, 32765)


@pytest.mark.parametrize("epoch", [32765])
def test_the_greatest_epoch_given_to_a_producer(epoch: int) -> None:
    assert init_at(at_epoch(epoch)).identity == (7, 32766)


@pytest.mark.parametrize("epoch", [32766, 32767])
@pytest.mark.parametrize("is_held", [False, True])
def test_exhausted_epochs_take_a_fresh_producer_id(epoch: int, is_held: bool) -> None:
    target = init_at(at_epoch(epoch), ProducerIdentity(7, epoch) if is_held else None)
    assert target.identity == (8, 0)
    assert target.previous_producer_id == 7
    assert target.last_producer_epoch == (epoch if is_held else -1)


def test_a_fresh_producer_id_is_asked_for_only_where_one_is_needed() -> None:
    with pytest.raises(ProducerIdNeeded):
        init_at(at_epoch(32766), fresh=-1)
    assert init_at(at_epoch(3), fresh=-1).identity == (7, 4)


def test_who_did_not_get_the_answer_about_the_fresh_id_may_ask_again() -> None:
    known = Known(replace(init_at(at_epoch(32766), ProducerIdentity(7, 32766))))
    assert init_at(known, ProducerIdentity(7, 32766)).identity == (8, 0)
    with pytest.raises(KafkaError) as refusal:
        init_at(known, ProducerIdentity(7, 32765))
    assert refusal.value.code is ErrorCode.PRODUCER_FENCED, "only the exhausted epoch recognises it"


def test_an_exhausted_id_with_another_epoch_fails_as_in_kafka() -> None:
    with pytest.raises(KafkaError) as refusal:
        init_at(at_epoch(32767, last_epoch=32766), ProducerIdentity(7, 32766))
    assert refusal.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_an_open_transaction_at_the_last_epoch_is_aborted_over_to_a_fresh_producer_id() -> None:
    known = at_epoch(32766, S.ONGOING)
    context = TransactionContext(transaction_version=2)
    request = InitTransactionalId("x", 60_000)
    with pytest.raises(ProducerIdNeeded):
        initialize(known, request, context, START_MS)
    target = initialize(known, request._replace(fresh_producer_id=8), context, START_MS).target
    assert target is not None
    assert (target.state, target.identity, target.next_producer_id) == (S.PREPARE_ABORT, (7, 32767), 8)
    assert complete(target, START_MS).identity == (8, 0)


# --- an open transaction ------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "epoch_after"), [(0, 1), (1, 1), (2, 1)])
def test_t09_an_open_transaction_is_aborted_and_the_request_comes_again(version: int, epoch_after: int) -> None:
    world = World(version=version)
    old = world.init()
    world.add(old, version=version)
    assert world.error(InitTransactionalId("x", 60_000)) is ErrorCode.CONCURRENT_TRANSACTIONS
    (aborted,) = world.markers
    assert (aborted.state, aborted.producer_epoch, aborted.partitions) == (S.PREPARE_ABORT, epoch_after, {T0})
    assert world.known().state is S.COMPLETE_ABORT
    assert world.init() == (1001, epoch_after + 1)


def test_while_markers_are_written_the_id_is_not_given_out() -> None:
    world = World(writes_markers=False)
    world.add(world.init())
    request = InitTransactionalId("x", 60_000)
    assert world.error(request) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.error(request) is ErrorCode.CONCURRENT_TRANSACTIONS, "not fenced twice"
    assert len(world.markers) == 1
    world.write_marker(world.markers[0])
    assert world.init() == (1001, 2)


def test_with_bumps_the_fenced_producer_may_go_on_as_long_as_nobody_else_did() -> None:
    """T04: its transaction timed out; with its old identity it gets the epoch it was fenced with."""
    world = World()
    old = world.init()
    world.add(old)
    world.error(InitTransactionalId("x", 60_000, old))
    assert world.init(held=old) == (1001, 1)
    assert world.init(held=old) == (1001, 1)


def test_without_bumps_the_fenced_producer_stays_fenced() -> None:
    world = World(version=0)
    old = world.init()
    world.add(old, version=0)
    world.error(InitTransactionalId("x", 60_000))
    assert world.error(InitTransactionalId("x", 60_000, old)) is ErrorCode.PRODUCER_FENCED


def test_without_bumps_fencing_at_the_last_epoch_leads_to_a_fresh_producer_id_at_the_next_request() -> None:
    fenced = initialize(at_epoch(32766, S.ONGOING), InitTransactionalId("x", 60_000), TransactionContext(), 1).target
    assert fenced is not None
    assert (fenced.identity, fenced.next_producer_id) == ((7, 32767), -1)
    assert init_at(Known(replace(fenced, state=S.COMPLETE_ABORT))).identity == (8, 0)


def test_what_is_pending_comes_before_who_asks() -> None:
    world = World(replicated=False)
    ticket = world.ask(InitTransactionalId("x", 60_000))
    assert ticket not in world.replies
    wrong = InitTransactionalId("x", 60_000, ProducerIdentity(1, 1))
    assert world.error(wrong) is ErrorCode.CONCURRENT_TRANSACTIONS
    world.replicate()
    assert world.replies[ticket] == (1001, 0)
    assert world.error(wrong) is ErrorCode.PRODUCER_FENCED
