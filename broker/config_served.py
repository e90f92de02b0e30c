"""What a settings file may ask for and this node does not do: refused at start, never silently left out.

A policy, an authorizer or TLS that is asked for and missing would make the node more permissive than
its owner believes.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.settings.broker import KAFKA
from coordinator.settings.layers import BrokerValues
from coordinator.settings.listeners import ListenerAddress, Voter
from coordinator.settings.values import InvalidSetting

SERVED_PROTOCOLS = ("PLAINTEXT",)

_PLUGINS = (
    "authorizer.class.name",
    "group.share.dlq.manager.class.name",
    "group.share.persister.class.name",
    "replica.selector.class",
    "security.providers",
)
"""Texts that name Java classes to which a decision is left; settings of type class are refused as such."""

_OWN_NAMES = {
    "group.consumer.assignors": {
        "range": "range",
        "uniform": "uniform",
        "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
        "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    },
    "group.share.assignors": {
        "simple": "simple",
        "org.apache.kafka.coordinator.group.assignor.SimpleAssignor": "simple",
    },
    "group.streams.assignors": {"sticky": "sticky"},
}
"""Settings that may name classes or, shorter, what is built in."""


def check_served(values: BrokerValues, listeners: Sequence[ListenerAddress], voters: Sequence[Voter]) -> None:
    """Raise InvalidSetting for the first setting that asks for what this node does not do."""
    for name in _PLUGINS:
        value = values.value(name)
        if value and values.text(name) != KAFKA[name].default:
            raise InvalidSetting(
                f"Invalid value {value} for configuration {name}: Class {value} could not be found: "
                "this node runs no Java plugins; leave the setting out."
            )
    for name, known in _OWN_NAMES.items():
        assignors = values.value(name)
        assert isinstance(assignors, tuple)
        unknown = next((assignor for assignor in assignors if assignor not in known), None)
        if unknown is not None:
            built_in = ", ".join(sorted(set(known.values())))
            text = f"Invalid value {unknown} for configuration {name}: only {built_in} can be named here."
            raise InvalidSetting(text)
    for listener in listeners:
        if listener.security_protocol not in SERVED_PROTOCOLS:
            raise InvalidSetting(
                f"Listener {listener.name} asks for {listener.security_protocol}, which this node does not speak: "
                f"map it to {' or '.join(SERVED_PROTOCOLS)} in listener.security.protocol.map."
            )
    if values.value("remote.log.storage.system.enable") is True:
        raise InvalidSetting(
            "remote.log.storage.system.enable=true asks for tiered storage, which this node does not have: "
            "leave it out."
        )
    _check_roles(values, voters)


def _check_roles(values: BrokerValues, voters: Sequence[Voter]) -> None:
    roles = values.value("process.roles")
    assert isinstance(roles, tuple)
    if set(roles) != {"broker", "controller"}:
        raise InvalidSetting(
            f"process.roles={','.join(roles)} splits broker and controller, which this node does not: "
            "set process.roles=broker,controller."
        )
    if len(voters) > 1:
        raise InvalidSetting(
            f"controller.quorum.voters={values.text('controller.quorum.voters')} names {len(voters)} voters: "
            "this node forms a quorum of itself alone; leave the setting out."
        )
