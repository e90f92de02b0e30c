"""`odradek groups`: list, describe with lag, delete."""

from __future__ import annotations

import argparse
from typing import Any

from odradek.cli.arguments import Parser, add_client_options, print_json, print_table
from odradek.cli.offsets import LATEST, offsets_of
from odradek.client import Client, check
from odradek.failure import Failure


def parser() -> Parser:
    top = Parser(prog="odradek groups", description="List, describe and delete groups.")
    actions = top.add_subparsers(dest="action", required=True, metavar="list | describe | delete")
    listing = actions.add_parser("list", help="ids, kinds and states")
    describing = actions.add_parser("describe", help="members, committed offsets and lag")
    describing.add_argument("group")
    deleting = actions.add_parser("delete")
    deleting.add_argument("group")
    for action in (listing, describing, deleting):
        add_client_options(action)
    return top


def run(arguments: list[str]) -> None:
    options = parser().parse_args(arguments)
    actions = {"list": list_groups, "describe": describe, "delete": delete}
    with Client(options.bootstrap_server, options.timeout_ms) as client:
        actions[options.action](client, options)


def listed_groups(client: Client) -> dict[str, Any]:
    """Every group by id; each node lists those it coordinates."""
    from wire.messages.list_groups import ListGroupsRequest

    found: dict[str, Any] = {}
    for broker in client.metadata([]).brokers:
        connection = client.node(broker.node_id)
        response = connection.request(ListGroupsRequest())
        check(response.error_code, f"Node {broker.node_id} does not list its groups")
        found |= {group.group_id: group for group in response.groups}
    return found


def list_groups(client: Client, options: argparse.Namespace) -> None:
    groups = [group for _, group in sorted(listed_groups(client).items())]
    if options.json:
        for group in groups:
            print_json({"group": group.group_id, "type": group.group_type, "state": group.group_state})
    elif groups:
        print_table(["GROUP", "TYPE", "STATE"], [[g.group_id, g.group_type, g.group_state] for g in groups])
    else:
        print("There are no groups.")


def describe(client: Client, options: argparse.Namespace) -> None:
    listed = listed_groups(client).get(options.group)
    if listed is None:
        raise Failure(f"There is no group {options.group!r}.")
    members = members_of(client, options.group, listed.group_type.lower())
    commits = listed.group_type.lower() in ("", "classic", "consumer")  # share groups keep their own state
    offsets = committed_offsets(client, options.group) if commits else []
    if options.json:
        member_fields = ("member_id", "client_id", "host")
        offset_fields = ("topic", "partition", "committed", "end", "lag")
        print_json({
            "group": options.group, "type": listed.group_type, "state": listed.group_state,
            "members": [dict(zip(member_fields, member, strict=True)) for member in members],
            "offsets": [dict(zip(offset_fields, row, strict=True)) for row in offsets],
        })  # fmt: skip
        return
    print(f"{options.group}  {listed.group_type}  {listed.group_state}  {len(members)} members")
    if members:
        print_table(["MEMBER", "CLIENT", "HOST"], members)
    if offsets:
        print_table(["TOPIC", "PARTITION", "COMMITTED", "END", "LAG"], offsets)


def members_of(client: Client, group_id: str, group_type: str) -> list[list[Any]]:
    """Member id, client id and host of each member."""
    request: Any
    if group_type == "consumer":
        from wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest

        request = ConsumerGroupDescribeRequest(group_ids=[group_id])
    elif group_type == "share":
        from wire.messages.share_group_describe import ShareGroupDescribeRequest

        request = ShareGroupDescribeRequest(group_ids=[group_id])
    elif group_type == "streams":
        from wire.messages.streams_group_describe import StreamsGroupDescribeRequest

        request = StreamsGroupDescribeRequest(group_ids=[group_id])
    else:
        from wire.messages.describe_groups import DescribeGroupsRequest

        request = DescribeGroupsRequest(groups=[group_id])
    (group,) = client.coordinator(group_id).request(request).groups
    check(group.error_code, f"Group {group_id!r}", group.error_message)
    return [[member.member_id, member.client_id, member.client_host] for member in group.members]


def committed_offsets(client: Client, group_id: str) -> list[list[Any]]:
    """Topic, partition, committed offset, end offset and lag of what the group has committed."""
    from wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

    connection = client.coordinator(group_id)
    if connection.highest_version(9, 9) >= 8:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)], topics=[])
        (answer,) = connection.request(request, most=9).groups
    else:
        answer = connection.request(OffsetFetchRequest(group_id=group_id, topics=None), most=7)
    check(answer.error_code, f"Committed offsets of group {group_id!r}")
    rows = []
    for topic in sorted(answer.topics, key=lambda topic: topic.name):
        try:
            ends = offsets_of(client, topic.name, client.leaders(topic.name), LATEST)
        except Failure:
            ends = {}  # the topic is gone, what was committed in it is not
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index):
            end = ends.get(partition.partition_index)
            lag = None if end is None else max(0, end - partition.committed_offset)
            rows.append([topic.name, partition.partition_index, partition.committed_offset, end, lag])
    return rows


def delete(client: Client, options: argparse.Namespace) -> None:
    from wire.messages.delete_groups import DeleteGroupsRequest

    response = client.coordinator(options.group).request(DeleteGroupsRequest(groups_names=[options.group]))
    (result,) = response.results
    check(result.error_code, f"Group {options.group!r} was not deleted", getattr(result, "error_message", None))
    if options.json:
        print_json({"deleted": options.group})
    else:
        print(f"Deleted group {options.group}.")
