"""`odradek groups describe`: who is in a group and has what, how far it has got, why it last rebalanced."""

from __future__ import annotations

import argparse
import itertools
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from odradek.cli.arguments import counted, print_json, print_table
from odradek.cli.group_lag import GroupOffset, group_offsets
from odradek.cli.groups import listed_groups
from odradek.client import Client, check
from odradek.failure import Failure

EVENTS_TIMEOUT_S = 5.0
ALIKE_SHOWN = 3
_WHO_AND_WHICH = re.compile(r"member \S+|\d+")
STATES = {
    "PreparingRebalance": "its members are to join again",
    "CompletingRebalance": "its leader is to assign the partitions",
    "Assigning": "partitions are to be assigned anew",
    "Reconciling": "members give up and take up partitions",
}
"""What the states between are about; the others say it themselves"""
Partitions = Mapping[str, Sequence[int]]


@dataclass(slots=True)
class GroupMember:
    """A member of a group of any kind. `epoch` and `target` are None where the kind has none."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: Partitions = field(default_factory=dict)
    target: Partitions | None = None
    epoch: int | None = None
    protocol: str | None = None


@dataclass(slots=True)
class GroupState:
    """What describing a group says of it besides its members."""

    members: list[GroupMember]
    facts: dict[str, Any] = field(default_factory=dict)
    """By name, for example the assignor; what a kind does not have is absent."""


def describe(client: Client, options: argparse.Namespace) -> None:
    """Print one group."""
    listed = listed_groups(client).get(options.group)
    if listed is None:
        raise Failure(f"There is no group {options.group!r}.")
    kind = listed.group_type.lower() or "classic"
    state = described(client, options.group, kind)
    # Share groups keep their own state of what was read.
    owned = ((topic, each) for member in state.members for topic, some in member.assignment.items() for each in some)
    offsets = [] if kind == "share" else group_offsets(client, options.group, owned)
    events = rebalances(client, options)
    shown = print_as_json if options.json else print_as_tables
    shown(options.group, kind, listed.group_state, state, offsets, events)


# --- what there is -----------------------------------------------------------------------------------


def described(client: Client, group_id: str, kind: str) -> GroupState:
    """Ask the coordinator by the request of the group's kind. Raises Failure."""
    if kind == "consumer":
        return _consumer_group(client, group_id)
    if kind == "share":
        from wire.messages.share_group_describe import ShareGroupDescribeRequest

        group = _ask(client, group_id, ShareGroupDescribeRequest(group_ids=[group_id]))
        members = [
            GroupMember(each.member_id, None, each.client_id, each.client_host, _by_topic(each.assignment))
            for each in group.members
        ]
        return GroupState(members, {"assignor": group.assignor_name, "epoch": group.group_epoch})
    if kind == "streams":
        from wire.messages.streams_group_describe import StreamsGroupDescribeRequest

        group = _ask(client, group_id, StreamsGroupDescribeRequest(group_ids=[group_id]))
        members = [
            GroupMember(each.member_id, each.instance_id, each.client_id, each.client_host) for each in group.members
        ]
        return GroupState(members, {"epoch": group.group_epoch})
    return _classic_group(client, group_id)


def _ask(client: Client, group_id: str, request: Any) -> Any:
    (group,) = client.coordinator(group_id).request(request).groups
    check(group.error_code, f"Group {group_id!r}", group.error_message)
    return group


def _by_topic(assignment: Any) -> Partitions:
    return {topic.topic_name: sorted(topic.partitions) for topic in assignment.topic_partitions}


def _consumer_group(client: Client, group_id: str) -> GroupState:
    from wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest

    group = _ask(client, group_id, ConsumerGroupDescribeRequest(group_ids=[group_id]))
    protocols = {0: "classic", 1: "consumer"}
    members = [
        GroupMember(
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host,
            _by_topic(each.assignment),
            _by_topic(each.target_assignment),
            each.member_epoch,
            protocols.get(each.member_type),
        )
        for each in group.members
    ]
    facts = {"assignor": group.assignor_name, "epoch": group.group_epoch, "target_epoch": group.assignment_epoch}
    return GroupState(members, facts)


def _classic_group(client: Client, group_id: str) -> GroupState:
    from wire.messages.describe_groups import DescribeGroupsRequest

    (group,) = client.coordinator(group_id).request(DescribeGroupsRequest(groups=[group_id])).groups
    check(group.error_code, f"Group {group_id!r}", group.error_message)
    is_consumer = group.protocol_type == "consumer"
    members = [
        GroupMember(
            each.member_id,
            each.group_instance_id,
            each.client_id,
            each.client_host,
            _embedded_assignment(each.member_assignment) if is_consumer else {},
        )
        for each in group.members
    ]
    facts = {"assignor": group.protocol_data} if group.protocol_data else {}
    return GroupState(members, facts)


def _embedded_assignment(data: bytes) -> Partitions:
    """The consumer's embedded assignment: an int16 version, then the fields. Nothing if it is something else."""
    from wire.errors import WireError
    from wire.messages.embedded import ConsumerProtocolAssignment

    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version < 0:
        return {}
    try:
        known = min(version, ConsumerProtocolAssignment.MAX_VERSION)
        assignment = ConsumerProtocolAssignment.decode(data, known, position=2)
    except WireError:
        return {}
    found: dict[str, list[int]] = {}
    for pair in assignment.assigned_partitions:
        found.setdefault(pair.topic, []).extend(pair.partitions)
    return {topic: sorted(partitions) for topic, partitions in found.items()}


def rebalances(client: Client, options: argparse.Namespace) -> list[dict[str, Any]]:
    """What the coordinator keeps of the group's last changes, oldest first: {at_ms, text}.

    The wire has no API for it: it comes from the control endpoint of the coordinator, if that is a node
    of this machine, or was named. Nothing otherwise.
    """
    from odradek.cli.running import announced_control_url
    from odradek.launcher import get

    cluster_id = client.metadata([]).cluster_id
    url = options.control_url or announced_control_url(client.coordinator(options.group).name, cluster_id)
    if url is None:
        return []
    events: list[dict[str, Any]] = get(url, "group-events", EVENTS_TIMEOUT_S, group=options.group)["events"]
    return events


# --- how it is shown ----------------------------------------------------------------------------------


def print_as_json(
    group_id: str, kind: str, state_name: str, state: GroupState, offsets: list[GroupOffset], events: list[Any]
) -> None:
    """One object in one line."""
    print_json({
        "group": group_id, "type": kind, "state": state_name, **state.facts,
        "members": [
            {
                "member_id": each.member_id, "instance_id": each.instance_id, "client_id": each.client_id,
                "host": each.host, "epoch": each.epoch, "protocol": each.protocol,
                "assignment": each.assignment, "target": each.target,
            }
            for each in state.members
        ],
        "offsets": [offset.as_json() for offset in offsets],
        "rebalances": events,
    })  # fmt: skip


def print_as_tables(
    group_id: str, kind: str, state_name: str, state: GroupState, offsets: list[GroupOffset], events: list[Any]
) -> None:
    """What a person looks for, in the order of looking."""
    what = f"{state_name} ({STATES[state_name]})" if state_name in STATES else state_name
    facts = [f"{name.replace('_', ' ')} {value}" for name, value in state.facts.items()]
    print("  ".join([group_id, kind, what, counted(len(state.members), "member"), *facts]))
    if state.members:
        print()
        print_table(*_members_table(state.members))
    if offsets:
        print()
        owners = {
            (topic, partition): member.instance_id or member.member_id
            for member in state.members
            for topic, partitions in member.assignment.items()
            for partition in partitions
        }
        rows = [[*offset.as_row(), owners.get((offset.topic, offset.partition), "-")] for offset in offsets]
        print_table(["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "BEHIND", "MEMBER"], rows)
    if events:
        print()
        now_ms = time.time() * 1000
        said = [(each["at_ms"], each["text"].removeprefix(f"group {group_id}: ")) for each in events]
        print_table(["AGO", "WHAT HAPPENED"], [[ago(now_ms - at_ms), text] for at_ms, text in shortened(said)])


def shortened(events: Iterable[tuple[float, str]]) -> list[tuple[float, str]]:
    """Times and sentences, where many in a row say the same of one member after another: the first and the last."""
    found: list[tuple[float, str]] = []
    for _, each in itertools.groupby(events, key=lambda event: _WHO_AND_WHICH.sub("", event[1])):
        row = list(each)
        if len(row) > ALIKE_SHOWN:
            row = [row[0], (row[-1][0], f"({len(row) - 2} more like it)"), row[-1]]
        found += row
    return found


def _members_table(members: list[GroupMember]) -> tuple[list[str], list[list[Any]]]:
    """Columns that no member fills are left out."""
    is_mixed = len({each.protocol for each in members}) > 1
    columns: list[tuple[str, list[Any]]] = [
        ("MEMBER", [each.member_id for each in members]),
        ("INSTANCE", [each.instance_id for each in members]),
        ("CLIENT", [each.client_id for each in members]),
        ("HOST", [each.host.removeprefix("/") for each in members]),
        ("EPOCH", [each.epoch for each in members]),
        ("PROTOCOL", [each.protocol if is_mixed else None for each in members]),
        ("PARTITIONS", [partitions_text(each.assignment) for each in members]),
        ("TO BECOME", [_target_text(each) for each in members]),
    ]
    used = [(head, cells) for head, cells in columns if any(cell is not None for cell in cells)]
    rows = [["-" if cell is None else cell for cell in row] for row in zip(*(cells for _, cells in used), strict=True)]
    return [head for head, _ in used], rows


def _target_text(member: GroupMember) -> str | None:
    if member.target is None or dict(member.target) == dict(member.assignment):
        return None
    return partitions_text(member.target)


def partitions_text(partitions: Partitions) -> str:
    """`orders 0-3,7  payments 1`; a dash for none."""
    return "  ".join(f"{topic} {ranges(each)}" for topic, each in sorted(partitions.items()) if each) or "-"


def ranges(numbers: Iterable[int]) -> str:
    """Numbers as ranges: `0-3,7`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def ago(milliseconds: float) -> str:
    """A span of time in its two largest units: `3 s`, `2 min 5 s`, `4 h 30 min`, `2 d 1 h`."""
    seconds = max(int(milliseconds / 1000), 0)
    units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")]
    parts: list[str] = []
    for size, name in units:
        count, seconds = divmod(seconds, size)
        if count or (name == "s" and not parts):
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])
