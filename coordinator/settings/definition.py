"""What a setting is, and the notation in which the tables of this package say it.

A table is one text, so that importing it costs nothing; a line is read when its setting is first
asked for. A line holds, separated by blanks:

    name  type  importance  update  default  rule  [internal]  [= synonym*factor,...]

default   `-` unset, `""` the empty text, `!` must be given
rule      `any` · `>=N` · `N..M` · `N..M|K` (or exactly K) · `{a,b}` one of, `{a,b}~` in any case ·
          `[a,b]` list of, `unique` list of anything, without doubles · `addresses` · `voters` · `replicas` ·
          `offset_reset` · `nonempty`; a `+` after a list rule: at least one element
internal  hidden: works when set, and is never listed
synonyms  the broker settings a topic or group setting falls back to, nearest first; a value there
          is multiplied by `factor` (hours to milliseconds)

Source: Kafka's ConfigDef, ServerTopicConfigSynonyms.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, IntEnum
from typing import NamedTuple


class SettingType(IntEnum):
    """The type of a value, with its number in DescribeConfigs."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Update(Enum):
    """When a setting may change."""

    READ_ONLY = "read-only"
    """At start only."""
    CLUSTER_WIDE = "cluster-wide"
    """While running, for one broker or for all."""
    PER_BROKER = "per-broker"
    """While running, for one named broker."""
    PER_LISTENER = "per-listener"
    """While running, under `listener.name.<listener>.` of one named broker."""
    DYNAMIC_ONLY = "dynamic-only"
    """While running; a settings file has no say, and it is listed only when set."""
    TOPIC = "topic"
    GROUP = "group"
    CLIENT_METRICS = "client-metrics"


class Synonym(NamedTuple):
    """A broker setting that speaks for a topic's or group's when that is unset."""

    name: str
    factor: int


class Setting(NamedTuple):
    """One setting. `default` is text, None when unset; `required` ones have none and must be given."""

    name: str
    type: SettingType
    importance: str
    update: Update
    default: str | None
    required: bool
    rule: str
    internal: bool
    synonyms: tuple[Synonym, ...]

    @property
    def is_sensitive(self) -> bool:
        """Whether the value is never shown."""
        return self.type is SettingType.PASSWORD

    @property
    def is_dynamic(self) -> bool:
        """Whether it may change while the broker runs."""
        return self.update is not Update.READ_ONLY


class SettingTable:
    """Settings by name, in the order of their table. Reading a table costs when it is first used."""

    def __init__(self, *texts: str) -> None:
        self._texts = texts
        self._lines: dict[str, str] | None = None
        self._settings: dict[str, Setting] = {}

    def get(self, name: str) -> Setting | None:
        """The setting of this name, None if there is none."""
        setting = self._settings.get(name)
        if setting is None:
            line = self._by_name().get(name)
            if line is None:
                return None
            setting = self._settings[name] = read_line(line)
        return setting

    def __getitem__(self, name: str) -> Setting:
        setting = self.get(name)
        if setting is None:
            raise KeyError(name)
        return setting

    def __contains__(self, name: str) -> bool:
        return name in self._by_name()

    def __iter__(self) -> Iterator[Setting]:
        return (self[name] for name in self._by_name())

    def __len__(self) -> int:
        return len(self._by_name())

    def names(self) -> Iterator[str]:
        """All names, hidden ones too, in the order of the table."""
        return iter(self._by_name())

    def _by_name(self) -> dict[str, str]:
        if self._lines is None:
            lines = (line for text in self._texts for line in text.splitlines())
            self._lines = {line.split(" ", 1)[0]: line for line in lines}
        return self._lines


def read_line(line: str) -> Setting:
    """One line of a table as a setting; a malformed one raises ValueError or KeyError."""
    line, _, synonyms = line.partition("  = ")
    name, type_name, importance, update, default, rule, *flags = line.split()
    if flags not in ([], ["internal"]):
        raise ValueError(f"the line of setting {name} has unknown flags {flags}")
    return Setting(
        name=name,
        type=SettingType[type_name.upper()],
        importance=importance,
        update=Update(update),
        default=None if default in ("-", "!") else default.replace('""', ""),
        required=default == "!",
        rule=rule,
        internal=bool(flags),
        synonyms=tuple(_synonym(text) for text in synonyms.split(",") if text),
    )


def _synonym(text: str) -> Synonym:
    name, _, factor = text.strip().partition("*")
    return Synonym(name, int(factor or 1))
