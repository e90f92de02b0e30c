"""One member of a group as a process: `member.py HOST:PORT GROUP TOPIC [SETTING=VALUE …]`.

Says in lines of JSON what it takes up, gives up and reads; leaves the group when it gets SIGTERM.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from typing import Any

from confluent_kafka import Consumer

stopping = threading.Event()


def say(event: str, **what: Any) -> None:
    print(json.dumps({"event": event, "at": time.time(), **what}), flush=True)


def main(address: str, group: str, topic: str, *settings: str) -> None:
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    base = {"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**base, **dict(each.split("=", 1) for each in settings)})

    def told(event: str) -> Any:
        return lambda _, partitions: say(event, partitions=[[each.topic, each.partition] for each in partitions])

    consumer.subscribe([topic], on_assign=told("assigned"), on_revoke=told("revoked"), on_lost=told("revoked"))
    while not stopping.is_set():
        messages = [message for message in consumer.consume(500, 0.1) if message.error() is None]
        if messages:
            say("read", count=len(messages))
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
