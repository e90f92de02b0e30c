"""Any sequence of requests, timeouts, refused and late writes and fail-overs, against a dumb model.

The model knows what clients were told, and what each partition was told by markers. Invariants:

OneOutcome           no epoch of a producer is told both commit and abort
DecisionsStand       what a client was told is committed is never aborted, and is told to its partitions
NoForeignPartitions  markers go to the partitions that were added to that very transaction
EpochsOnlyGrow       within a producer id; an identity is never given to two initialisations
MarkersOutlive       a marker's epoch is not below that of the data
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from coordinator.transaction.context import TransactionSettings
from coordinator.transaction.metadata import ProducerIdentity, TransactionMetadata
from coordinator.transaction.requests import AddPartitions, EndTransaction, InitTransactionalId
from coordinator.transaction.states import BETWEEN_TRANSACTIONS
from coordinator.transaction.states import TransactionState as S
from tests.coordinator.transaction.transaction_world import World
from wire.errors import ErrorCode, KafkaError
from wire.primitives import TopicPartition

KEYS = st.sampled_from(["x", "y"])
PARTITIONS = st.frozensets(st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 1)), min_size=1)
STEPS_MS = [0, 1, 900, 10_000, 60_000, 3_600_000]


class TransactionMachine(RuleBasedStateMachine):
    """Producers, some of them zombies, that do as they like."""

    identities = Bundle("identities")

    @initialize(version=st.sampled_from([0, 1, 2]))
    def start(self, version: int) -> None:
        self.world = World(
            version=version,
            settings=TransactionSettings(id_expiration_ms=7_200_000, expiry_interval_ms=600_000),
        )
        self.version = version
        self.given: set[tuple[str, ProducerIdentity]] = set()
        self.newest: dict[int, int] = {}
        self.added: dict[tuple[str, ProducerIdentity], set[TopicPartition]] = {}
        self.told: dict[tuple[str, ProducerIdentity], bool] = {}
        self.outcomes: dict[ProducerIdentity, bool] = {}
        self.seen_markers = 0

    def _version(self, wanted: int) -> int:
        """Clients speak of bumps only where the cluster has finalized them, unless they are broken."""
        return wanted if self.version >= 1 else 0

    @rule(target=identities, key=KEYS, timeout_ms=st.sampled_from([500, 60_000]))
    def init(self, key: str, timeout_ms: int) -> Any:
        return key, self._given(key, InitTransactionalId(key, timeout_ms))

    @rule(target=identities, known=identities)
    def init_again(self, known: tuple[str, ProducerIdentity | None]) -> Any:
        key, held = known
        return key, self._given(key, InitTransactionalId(key, 60_000, held), held)

    def _given(self, key: str, request: InitTransactionalId, held: ProducerIdentity | None = None) -> Any:
        identity = self.world.replies[self.world.ask(request)]
        if isinstance(identity, KafkaError):
            assert identity.code in (
                ErrorCode.CONCURRENT_TRANSACTIONS,
                ErrorCode.PRODUCER_FENCED,
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ), identity
            return held
        if held is None:
            assert (key, identity) not in self.given, "EpochsOnlyGrow"
        assert identity.producer_epoch >= self.newest.get(identity.producer_id, 0), "EpochsOnlyGrow"
        self.given.add((key, identity))
        self._note(identity)
        return identity

    def _note(self, identity: ProducerIdentity) -> None:
        self.newest[identity.producer_id] = max(self.newest.get(identity.producer_id, 0), identity.producer_epoch)

    @rule(known=identities, partitions=PARTITIONS, wanted=st.sampled_from([0, 2]))
    def add(self, known: tuple[str, ProducerIdentity | None], partitions: Any, wanted: int) -> None:
        key, held = known
        if held is None:
            return
        before = self.world.shard.metadata(key)
        code = self.world.error(AddPartitions(key, *held, partitions, self._version(wanted)))
        if code is ErrorCode.NONE:
            assert before is not None
            if before.state in BETWEEN_TRANSACTIONS:
                self.added[key, held] = set()
                self.told.pop((key, held), None)
            self.added[key, held] |= partitions

    @rule(target=identities, known=identities, commit=st.booleans(), wanted=st.sampled_from([0, 2]))
    def end(self, known: tuple[str, ProducerIdentity | None], commit: bool, wanted: int) -> Any:
        key, held = known
        if held is None:
            return known
        try:
            identity = self.world.call(EndTransaction(key, *held, commit, self._version(wanted)))
        except KafkaError:
            return known
        if (key, held) in self.added:
            assert self.told.setdefault((key, held), commit) == commit, "DecisionsStand"
        self._note(identity)
        return key, identity

    @rule(code=st.sampled_from([ErrorCode.COORDINATOR_NOT_AVAILABLE]))
    def refuse_the_next_write(self, code: ErrorCode) -> None:
        self.world.refuse_with = code

    @rule(by_ms=st.sampled_from(STEPS_MS))
    def let_time_pass(self, by_ms: int) -> None:
        self.world.advance(by_ms)

    @rule(written=st.booleans())
    def hold_markers_back(self, written: bool) -> None:
        self.world.writes_markers = written
        if written:
            for metadata in list(self.world.shard.transactions()):
                if metadata.state in (S.PREPARE_COMMIT, S.PREPARE_ABORT):
                    self.world.write_marker(metadata)

    @rule()
    def fail_over(self) -> None:
        self.world.reload()

    # --- invariants -----------------------------------------------------------------------------

    @invariant()
    def markers_are_right(self) -> None:
        if not hasattr(self, "world"):
            return
        new = self.world.markers[self.seen_markers :]
        self.seen_markers = len(self.world.markers)
        for marker in new:
            self._check_marker(marker)

    def _check_marker(self, marker: TransactionMetadata) -> None:
        commit = marker.state is S.PREPARE_COMMIT
        key = marker.transactional_id
        if not marker.partitions:
            return
        bumped = ProducerIdentity(marker.producer_id, marker.producer_epoch - 1)
        candidates = [each for each in (marker.identity, bumped) if (key, each) in self.added]
        assert candidates, "NoForeignPartitions"
        data = candidates[-1] if marker.client_version >= 2 else candidates[0]
        assert marker.partitions <= self.added[key, data], "NoForeignPartitions"
        assert marker.producer_epoch >= data.producer_epoch, "MarkersOutlive"
        if (key, data) in self.told:
            assert self.told[key, data] == commit, "DecisionsStand"
        if marker.client_version >= 2:
            assert self.outcomes.setdefault(marker.identity, commit) == commit, "OneOutcome"

    @invariant()
    def epochs_only_grow(self) -> None:
        if not hasattr(self, "world"):
            return
        for metadata in self.world.shard.transactions():
            assert metadata.producer_epoch >= self.newest.get(metadata.producer_id, -1), "EpochsOnlyGrow"


TestTransactionMachine = TransactionMachine.TestCase
TestTransactionMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
