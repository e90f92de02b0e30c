"""`odradek groups`: list, describe with lag and rebalances, reset and delete offsets, delete."""

from __future__ import annotations

import argparse
from typing import Any

from odradek.cli.arguments import Parser, add_client_options, print_json, print_table
from odradek.client import Client, check, error_name
from odradek.failure import Failure
from wire.errors import ErrorCode


def parser() -> Parser:
    top = Parser(prog="odradek groups", description="List, describe and delete groups; set and delete their offsets.")
    actions = top.add_subparsers(
        dest="action", required=True, metavar="list | describe | reset-offsets | delete-offsets | delete"
    )
    listing = actions.add_parser("list", help="ids, kinds and states")
    describing = actions.add_parser("describe", help="members, assignments, offsets, lag, last rebalances")
    describing.add_argument("group")
    describing.add_argument("--control-url", help="the coordinator's control endpoint, which tells of rebalances")
    resetting = actions.add_parser(
        "reset-offsets", help="set where a group goes on reading", description="Set where a group goes on reading."
    )
    resetting.add_argument("group")
    add_reset_options(resetting)
    forgetting = actions.add_parser("delete-offsets", help="forget what a group committed in topics")
    forgetting.add_argument("group")
    forgetting.add_argument(
        "--topic",
        action="append",
        required=True,
        metavar="TOPIC[:PARTITION,…]",
        help="a topic, or some of its partitions; may be given again",
    )
    deleting = actions.add_parser("delete", help="delete groups that have no members, with their offsets")
    deleting.add_argument("groups", nargs="+", metavar="group")
    for action in (listing, describing, resetting, forgetting, deleting):
        add_client_options(action)
    return top


def add_reset_options(resetting: argparse.ArgumentParser) -> None:
    """What of a group is set, and to what."""
    resetting.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="TOPIC[:PARTITION,…]",
        help="a topic, or some of its partitions; may be given again",
    )
    resetting.add_argument("--all-topics", action="store_true", help="all partitions in which the group has committed")
    target = resetting.add_mutually_exclusive_group(required=True)
    target.add_argument("--to-earliest", action="store_true", help="the first record that is there")
    target.add_argument("--to-latest", action="store_true", help="behind the last record")
    target.add_argument("--to-current", action="store_true", help="where it is (to export, or to fill in the rest)")
    target.add_argument("--to-offset", type=int, metavar="N")
    target.add_argument(
        "--to-datetime", metavar="TIME", help="the first record from then on: 2026-01-31T12:00:00+01:00 (UTC if unsaid)"
    )
    target.add_argument(
        "--by-duration", metavar="TIME", help="the first record of the last 90s, 15m, 3h30m, 7d or P1DT2H"
    )
    target.add_argument("--shift-by", type=int, metavar="N", help="so many records on, or back if negative")
    target.add_argument("--from-file", metavar="FILE", help="lines of topic,partition,offset (- reads standard input)")
    resetting.add_argument("--dry-run", action="store_true", help="say what would be set and set nothing")
    resetting.add_argument("--export", action="store_true", help="print lines of topic,partition,offset")


def run(arguments: list[str]) -> None:
    options = parser().parse_args(arguments)
    with Client(options.bootstrap_server, options.timeout_ms) as client:
        if options.action == "list":
            list_groups(client, options)
        elif options.action == "delete":
            delete(client, options)
        elif options.action == "describe":
            from odradek.cli.group_description import describe

            describe(client, options)
        else:
            from odradek.cli.group_offsets import delete_offsets, reset_offsets

            (reset_offsets if options.action == "reset-offsets" else delete_offsets)(client, options)


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


def delete(client: Client, options: argparse.Namespace) -> None:
    from wire.messages.delete_groups import DeleteGroupsRequest

    refused: list[str] = []
    for group_id in dict.fromkeys(options.groups):
        response = client.coordinator(group_id).request(DeleteGroupsRequest(groups_names=[group_id]))
        (result,) = response.results
        if result.error_code:
            refused.append(why_not_deleted(group_id, result.error_code))
        elif options.json:
            print_json({"deleted": group_id})
        else:
            print(f"Deleted group {group_id}.")
    if refused:
        raise Failure(" ".join(refused))


def why_not_deleted(group_id: str, error_code: int) -> str:
    """In a sentence."""
    if error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return f"There is no group {group_id!r}."
    if error_code == ErrorCode.NON_EMPTY_GROUP:
        return f"Group {group_id!r} has members: stop them first ({error_name(error_code)})."
    return f"Group {group_id!r} was not deleted: {error_name(error_code)}."
