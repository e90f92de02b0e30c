"""`odradek health`: does a broker answer, and is it ready? Exit code 0 says yes; made for health checks."""

from __future__ import annotations

from odradek.cli.arguments import client_parser, print_json
from odradek.client import Client
from odradek.failure import Failure


def run(arguments: list[str]) -> None:
    parser = client_parser("health", "Exit with 0 if a broker answers and is ready, with 1 otherwise.")
    options = parser.parse_args(arguments)
    with Client(options.bootstrap_server, options.timeout_ms) as client:
        metadata = client.metadata([])
    if not metadata.brokers:
        raise Failure(f"{options.bootstrap_server} answers but no broker of its cluster is ready.")
    node_ids = sorted(broker.node_id for broker in metadata.brokers)
    if options.json:
        print_json({"healthy": True, "cluster_id": metadata.cluster_id, "brokers": node_ids})
        return
    brokers = ", ".join(map(str, node_ids))
    print(f"{options.bootstrap_server} is ready: cluster {metadata.cluster_id}, brokers {brokers}")
