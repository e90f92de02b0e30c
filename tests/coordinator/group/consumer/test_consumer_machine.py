"""Any sequence of what clients of both protocols, clocks, logs and fail-overs do to one group.

At every step: the invariants by name, one owner at most for each partition among those who are members, and a
reader of the log who knows the same. At the end everybody behaves, and the group comes to rest at its target.
"""

from __future__ import annotations

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from coordinator.group.consumer_group import ConsumerGroup, ConsumerGroupState
from tests.coordinator.group.consumer.consumer_world import (
    SESSION_TIMEOUT_MS,
    Follower,
    image_of,
    settings_with,
    topic_id,
)
from tests.coordinator.group.consumer.group_clients import ClassicClient, ConsumerClient
from tests.coordinator.group.shard_world import World
from wire.errors import ErrorCode

NAMES = ["a", "b", "c", "d"]
TOPICS = ["t1", "t2", "u"]
wishes = st.lists(st.sampled_from(TOPICS), min_size=1, unique=True)
SETTLING_STEPS = 60
STEP_MS = 3_000


class ConsumerGroupMachine(RuleBasedStateMachine):
    """Clients that keep to their protocol in a world that does not."""

    @initialize(
        interval_ms=st.sampled_from([0, 1_000]),
        upgrade=st.booleans(),
        downgrade=st.booleans(),
        size=st.sampled_from([3, 9]),
    )
    def start(self, interval_ms: int, upgrade: bool, downgrade: bool, size: int) -> None:
        chosen = settings_with(
            interval_ms=interval_ms, upgrade_enabled=upgrade, downgrade_enabled=downgrade, group_max_size=size
        )
        self.counts = {"t1": 3, "t2": 1}
        self.ids = {topic: topic_id(topic) for topic in TOPICS}
        self.world = World(chosen, image=image_of(self.counts))
        self.follower = Follower(self.world)
        self.clients: dict[str, ConsumerClient | ClassicClient] = {}
        self.changes = 1

    # --- clients -------------------------------------------------------------------------------

    def _put(self, name: str, client: ConsumerClient | ClassicClient) -> None:
        """A process starts; the one of the same name that ran before is killed, and owns nothing any more."""
        self.clients[name] = client
        client.step()

    @rule(
        name=st.sampled_from(NAMES), topics=wishes, is_static=st.booleans(), regex=st.sampled_from([None, None, "t."])
    )
    def start_consumer(self, name: str, topics: list[str], is_static: bool, regex: str | None) -> None:
        self.changes += 1
        instance = f"i-{name}" if is_static else None
        self._put(name, ConsumerClient(self.world, f"{name}{self.changes}", topics, instance, regex))

    @rule(name=st.sampled_from(NAMES), topics=wishes, is_static=st.booleans())
    def start_classic(self, name: str, topics: list[str], is_static: bool) -> None:
        self._put(name, ClassicClient(self.world, name, topics, f"i-{name}" if is_static else None))

    def _client(self, name: str) -> ConsumerClient | ClassicClient | None:
        return self.clients.get(name)

    @rule(name=st.sampled_from(NAMES), says=st.booleans(), hears=st.sampled_from([True, True, True, False]))
    def heartbeat(self, name: str, says: bool, hears: bool) -> None:
        client = self._client(name)
        if client is not None:
            client.step(says_what_it_owns=says, hears=hears)

    @rule()
    def everybody_steps(self) -> None:
        for client in list(self.clients.values()):
            client.step()

    @rule(name=st.sampled_from(NAMES), topics=wishes)
    def wish(self, name: str, topics: list[str]) -> None:
        client = self._client(name)
        if isinstance(client, ConsumerClient):
            client.wish(topics)

    @rule(name=st.sampled_from(NAMES), for_a_while=st.booleans())
    def go(self, name: str, for_a_while: bool) -> None:
        client = self.clients.pop(name, None)
        if client is not None:
            client.go(for_a_while=for_a_while)

    @rule(name=st.sampled_from(NAMES))
    def kill(self, name: str) -> None:
        self.clients.pop(name, None)

    # --- the world -----------------------------------------------------------------------------

    @rule(milliseconds=st.sampled_from([1, 1_000, 9_999, 20_000, SESSION_TIMEOUT_MS, 70_000]))
    def time_passes(self, milliseconds: int) -> None:
        self.world.pass_time(milliseconds)

    @rule(topic=st.sampled_from(TOPICS), count=st.integers(1, 3))
    def topics_change(self, topic: str, count: int) -> None:
        """A topic comes, grows, or goes."""
        if self.counts.get(topic, 0) < count:
            self.counts[topic] = count
        else:
            self.counts.pop(topic)
            self.ids[topic] = topic_id(f"{topic}-{self.changes}")
        self.changes += 1
        self.world.image = image_of(self.counts, ids=self.ids, offset=self.changes)

    @rule()
    def fail_over(self) -> None:
        self.world.reload()

    @rule(code=st.sampled_from([ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE]))
    def the_next_write_is_refused(self, code: ErrorCode) -> None:
        self.world.refuse_with = code

    # --- what holds --------------------------------------------------------------------------------

    @invariant()
    def one_owner_for_each_partition(self) -> None:
        group = self._group()
        if group is None:
            return
        owners: dict[tuple[bytes, int], str] = {}
        for name, client in self.clients.items():
            # A client that was fenced, or whose process was replaced, does not know it yet.
            if client.member_id not in group.members:
                continue
            for partition in client.owned:
                assert partition not in owners, f"{partition} is owned by {name} and {owners[partition]}"
                owners[partition] = name

    @invariant()
    def who_reads_the_log_knows_the_same(self) -> None:
        if hasattr(self, "follower"):
            self.follower.check()

    def _group(self) -> ConsumerGroup | None:
        group = self.world.shard.group("g") if hasattr(self, "world") else None
        return group if isinstance(group, ConsumerGroup) else None

    @precondition(lambda self: bool(self.clients))
    @rule()
    def everybody_behaves_until_all_is_at_rest(self) -> None:
        self.world.refuse_with = None
        for _ in range(SETTLING_STEPS):
            self.world.pass_time(STEP_MS)
            before = self._told()
            for client in self.clients.values():
                client.step()
            if before == self._told() and self._is_at_rest():
                break
        else:
            raise AssertionError(f"no rest: {self._told()}")
        group = self._group()
        if group is not None and self._is_driven(group):
            self._check_coverage(group)

    def _told(self) -> list[object]:
        return [(name, client.is_member, sorted(client.owned)) for name, client in sorted(self.clients.items())]

    def _is_at_rest(self) -> bool:
        """Those that were killed are fenced, and those that could join are in."""
        if not all(client.is_settled for client in self.clients.values()):
            return False
        group = self._group()
        if group is None:
            classic = self.world.shard.group("g")
            return classic is None or classic.state_name in ("Stable", "Empty")
        ids = {client.member_id for client in self.clients.values()}
        is_stable = group.state is ConsumerGroupState.STABLE or not self._is_driven(group)
        return is_stable and set(group.members) <= ids

    def _is_driven(self, group: ConsumerGroup) -> bool:
        """Somebody speaks the consumer protocol: nothing else has the target computed anew. (Where a downgrade
        is forbidden, a group may be left with members by the classic protocol alone, in Kafka as well.)"""
        return any(member.classic is None for member in group.members.values())

    def _check_coverage(self, group: ConsumerGroup) -> None:
        """Every partition that somebody wants is owned, by somebody who wants it."""
        owned: dict[tuple[bytes, int], str] = {}
        for client in self.clients.values():
            if client.member_id in group.members:
                owned.update(dict.fromkeys(client.owned, client.member_id))
        wanted: dict[tuple[bytes, int], set[str]] = {}
        for member in group.members.values():
            for topic in group.subscriptions.topics_of(member):
                for index in range(self.counts.get(topic, 0)):
                    wanted.setdefault((self.ids[topic], index), set()).add(member.member_id)
        for partition, member_id in owned.items():
            assert member_id in wanted.get(partition, ()), "NobodyOwnsWhatItDoesNotWant"
        assert set(owned) == set(wanted), "EverythingIsOwned"


TestConsumerGroupMachine = ConsumerGroupMachine.TestCase
TestConsumerGroupMachine.settings = settings(
    max_examples=50, stateful_step_count=25, phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
)
