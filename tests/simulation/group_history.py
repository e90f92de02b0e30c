"""What members of groups were told, and what must hold of it. The rules are the protocol's, not the broker's.

A member is *surely in* its group as long as the coordinator has no reason to remove it: it was heard within its
session timeout, it has done within the rebalance timeout what it was told to do, and it has not left. Times are
taken so that the doubt is always on the coordinator's side: a session begins when the request was sent.

OneOwner              a partition is given to nobody while a member that is surely in has it
OneAssignment         members of one generation of a classic group have nothing in common
EpochsOnlyRise        generations and epochs, of a member and of a group that never was empty, also over restarts
NeverUnknownInTime    a member that is surely in is not removed
RemovedInTime         a silent member is gone when its session is over; one that does not obey, at the rebalance timeout
NoZombies             who is gone, or late by a generation or epoch, is refused, with Kafka's codes
OffsetsKept           what is fetched is what was committed last, whatever happens to the group
OffsetsExpire         offsets of groups that nobody uses are gone after their retention, and not before
Converges             when the faults stop, all members that poll come to rest with every partition owned once, evenly
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.simulation.offset_history import OffsetHistory
from wire.errors import ErrorCode

Partition = tuple[str, int]

LATENCY_MS = 6.0
"""An answer is on its way for less than this in virtual time, the broker's whole milliseconds counted in."""
REMOVALS = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION})


@dataclass(slots=True, eq=False)
class Membership:
    """One member id of a group, from its first answer to its end."""

    group: str
    member_id: str
    kind: str
    instance_id: str | None
    session_ms: float
    rebalance_ms: float
    since_ms: float
    starts: int
    epoch: int = -1
    topics: frozenset[str] = frozenset()
    held: set[Partition] = field(default_factory=set)
    """What it was given and has not said it gave up."""
    heard_ms: float = 0.0
    at_ease_ms: float = 0.0
    """When it was last told that it has nothing to do."""
    is_written: bool = False
    """The log knows that it is a member."""
    written_epoch: int = -1
    is_in_doubt: bool = False
    """It asked for something that would end it or change it, and does not know what came of it."""
    is_rebalancing: bool = False
    """It asks a classic group to let it join, or has joined and was not assigned yet."""
    is_challenged: bool = False
    """Somebody may have taken its place, or sent it away."""
    unanswered: int = 0
    ended: str | None = None
    ended_starts: int = 0

    def __str__(self) -> str:
        return f"{self.member_id} of {self.group} at {self.epoch}"


@dataclass(slots=True)
class GroupPast:
    """The newest generation or epoch that the log of a group must hold, and when that was known."""

    newest: int = -1
    noted_ms: float = 0.0
    owners: dict[int, dict[Partition, str]] = field(default_factory=dict)


class GroupHistory:
    """All that members were told."""

    def __init__(self) -> None:
        self.memberships: list[Membership] = []
        self.groups: dict[str, GroupPast] = {}
        self.offsets = OffsetHistory()
        self.starts = 1
        self.mixed: set[str] = set()
        """Groups with members of both protocols, which change their kind."""
        self.reborn: set[str] = set()
        """Topics that were deleted: a name may mean two of them."""
        self.session_changes: dict[str, list[tuple[float, float]]] = {}
        """Of consumer groups: from when on which session timeout may hold."""
        self.default_session_ms = 0.0
        self.latency_ms = LATENCY_MS
        self.kinds: dict[tuple[str, str], set[str]] = {}
        """Which protocols the processes of each static member spoke, by group and instance id."""
        self.dismissals: set[tuple[str, str | None]] = set()
        """Static members that an administrator is sending away just now."""

    # --- who is in ------------------------------------------------------------------------------

    def live(self, group: str) -> list[Membership]:
        """Memberships of a group that have no known end."""
        return [each for each in self.memberships if each.group == group and each.ended is None]

    def session_of(self, member: Membership, *, longest: bool = False) -> float:
        """The session timeout that may hold for a member: the shortest, or the longest."""
        values: list[float] = [member.session_ms] if member.kind == "classic" else []
        if member.kind != "classic" or member.group in self.mixed:
            # A consumer group that was loaded gives all its members its own timeout.
            changes = self.session_changes.get(member.group, [])
            before = [value for at_ms, value in changes if at_ms <= member.heard_ms]
            values += [value for at_ms, value in changes if at_ms > member.heard_ms]
            values.append(before[-1] if before else self.default_session_ms)
        return max(values) if longest else min(values)

    def is_surely_in(self, member: Membership, now_ms: float) -> bool:
        """Whether the coordinator has no reason to have removed it."""
        return (
            member.ended is None
            and not member.is_in_doubt
            and not member.is_challenged
            and (self.starts == member.starts or member.is_written)
            and now_ms < member.heard_ms + self.session_of(member)
            and now_ms < member.at_ease_ms + member.rebalance_ms
        )

    def surely_in(self, group: str, now_ms: float) -> list[Membership]:
        """Members that the coordinator must know."""
        return [each for each in self.live(group) if self.is_surely_in(each, now_ms)]

    # --- what members are told ------------------------------------------------------------------

    def joined(self, member: Membership, now_ms: float) -> None:
        """A first answer to a new member."""
        member.heard_ms = member.at_ease_ms = now_ms - self.latency_ms
        self.memberships.append(member)

    def heard(self, member: Membership, sent_ms: float, now_ms: float, *, at_ease: bool, renews: bool = True) -> None:
        """A request was carried out; `at_ease`: the member is where the group is; `renews`: its session begins anew."""
        # A request that waited was carried out shortly before its answer.
        since_ms = max(sent_ms - 1, now_ms - self.latency_ms)
        if renews:
            member.heard_ms = since_ms
        if at_ease:
            member.at_ease_ms = since_ms
        member.starts = self.starts
        member.unanswered = 0
        member.is_in_doubt = False

    def missed(self, member: Membership, *, changes: bool) -> None:
        """No answer came. One that `changes` the member's place leaves it in doubt; of others two in a row,
        since only the epoch before the present one is accepted."""
        member.unanswered += 1
        if changes or (member.kind == "consumer" and member.unanswered > 1):
            member.is_in_doubt = True

    def challenge(self, group: str, instance_id: str | None) -> list[Membership]:
        """Somebody comes to take the place of a static member, or sends it away."""
        challenged = [each for each in self.live(group) if instance_id is not None and each.instance_id == instance_id]
        for each in challenged:
            each.is_challenged = True
        return challenged

    def was_taken_over(self, group: str) -> bool:
        """Whether a static member may have come back by the other protocol."""
        return any(len(kinds) > 1 for (of, _), kinds in self.kinds.items() if of == group)

    def told_epoch(self, member: Membership, epoch: int, now_ms: float, *, is_written: bool) -> None:
        """The member's generation or epoch; `is_written`: the log holds it."""
        past = self.groups.setdefault(member.group, GroupPast())
        anchors = [each for each in self.surely_in(member.group, now_ms) if each.since_ms <= past.noted_ms]
        if member.kind == "classic" and epoch < past.newest:
            rule = f"EpochsOnlyRise: {member} is told {epoch}, the group was at {past.newest}"
            assert not anchors or member.group in self.mixed, f"{rule} when {anchors[0]} was in"
        is_back = epoch < member.epoch and ((is_written and member.is_written) or self.starts == member.starts)
        assert not is_back or member.group in self.mixed, f"EpochsOnlyRise: {member} is told {epoch}"
        if is_written:
            if epoch < past.newest and not anchors:
                past.owners.clear()
                past.newest = epoch
            if epoch > past.newest:
                past.newest, past.noted_ms = epoch, now_ms
            member.is_written = True
            member.written_epoch = epoch
        member.epoch = epoch

    def got(self, member: Membership, partitions: Iterable[Partition], now_ms: float) -> None:
        """The member was told what it has now; what it had before and is not named it is to give up."""
        new = set(partitions)
        others = [each for each in self.live(member.group) if each is not member and each.held & new]
        for other in others:
            shared = {each for each in other.held & new if each[0] not in self.reborn}
            if other.is_rebalancing and member.group in self.mixed:
                # A consumer group that comes of a classic one takes what the last assignment says, which a rebalance
                # that ends in another empties: not what cooperative members still have. In Apache Kafka 4.4 too.
                continue
            assert not shared or not self.is_surely_in(other, now_ms), (
                f"OneOwner: {member} is given {sorted(shared)}, which {other} has, heard at {other.heard_ms:.0f},"
                f" at ease at {other.at_ease_ms:.0f}, now it is {now_ms:.0f}"
            )
        member.held |= new

    def got_in_generation(self, member: Membership, partitions: Iterable[Partition]) -> None:
        """SyncGroup of a group whose members all speak the classic protocol."""
        if member.group in self.mixed:
            return
        owners = self.groups[member.group].owners.setdefault(member.epoch, {})
        who = member.instance_id or member.member_id
        for partition in partitions:
            owner = owners.setdefault(partition, who)
            assert owner == who, f"OneAssignment: {member} is given {partition}, which {owner} has by it"

    def gave_up(self, member: Membership, kept: Iterable[Partition]) -> None:
        """The member is about to say that it has no more than this."""
        member.held &= set(kept)

    def refused(self, member: Membership, code: ErrorCode, now_ms: float) -> None:
        """The member is told that it is none, or is to begin anew."""
        surely = self.is_surely_in(member, now_ms)
        is_lost = self.starts != member.starts and member.epoch != member.written_epoch
        if code is ErrorCode.ILLEGAL_GENERATION and (member.group in self.mixed or is_lost):
            # When a group becomes classic, members that are behind its epoch have to join anew; a generation
            # without an assignment does not outlive its coordinator.
            surely = False
        is_removal = code in REMOVALS or member.kind == "consumer"
        assert not surely or not is_removal, (
            f"NeverUnknownInTime: {member} gets {code.name}, was heard at {member.heard_ms:.0f},"
            f" now it is {now_ms:.0f}, its session lasts {self.session_of(member):.0f}"
        )
        self.end(member, code.name)

    def end(self, member: Membership, why: str) -> None:
        """The member knows that it is none any more."""
        member.ended = why
        member.ended_starts = self.starts
        member.held.clear()
