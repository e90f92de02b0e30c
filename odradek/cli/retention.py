"""`odradek retention`: apply a topic's retention on a running node now, through its control endpoint."""

from __future__ import annotations

from odradek.cli import compact
from odradek.cli.arguments import Parser


def run(arguments: list[str]) -> None:
    parser = Parser(
        prog="odradek retention",
        description="Apply a topic's retention on a node of this machine now, and return when that is done.",
    )
    compact.apply(parser, "retention", "Applied the retention of", arguments)
