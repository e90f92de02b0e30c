"""Listeners, protocols, voters: the settings that are small languages of their own.

Source: Kafka's EndPoint, SocketServerConfigs.listenerListToEndPoints, AbstractKafkaConfig
(effectiveAdvertisedBrokerListeners, effectiveListenerSecurityProtocolMap), QuorumConfig.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from coordinator.settings.layers import BrokerValues
from coordinator.settings.values import InvalidSetting

_ENDPOINT = r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)"
_IPV6 = r"[0-9a-fA-F:]+(%[0-9a-zA-Z]+)?"

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class ListenerAddress(NamedTuple):
    """One entry of `listeners` with what is told to clients. `host` "" is every address of the machine."""

    name: str
    host: str
    port: int
    security_protocol: str
    advertised_host: str | None = None
    advertised_port: int | None = None
    is_controller: bool = False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


class Voter(NamedTuple):
    """One entry of `controller.quorum.voters`."""

    node_id: int
    host: str
    port: int


class _Endpoint(NamedTuple):
    name: str
    host: str
    port: int


def parse_endpoint(setting: str, text: str) -> _Endpoint:
    """`NAME://host:port`; raises InvalidSetting naming `setting`."""
    match = re.fullmatch(_ENDPOINT, text)
    if match is None or not -1 <= int(match[3]) <= 65535 or not match[1]:
        raise InvalidSetting(f"{setting} has the entry {text!r}: it must read NAME://host:port, as PLAINTEXT://:9092.")
    return _Endpoint(match[1].upper(), match[2], int(match[3]))


def protocol_map(values: BrokerValues) -> dict[str, str]:
    """The security protocol of each listener name. Controller listeners speak PLAINTEXT where neither
    the map is set nor a listener with another protocol exists."""
    text = values.text("listener.security.protocol.map") or ""
    protocols: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = entry.rpartition(":")
        name, protocol = name.strip().upper(), protocol.strip().upper()
        if not colon or protocol not in PROTOCOLS:
            raise InvalidSetting(
                f"listener.security.protocol.map has the entry {entry!r}: it must read NAME:PROTOCOL, "
                f"the protocol one of {', '.join(PROTOCOLS)}."
            )
        if name in protocols:
            raise InvalidSetting(f"listener.security.protocol.map={text} names the listener {name} twice.")
        protocols[name] = protocol
    if "listener.security.protocol.map" not in values.layers.effective():
        listeners = _texts(values, "listeners")
        names = [parse_endpoint("listeners", entry).name for entry in listeners]
        if not any(name.startswith(("SSL", "SASL")) for name in names):
            for name in controller_listener_names(values):
                protocols.setdefault(name, "PLAINTEXT")
    return protocols


def controller_listener_names(values: BrokerValues) -> tuple[str, ...]:
    """The names of the listeners that controllers use among themselves, in upper case."""
    return tuple(name.upper() for name in _texts(values, "controller.listener.names"))


def listeners(values: BrokerValues) -> tuple[ListenerAddress, ...]:
    """The listeners of a node with what is told to clients; raises InvalidSetting."""
    endpoints = [parse_endpoint("listeners", entry) for entry in _texts(values, "listeners")]
    _check_distinct(endpoints)
    advertised = _advertised(values, endpoints)
    protocols = protocol_map(values)
    controllers = controller_listener_names(values)
    found = []
    for endpoint in endpoints:
        if endpoint.name not in protocols:
            raise InvalidSetting(
                f"No security protocol is defined for listener {endpoint.name}: "
                f"add {endpoint.name}:PLAINTEXT to listener.security.protocol.map."
            )
        told = advertised.get(endpoint.name)
        found.append(
            ListenerAddress(
                *endpoint,
                security_protocol=protocols[endpoint.name],
                advertised_host=told.host if told else None,
                advertised_port=told.port if told else None,
                is_controller=endpoint.name in controllers,
            )
        )
    for listener in found:
        told_host = listener.host if listener.advertised_host is None else listener.advertised_host
        if told_host in ("0.0.0.0", "::") and not listener.is_controller:
            raise InvalidSetting(
                f"advertised.listeners cannot tell clients {told_host}, which leads nowhere: set "
                f"advertised.listeners={listener.name}://<an address they reach>:{listener.port or 'PORT'}."
            )
    return tuple(found)


def inter_broker_listener_name(values: BrokerValues, found: Sequence[ListenerAddress]) -> str:
    """The listener that brokers use among themselves; raises InvalidSetting."""
    name, protocol = values.text("inter.broker.listener.name"), values.text("security.inter.broker.protocol")
    is_protocol_set = "security.inter.broker.protocol" in values.layers.effective()
    if name is not None and is_protocol_set:
        raise InvalidSetting(
            f"Only one of inter.broker.listener.name={name} and security.inter.broker.protocol={protocol} can be set."
        )
    wanted = (name or protocol or "PLAINTEXT").upper()
    names = [listener.name for listener in found if not listener.is_controller]
    if wanted not in names:
        setting = "security.inter.broker.protocol" if is_protocol_set else "inter.broker.listener.name"
        way_out = "set inter.broker.listener.name instead" if is_protocol_set else "set it"
        raise InvalidSetting(
            f"{setting}={wanted} names no listener of this broker: {way_out} to one of {', '.join(names)}."
        )
    return wanted


def voters(values: BrokerValues) -> tuple[Voter, ...]:
    """The voters that `controller.quorum.voters` names."""
    found = []
    for entry in _texts(values, "controller.quorum.voters"):
        node_id, _, address = entry.partition("@")
        host, _, port = address.rpartition(":")
        found.append(Voter(int(node_id), host.strip("[]"), int(port)))
    if len({voter.node_id for voter in found}) != len(found):
        text = values.text("controller.quorum.voters")
        raise InvalidSetting(f"controller.quorum.voters={text} names a node id twice.")
    return tuple(found)


def _advertised(values: BrokerValues, endpoints: Sequence[_Endpoint]) -> dict[str, _Endpoint]:
    names = {endpoint.name for endpoint in endpoints}
    controllers = controller_listener_names(values)
    advertised: dict[str, _Endpoint] = {}
    for entry in _texts(values, "advertised.listeners"):
        endpoint = parse_endpoint("advertised.listeners", entry)
        if endpoint.name not in names:
            raise InvalidSetting(
                f"advertised.listeners has the entry {entry}, but listeners has no {endpoint.name}: "
                f"it has {', '.join(sorted(names))}."
            )
        if endpoint.name in advertised:
            raise InvalidSetting(f"advertised.listeners names the listener {endpoint.name} twice.")
        if endpoint.name in controllers and "controller" not in _texts(values, "process.roles"):
            raise InvalidSetting(
                f"advertised.listeners has the entry {entry} of the controllers (controller.listener.names), "
                "but process.roles has no controller."
            )
        advertised[endpoint.name] = endpoint
    return advertised


def _check_distinct(endpoints: Sequence[_Endpoint]) -> None:
    """Each listener has its own name, and its own port unless one is IPv4 and the other IPv6."""
    by_name: dict[str, _Endpoint] = {}
    for endpoint in endpoints:
        if endpoint.name in by_name:
            raise InvalidSetting(f"listeners names the listener {endpoint.name} twice: each needs its own name.")
        by_name[endpoint.name] = endpoint
    for place, one in enumerate(endpoints):
        for other in endpoints[:place]:
            same = one.port == other.port and one.port > 0
            if same and _is_ipv6(one.host) == _is_ipv6(other.host):
                raise InvalidSetting(
                    f"listeners gives port {one.port} to {other.name} and to {one.name}: each needs its own port."
                )


def _is_ipv6(host: str) -> bool:
    return ":" in host and re.fullmatch(_IPV6, host) is not None


def _texts(values: BrokerValues, name: str) -> tuple[str, ...]:
    value = values.value(name)
    return value if isinstance(value, tuple) else ()
