"""What the commands' argument parsers share: errors in one sentence, and the options that reach a broker."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any, NoReturn

from odradek.failure import BAD_SETTING, Failure

DEFAULT_BOOTSTRAP_SERVER = "127.0.0.1:9092"


class Parser(argparse.ArgumentParser):
    """A parser that raises Failure instead of printing its usage and leaving."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Refuse what is left over here and not in the parser above, whose help does not tell of it."""
        parsed, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return parsed, left

    def error(self, message: str) -> NoReturn:
        raise Failure(f"{message} (odradek {self.prog.split(' ', 1)[-1]} --help tells the options).", BAD_SETTING)


def client_parser(command: str, description: str) -> Parser:
    """A parser with the options of every command that speaks to a running broker."""
    parser = Parser(prog=f"odradek {command}", description=description)
    add_client_options(parser)
    return parser


def add_client_options(parser: argparse.ArgumentParser) -> None:
    _add_address(parser, f"the broker to ask (default {DEFAULT_BOOTSTRAP_SERVER}, or $ODRADEK_BOOTSTRAP_SERVER)")
    parser.add_argument(
        "--timeout-ms", type=positive, default=10_000, metavar="MS", help="how long to wait for each answer (10000)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, one object a line")


def add_control_options(parser: argparse.ArgumentParser) -> None:
    """The options of a command that speaks to a node's control endpoint."""
    _add_address(parser, f"the node, by the address its clients use (default {DEFAULT_BOOTSTRAP_SERVER})")
    parser.add_argument(
        "--control-url",
        default=os.environ.get("ODRADEK_CONTROL_URL"),
        help="the node, by the control_url of its ready line ($ODRADEK_CONTROL_URL)",
    )


def _add_address(parser: argparse.ArgumentParser, meaning: str) -> None:
    parser.add_argument(
        "-b",
        "--bootstrap-server",
        metavar="HOST:PORT",
        default=os.environ.get("ODRADEK_BOOTSTRAP_SERVER", DEFAULT_BOOTSTRAP_SERVER),
        help=meaning,
    )


def positive(text: str) -> int:
    """An argument that is a whole number above zero."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def not_negative(text: str) -> int:
    """An argument that is a whole number from zero."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return int(text)


def key_values(pairs: list[str], option: str) -> dict[str, str]:
    """`key=value` arguments as a dictionary; raises Failure for one without `=`."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise Failure(f"{option} takes KEY=VALUE, not {pair!r}.", BAD_SETTING)
        found[key.strip()] = value.strip()
    return found


def counted(number: int, noun: str) -> str:
    """A number with its noun in singular or plural: `1 record`, `2 records`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def print_json(value: dict[str, Any]) -> None:
    # Where the output is not UTF-8, what its encoding lacks is escaped as JSON escapes it.
    print(json.dumps(value, ensure_ascii=sys.stdout.encoding.lower() != "utf-8"))


def printable(text: str) -> str:
    """Names come from clients: what would break a line, or write on a terminal, is escaped."""
    return text if text.isprintable() else "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def print_table(heads: list[str], rows: list[list[Any]]) -> None:
    """Columns as wide as their longest cell, two spaces apart."""
    cells = [heads, *[[printable(str(cell)) for cell in row] for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
