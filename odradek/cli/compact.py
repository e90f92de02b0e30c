"""`odradek compact`: compact a topic of a running node now, through its control endpoint."""

from __future__ import annotations

from odradek.cli.arguments import Parser, add_control_options, print_json
from odradek.cli.running import control_url_of
from odradek.launcher import COMPACT_TIMEOUT_S, post


def run(arguments: list[str]) -> None:
    parser = Parser(
        prog="odradek compact",
        description="Compact a topic of a node of this machine now, and return when that is done.",
    )
    apply(parser, "compact", "Compacted", arguments)


def apply(parser: Parser, action: str, done: str, arguments: list[str]) -> None:
    """Ask the node for an action on a topic's logs, and say what it made of them."""
    parser.add_argument("topic")
    parser.add_argument("--json", action="store_true", help="print JSON, one object a line")
    add_control_options(parser)
    options = parser.parse_args(arguments)
    control_url = options.control_url or control_url_of(options.bootstrap_server)
    upshot = post(control_url, action, COMPACT_TIMEOUT_S, topic=options.topic)
    if options.json:
        print_json(upshot)
        return
    partitions = f"{upshot['partitions']} partition{'' if upshot['partitions'] == 1 else 's'}"
    print(f"{done} {options.topic}, {partitions}: {upshot['bytes_before']} bytes are now {upshot['bytes_after']}.")
