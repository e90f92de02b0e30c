"""`odradek reset`: empty a running node through its control endpoint."""

from __future__ import annotations

from odradek.cli.arguments import Parser, add_control_options
from odradek.cli.running import control_url_of
from odradek.launcher import RESET_TIMEOUT_S, post


def run(arguments: list[str]) -> None:
    parser = Parser(prog="odradek reset", description="Empty a node of this machine: topics, groups, everything.")
    add_control_options(parser)
    options = parser.parse_args(arguments)
    post(options.control_url or control_url_of(options.bootstrap_server), "reset", RESET_TIMEOUT_S)
    print("The node is empty.")
