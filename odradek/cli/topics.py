"""`odradek topics`: list, describe, create, delete."""

from __future__ import annotations

import argparse
from typing import Any

from odradek.cli.arguments import Parser, add_client_options, counted, key_values, positive, print_json, print_table
from odradek.client import Client, check
from odradek.failure import Failure
from wire.primitives import uuid_text


def parser() -> Parser:
    top = Parser(prog="odradek topics", description="List, describe, create and delete topics.")
    actions = top.add_subparsers(dest="action", required=True, metavar="list | describe | create | delete")
    listing = actions.add_parser("list", help="names, partitions and replicas")
    listing.add_argument("--internal", action="store_true", help="internal topics too")
    describing = actions.add_parser("describe", help="each partition's leader, replicas and offsets")
    describing.add_argument("topic")
    creating = actions.add_parser("create", help="a topic with its partitions, replicas and settings")
    creating.add_argument("topic")
    creating.add_argument("--partitions", type=positive, default=-1, help="default: the broker's num.partitions")
    creating.add_argument(
        "--replication-factor", type=positive, default=-1, help="default: the broker's default.replication.factor"
    )
    creating.add_argument("--config", action="append", default=[], metavar="KEY=VALUE")
    deleting = actions.add_parser("delete", help="topics with all their records")
    deleting.add_argument("topics", nargs="+", metavar="topic")
    for action in (listing, describing, creating, deleting):
        add_client_options(action)
    return top


def run(arguments: list[str]) -> None:
    options = parser().parse_args(arguments)
    actions = {"list": list_topics, "describe": describe, "create": create, "delete": delete}
    with Client(options.bootstrap_server, options.timeout_ms) as client:
        actions[options.action](client, options)


def list_topics(client: Client, options: argparse.Namespace) -> None:
    topics = [topic for topic in client.metadata(None).topics if options.internal or not topic.is_internal]
    topics.sort(key=lambda topic: topic.name or "")
    rows: list[list[Any]] = []
    for topic in topics:
        replicas = max((len(partition.replica_nodes) for partition in topic.partitions), default=0)
        if options.json:
            print_json({"topic": topic.name, "topic_id": uuid_text(topic.topic_id),
                        "partitions": len(topic.partitions), "replication_factor": replicas})  # fmt: skip
        rows.append([topic.name, len(topic.partitions), replicas])
    if not options.json:
        if rows:
            print_table(["TOPIC", "PARTITIONS", "REPLICAS"], rows)
        else:
            print("There are no topics.")


def describe(client: Client, options: argparse.Namespace) -> None:
    from odradek.cli.offsets import EARLIEST, LATEST, offsets_of

    (topic,) = client.metadata([options.topic]).topics
    check(topic.error_code, f"Topic {options.topic!r}")
    leaders = client.leaders(options.topic)
    first = offsets_of(client, options.topic, leaders, EARLIEST)
    end = offsets_of(client, options.topic, leaders, LATEST)
    rows = []
    for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index):
        index = partition.partition_index
        row = {
            "partition": index, "leader": partition.leader_id, "replicas": list(partition.replica_nodes),
            "isr": list(partition.isr_nodes), "log_start_offset": first[index], "end_offset": end[index],
        }  # fmt: skip
        rows.append(row)
    if options.json:
        print_json({"topic": options.topic, "topic_id": uuid_text(topic.topic_id), "partitions": rows})
        return
    print(f"{options.topic}  id {uuid_text(topic.topic_id)}")
    heads = ["PARTITION", "LEADER", "REPLICAS", "ISR", "FIRST", "END"]
    print_table(heads, [[cell_text(cell) for cell in row.values()] for row in rows])


def cell_text(cell: Any) -> Any:
    return ",".join(map(str, cell)) if isinstance(cell, list) else cell


def create(client: Client, options: argparse.Namespace) -> None:
    from wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

    settings = key_values(options.config, "--config")
    configs = [CreatableTopicConfig(name=key, value=value) for key, value in settings.items()]
    topic = CreatableTopic(
        name=options.topic,
        num_partitions=options.partitions,
        replication_factor=options.replication_factor,
        configs=configs,
    )
    response = client.controller().request(CreateTopicsRequest(topics=[topic], timeout_ms=options.timeout_ms))
    (result,) = response.topics
    check(result.error_code, f"Topic {options.topic!r} was not created", result.error_message)
    if options.json:
        print_json({"created": result.name, "partitions": result.num_partitions})
    else:
        print(f"Created topic {result.name} with {counted(result.num_partitions, 'partition')}.")


def delete(client: Client, options: argparse.Namespace) -> None:
    from wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name) for name in options.topics],
        topic_names=[],
        timeout_ms=options.timeout_ms,
    )
    faults = []
    for result in client.controller().request(request).responses:
        try:
            check(result.error_code, f"Topic {result.name!r} was not deleted", result.error_message)
        except Failure as failure:
            faults.append(str(failure))
            continue
        if options.json:
            print_json({"deleted": result.name})
        else:
            print(f"Deleted topic {result.name}.")
    if faults:
        raise Failure(" ".join(faults))
