"""`odradek start`: run a node in the foreground until it is interrupted.

A person gets a few lines on standard error; a program asks for `--json` and reads one line on standard output, or names
a `--ready-file`. Everything else is Kafka's settings, by their own names.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import sys
from collections.abc import Mapping
from typing import Any

from odradek.address import parse_address
from odradek.cli.arguments import Parser
from odradek.failure import BAD_SETTING, Failure
from odradek.node import load, serve


def parser() -> Parser:
    starting = Parser(prog="odradek start", description="Run a node in the foreground until it is interrupted.")
    starting.add_argument("--port", type=port, help="the port for clients (default 9092; 0 takes a free one)")
    starting.add_argument("--data", metavar="DIR", help="keep the data in a directory (default: in memory)")
    starting.add_argument("--config", metavar="FILE", help="a settings file: YAML, or Kafka's server.properties")
    starting.add_argument(
        "--set", dest="sets", action="append", default=[], metavar="KEY=VALUE", help="a setting by Kafka's name"
    )
    starting.add_argument("--listeners", metavar="LIST", help="the same as --set listeners=LIST")
    starting.add_argument("--advertised-listeners", metavar="LIST", help="the same as --set advertised.listeners=LIST")
    starting.add_argument("--json", action="store_true", help="say that it is ready in one line of JSON on stdout")
    starting.add_argument("--ready-file", metavar="FILE", help="write that line into a file, which goes at the end")
    starting.add_argument("--stop-with-stdin", action="store_true", help="end when standard input ends")
    return starting


def port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a number from 0 to 65535")
    return int(text)


def run(arguments: list[str]) -> None:
    options = parser().parse_args(arguments)
    config = load(file=options.config, sets=settings_of(options), data=options.data)
    for warning in config.warnings:
        print(f"WARNING: {warning}", file=sys.stderr)
    with contextlib.ExitStack() as at_the_end:
        serve(
            config,
            lambda ready: tell(ready, config, options, at_the_end),
            stop_with_stdin=options.stop_with_stdin,
        )


def settings_of(options: argparse.Namespace) -> list[str]:
    """The settings that the options stand for, with those given by --set."""
    sets = list(options.sets)
    given = {setting.partition("=")[0].strip() for setting in sets}
    for name, value in (
        ("listeners", options.listeners),
        ("advertised.listeners", options.advertised_listeners),
        ("listeners", None if options.port is None else f"PLAINTEXT://localhost:{options.port}"),
    ):
        if value is None:
            continue
        if name in given:
            raise Failure(f"{name} is given twice: by --port, its own option or --set; leave all but one.", BAD_SETTING)
        given.add(name)
        sets.append(f"{name}={value}")
    return sets


def tell(ready: Mapping[str, Any], config: Any, options: argparse.Namespace, at_the_end: contextlib.ExitStack) -> None:
    """Say that the node is ready, to whoever asked for it in the way they asked."""
    from odradek.cli.running import announced, write_private

    at_the_end.enter_context(announced(dict(ready)))
    line = json.dumps(ready)
    if options.ready_file:
        try:
            write_private(options.ready_file, line + "\n")
        except OSError as error:
            raise Failure(
                f"The file of --ready-file {options.ready_file} cannot be written: {error.strerror}."
            ) from None
        at_the_end.callback(remove, options.ready_file)
    if options.json:
        try:
            print(line, flush=True)
        except OSError as error:
            raise Failure(f"The ready line cannot be written to standard output: {error.strerror}.") from None
    else:
        print("\n".join(greeting(ready, config)), file=sys.stderr, flush=True)


def remove(file: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(file)


def greeting(ready: Mapping[str, Any], config: Any) -> list[str]:
    """What a person wants to know at the start, in a few lines."""
    command = os.environ.get("ODRADEK_COMMAND", "odradek")
    address = str(ready["bootstrap_servers"]).split(",")[0]
    where = "in memory, gone when it stops (--data DIR keeps it)" if config.in_memory else ", ".join(config.log_dirs)
    made = "made at first use" if config["auto.create.topics.enable"] else "made by request only"
    reset = "" if address.endswith(":9092") else f" -b {address}"
    return [
        f"Odradek is ready and answers as Apache Kafka {config['odradek.kafka.release']}.",
        f"  bootstrap.servers  {ready['bootstrap_servers']}{advertised(ready, config)}",
        f"  data               {where}",
        f"  topics             {made} (auto.create.topics.enable={str(config['auto.create.topics.enable']).lower()})",
        "  stop               Ctrl-C",
        f"  reset              {command} reset{reset}",
    ]


def advertised(ready: Mapping[str, Any], config: Any) -> str:
    """What clients are told instead of the addresses of the ready line, for the end of its line; empty if nothing."""
    told = []
    listeners = [listener for listener in config.listeners if not listener.is_controller]
    for address, listener in zip(str(ready["bootstrap_servers"]).split(","), listeners, strict=True):
        host, port = parse_address(address)
        if listener.advertised_host is not None:
            host = listener.advertised_host
        elif not listener.host:
            host = socket.gethostname()
        port = port if listener.advertised_port is None else listener.advertised_port
        told.append(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    return "" if told == str(ready["bootstrap_servers"]).split(",") else f" (advertised as {', '.join(told)})"
