"""Writes docs/settings.md from the tables of settings.

python docs/settings.py           write the page
python docs/settings.py --check   exit with 1 if the page is not what the tables say

Which settings have an effect is not kept by hand: a setting counts as read when the source of the node names
it outside the tables.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "settings.md"
sys.path.insert(0, str(ROOT))

from coordinator.settings import resources
from coordinator.settings.broker import KAFKA, broker_setting
from coordinator.settings.client_metrics import CLIENT_METRICS
from coordinator.settings.definition import Setting, Update
from coordinator.settings.documentation import documentation
from coordinator.settings.group import GROUP
from coordinator.settings.kinder import KINDER_BEHAVIOUR, KINDER_DEFAULTS
from coordinator.settings.node import NODE
from coordinator.settings.topic import TOPIC

READ_THROUGH = ("settings/listeners.py",)
"""The part of the settings' own package that reads them for the node; the rest defines and checks them."""

_FIELDS_BEHIND = {
    ".compacts": [".cleanup_policy"],
    ".deletes": [".cleanup_policy"],
    ".is_log_append_time": [".message_timestamp_type"],
    ".retention_bytes_limit": [".retention_bytes"],
    ".retention_ms_limit": [".retention_ms"],
}
"""What the properties of a log's effective settings read."""

_CHANGES = {
    Update.READ_ONLY: "at start",
    Update.CLUSTER_WIDE: "any time",
    Update.PER_BROKER: "any time, one broker",
    Update.PER_LISTENER: "any time, one listener",
    Update.DYNAMIC_ONLY: "any time, not in a file",
}

_INTRODUCTION = """# Settings

Made by `python docs/settings.py` from the tables in `coordinator/settings`: do not edit.

A node is given settings by their names in Kafka, from three places; the first that speaks wins:

1. the command line: `--set name=value` (and `--data DIR`, which is `log.dirs`); an unknown name is refused,
2. the environment, as Apache Kafka's image reads it: `KAFKA_LOG_RETENTION_MS` is `log.retention.ms`, `__` stands
   for `_` and `___` for `-`; unknown names are ignored, `CLUSTER_ID` is the id of a new cluster,
3. a file, `--config FILE`: Kafka's own `.properties`, or YAML with flat or nested names; unknown names are warned of.

While the node runs, `kafka-configs`, any admin client or `odradek configs` change what is marked so below: for one
broker, for all, or for a topic or group. A topic's own value wins over the broker's, a broker's own over that for
all brokers, and any of them over the three places above.
"""

_KINDER_HEAD = """## Kinder than Kafka

Where a value is set it means what it means in Kafka. These defaults differ:
"""

_REST_HEAD = """## Taken without effect

These settings of Kafka's are checked and shown like the others, so that files and tools work, but nothing here reads
them: they are about threads, Java plugins or parts this node does without.
"""


def page() -> str:
    """The whole page."""
    used = _named_in_source()
    parts = [_INTRODUCTION, _KINDER_HEAD]
    parts += [kinder_table(), "Without a setting:\n", "\n".join(f"- {sentence}" for sentence in KINDER_BEHAVIOUR)]
    parts += ["## Our own\n", _table(NODE, resources.BROKER)]
    shown = [s for s in KAFKA if not s.internal]
    read = [s for s in shown if _is_read(s, used)]
    parts += ["## Broker\n", _table(read, resources.BROKER)]
    parts += [
        "## Topic\n\nThe default is the broker's setting of the last column, where there is one.\n",
        _inherited_table(TOPIC, resources.TOPIC),
    ]
    parts += ["## Group\n", _inherited_table(GROUP, resources.GROUP)]
    parts += ["## Client metrics subscription\n", _table(CLIENT_METRICS, resources.CLIENT_METRICS)]
    rest = [s for s in shown if not _is_read(s, used)]
    parts += [_REST_HEAD, _table(rest, resources.BROKER)]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def kinder_table() -> str:
    """The one table of defaults that differ from Kafka's, as Markdown."""
    rows = ["| setting | here | Kafka | why |", "| --- | --- | --- | --- |"]
    for name, kinder in KINDER_DEFAULTS.items():
        setting = KAFKA[name]
        theirs = "must be given" if setting.required else _code(setting.default)
        rows.append(f"| `{name}` | {_code(kinder.value)} | {theirs} | {kinder.why} |")
    return "\n".join(rows) + "\n"


def _table(settings: Iterable[Setting], kind: int) -> str:
    rows = ["| setting | type | default | valid | changes | what for |", "| --- | --- | --- | --- | --- | --- |"]
    for setting in settings:
        default = (broker_setting(setting.name) or setting).default
        rows.append(
            f"| `{setting.name}` | {setting.type.name.lower()} | {_code(default)} | {_valid(setting)} "
            f"| {_CHANGES.get(setting.update, 'any time')} | {documentation(kind, setting.name)} |"
        )
    return "\n".join(rows) + "\n"


def _inherited_table(settings: Iterable[Setting], kind: int) -> str:
    rows = ["| setting | type | default | valid | what for | of the broker |", "| --- | --- | --- | --- | --- | --- |"]
    for setting in settings:
        if not setting.internal:
            synonyms = ", ".join(f"`{synonym.name}`" for synonym in setting.synonyms)
            rows.append(
                f"| `{setting.name}` | {setting.type.name.lower()} | {_code(setting.default)} | {_valid(setting)} "
                f"| {documentation(kind, setting.name)} | {synonyms} |"
            )
    return "\n".join(rows) + "\n"


def _code(text: str | None) -> str:
    if text is None:
        return ""
    return f"`{text}`" if text else "empty"


def _valid(setting: Setting) -> str:
    """The rule of a setting in words."""
    rule = setting.rule.rstrip("+")
    end = ", not empty" if setting.rule.endswith("+") else ""
    words = {
        "any": "",
        "unique": "no value twice",
        "nonempty": "not empty",
        "addresses": "`host:port` each",
        "voters": "`id@host:port` each",
        "replicas": "`*` or `partition:broker` each",
        "offset_reset": "`earliest`, `latest`, `by_duration:PnDTnHnMn.nS`",
    }
    if rule in words:
        return words[rule] + end
    if rule.startswith(">="):
        return f"from {rule[2:]}"
    if ".." in rule:
        low, _, high = rule.partition("..")
        most, _, other = high.partition("|")
        return f"{low} to {most}" + (f", or {other}" if other else "")
    any_case = " in any case" if rule.endswith("~") else ""
    values = ", ".join(f"`{value}`" for value in rule.strip("{}[]~").split(","))
    return ("list of " if rule.startswith("[") else "") + values + any_case + end


def _is_read(setting: Setting, used: frozenset[str]) -> bool:
    if setting.name in used:
        return True
    return any(
        synonym.name == setting.name and _field(topic.name) in used for topic in TOPIC for synonym in topic.synonyms
    )


def _field(topic_setting: str) -> str:
    """The field of a log's effective settings, as the source reads it."""
    return "." + topic_setting.replace(".", "_")


def _named_in_source() -> frozenset[str]:
    """Names of settings in quotes, and fields of settings that are read, anywhere in the node but in the tables."""
    names: set[str] = set()
    for folder in ("broker", "coordinator"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            where = path.as_posix()
            of_settings = "coordinator/settings/" in where and not where.endswith(READ_THROUGH)
            if of_settings or path.name == "config_served.py":
                continue
            text = path.read_text(encoding="utf-8")
            names.update(re.findall(r'"([a-z][a-z0-9.]*)"', text))
            if path.name != "config_log.py":
                names.update(re.findall(r"\.[a-z0-9_]+\b", text))
    names.update(*(_FIELDS_BEHIND.get(name, ()) for name in tuple(names)))
    return frozenset(names)


def main(arguments: list[str]) -> int:
    """Write the page, or with --check say whether it is what the tables say (1 if not)."""
    if arguments == ["--check"]:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
            sys.stderr.write("docs/settings.md is not what the tables say: run python docs/settings.py.\n")
            return 1
        return 0
    if arguments:
        sys.stderr.write(f"settings.py takes --check or nothing, not {arguments[0]!r}.\n")
        return 2
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
