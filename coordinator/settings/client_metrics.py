"""Settings of client metrics subscriptions (KIP-714).

Source: Kafka's ClientMetricsConfigs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from coordinator.settings.definition import SettingTable
from coordinator.settings.rules import parse
from coordinator.settings.values import InvalidSetting
from wire.errors import ErrorCode, KafkaError

TABLE = """\
interval.ms  int   medium  client-metrics  300000  any
match        list  medium  client-metrics  ""  any
metrics      list  medium  client-metrics  ""  any
"""

CLIENT_METRICS = SettingTable(TABLE)

INTERVAL_MS_MIN = 100
INTERVAL_MS_MAX = 3_600_000

MATCHED_ATTRIBUTES = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


def check_client_metrics_configs(name: str, overrides: Mapping[str, str]) -> None:
    """Raise InvalidSetting, or KafkaError where Kafka has another code, unless the subscription is valid."""
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    unknown = next((key for key in overrides if key not in CLIENT_METRICS), None)
    if unknown is not None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {unknown}")
    values = {key: parse(CLIENT_METRICS[key], text) for key, text in overrides.items()}
    interval = values.get("interval.ms")
    if interval is not None and not INTERVAL_MS_MIN <= int(str(interval)) <= INTERVAL_MS_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval} for interval.ms, interval must be between {INTERVAL_MS_MIN} and "
            f"{INTERVAL_MS_MAX} (1 hour)",
        )
    match = values.get("match", ())
    assert isinstance(match, tuple)
    parse_match(match)


def parse_match(patterns: tuple[str, ...]) -> dict[str, re.Pattern[str]]:
    """The patterns of `match` by the attribute of the client they are for; raises InvalidSetting."""
    compiled: dict[str, re.Pattern[str]] = {}
    for text in patterns:
        attribute, equals, pattern = (part.strip() for part in text.partition("="))
        try:
            if not equals or attribute not in MATCHED_ATTRIBUTES:
                raise InvalidSetting(f"Illegal client matching pattern: {text}")
            compiled[attribute] = re.compile(pattern)
        except re.error as error:
            raise InvalidSetting(f"Illegal client matching pattern: {text} ({error})") from error
    return compiled
