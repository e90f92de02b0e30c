"""Where our defaults are kinder than Kafka's, and why; the one list that the docs and the README show.

Only defaults differ: a value that is set means what it means in Kafka, and what a real broker
refuses is refused here.
"""

from __future__ import annotations

from typing import NamedTuple


class KinderDefault(NamedTuple):
    """A default of ours: the text of the value, Kafka's being in the tables, and the reason."""

    value: str
    why: str


KINDER_BEHAVIOUR = (
    "With a single voter an internal topic gets as many replicas as there are brokers where its setting says more.",
    "A Metadata request that creates its topic is answered with the topic and its leader, without an error before.",
    "A request for a coordinator waits for the internal topic it needs instead of being refused while that is made.",
    "Index files of logs grow with what is in them instead of having their full size from the start.",
    "Refusals name the object, the value, the limit and the setting.",
)
"""What else is kinder, without a setting; one sentence each."""

KINDER_DEFAULTS: dict[str, KinderDefault] = {
    "controller.listener.names": KinderDefault(
        "CONTROLLER", "a node that is its own controller needs no listener for it, and so no setting"
    ),
    "group.initial.rebalance.delay.ms": KinderDefault(
        "0", "the first consumer of a group gets its partitions at once instead of after three seconds"
    ),
    "listeners": KinderDefault(
        "PLAINTEXT://localhost:9092", "what this machine alone can reach also tells clients an address that works"
    ),
    "metadata.max.idle.interval.ms": KinderDefault(
        "0", "with a single voter nobody waits for a sign of life, so an idle node writes nothing"
    ),
    "node.id": KinderDefault("1", "one node needs no number"),
    "process.roles": KinderDefault("broker,controller", "one node is its own controller"),
    "queued.max.request.bytes": KinderDefault(
        "268435456", "requests in hand cannot fill the memory, whatever clients send"
    ),
    "socket.listen.backlog.size": KinderDefault(
        "1024", "clients that come all at once are let in without waiting a second for their next try"
    ),
}
