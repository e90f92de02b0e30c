"""`odradek configs`: describe and alter the settings of topics, brokers and groups."""

from __future__ import annotations

import argparse

from odradek.cli.arguments import Parser, add_client_options, counted, key_values, print_json, print_table
from odradek.client import Client, Connection, check
from odradek.failure import BAD_SETTING, Failure

# ConfigResource.Type of Apache Kafka.
RESOURCE_TYPES = {"topic": 2, "broker": 4, "broker-logger": 8, "client-metrics": 16, "group": 32}
SOURCES = {
    1: "topic", 2: "broker", 3: "all brokers", 4: "settings file", 5: "default", 6: "broker logger",
    7: "client metrics", 8: "group",
}  # fmt: skip
SET, DELETE = 0, 1
DEFAULT_SOURCE = 5


def parser() -> Parser:
    top = Parser(prog="odradek configs", description="Describe and alter settings.")
    actions = top.add_subparsers(dest="action", required=True, metavar="describe | alter")
    describing = actions.add_parser("describe", help="effective values and where they come from")
    describing.add_argument("--all", action="store_true", help="settings at their default too")
    altering = actions.add_parser("alter", help="set or delete values")
    altering.add_argument("--set", dest="sets", action="append", default=[], metavar="KEY=VALUE")
    altering.add_argument("--delete", dest="deletes", action="append", default=[], metavar="KEY")
    for action in (describing, altering):
        action.add_argument("type", choices=list(RESOURCE_TYPES))
        action.add_argument("name", help="topic name, broker id ('' for all brokers) or group id")
        add_client_options(action)
    return top


def run(arguments: list[str]) -> None:
    options = parser().parse_args(arguments)
    with Client(options.bootstrap_server, options.timeout_ms) as client:
        (describe if options.action == "describe" else alter)(client, options)


def node_for(client: Client, options: argparse.Namespace) -> Connection:
    """A broker's own settings are known to that broker only; all else any node knows."""
    if options.type in ("broker", "broker-logger") and options.name:
        if not options.name.isdecimal():
            raise Failure(f"A broker is named by its id, not {options.name!r}.", BAD_SETTING)
        client.metadata([])
        return client.node(int(options.name))
    return client.any_node()


def describe(client: Client, options: argparse.Namespace) -> None:
    from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

    resource = DescribeConfigsResource(
        resource_type=RESOURCE_TYPES[options.type], resource_name=options.name, configuration_keys=None
    )
    (result,) = node_for(client, options).request(DescribeConfigsRequest(resources=[resource])).results
    check(result.error_code, f"The {options.type} {options.name!r}", result.error_message)
    shown = [config for config in result.configs if options.all or config.config_source != DEFAULT_SOURCE]
    rows = []
    for config in sorted(shown, key=lambda config: config.name):
        value = "(hidden)" if config.is_sensitive else config.value
        source = SOURCES.get(config.config_source, str(config.config_source))
        rows.append([config.name, "" if value is None else value, source])
        if options.json:
            print_json({"name": config.name, "value": value, "source": source, "read_only": config.read_only})
    if not options.json:
        if rows:
            print_table(["NAME", "VALUE", "FROM"], rows)
        else:
            print("Every setting is at its default; --all shows them.")


def alter(client: Client, options: argparse.Namespace) -> None:
    from wire.messages.incremental_alter_configs import (
        AlterableConfig,
        AlterConfigsResource,
        IncrementalAlterConfigsRequest,
    )

    changes = [
        AlterableConfig(name=key, config_operation=SET, value=value)
        for key, value in key_values(options.sets, "--set").items()
    ]
    changes += [AlterableConfig(name=key, config_operation=DELETE, value=None) for key in options.deletes]
    if not changes:
        raise Failure("Nothing to alter: give --set KEY=VALUE or --delete KEY.", BAD_SETTING)
    resource = AlterConfigsResource(
        resource_type=RESOURCE_TYPES[options.type], resource_name=options.name, configs=changes
    )
    (result,) = node_for(client, options).request(IncrementalAlterConfigsRequest(resources=[resource])).responses
    check(result.error_code, f"The {options.type} {options.name!r} was not altered", result.error_message)
    if options.json:
        print_json({"altered": options.name, "settings": [change.name for change in changes]})
    else:
        print(f"Altered {counted(len(changes), 'setting')} of {options.type} {options.name}.")
