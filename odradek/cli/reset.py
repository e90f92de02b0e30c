"""`odradek reset`: empty a running node through its control endpoint."""

from __future__ import annotations

import os

from odradek.cli.arguments import DEFAULT_BOOTSTRAP_SERVER, Parser
from odradek.cli.running import control_url_of
from odradek.launcher import RESET_TIMEOUT_S, post


def run(arguments: list[str]) -> None:
    parser = Parser(prog="odradek reset", description="Empty a node of this machine: topics, groups, everything.")
    parser.add_argument(
        "-b",
        "--bootstrap-server",
        metavar="HOST:PORT",
        default=os.environ.get("ODRADEK_BOOTSTRAP_SERVER", DEFAULT_BOOTSTRAP_SERVER),
        help=f"the node, by the address its clients use (default {DEFAULT_BOOTSTRAP_SERVER})",
    )
    parser.add_argument(
        "--control-url",
        default=os.environ.get("ODRADEK_CONTROL_URL"),
        help="the node, by the control_url of its ready line ($ODRADEK_CONTROL_URL)",
    )
    options = parser.parse_args(arguments)
    post(options.control_url or control_url_of(options.bootstrap_server), "reset", RESET_TIMEOUT_S)
    print("The node is empty.")
