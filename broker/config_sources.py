"""Where static settings come from: files (Kafka's .properties, YAML), the environment, `--set key=value`.

Everything is read as text, as Kafka reads it; what a text means is the settings' business. Source:
java.util.Properties.load, docker/resources/common-scripts of Apache Kafka's image, KIP-421 (config providers).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any


class ConfigError(Exception):
    """Settings a node cannot start with; one sentence that names the setting, the value and the way out."""


_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# Compiled when first used: a node without a file starts without them.
_SEPARATED = r"(?s)((?:[^\\=:\s]|\\.)*)[ \t\f]*(?:[=:][ \t\f]*)?(.*)"
_ESCAPED = r"(?s)\\(?:u([0-9a-fA-F]{4})|(.))"
_VARIABLE = r"\$\{([^}:]+):(?:([^}:]*):)?([^}]*)\}"

IMAGE_PREFIX = "KAFKA_"
IMAGE_OWN_NAMES = frozenset(
    {
        "KAFKA_VERSION",
        "KAFKA_HEAP_OPTS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_OPTS",
        "KAFKA_JMX_OPTS",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_LOG4J_LOGGERS",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
    }
)
"""Names of the environment that tell the image of a Java virtual machine, and are no settings."""


def read_settings_file(path: str, lines: dict[str, int] | None = None) -> dict[str, str]:
    """The settings of a file by name: YAML where its name ends in .yaml or .yml, else .properties.

    `lines` is given the line, from 1 on, of each setting.
    """
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise ConfigError(f"The settings file {path} cannot be read: {error.strerror}.") from error
    if path.endswith((".yaml", ".yml")):
        return parse_yaml(content, path, lines)
    # java.util.Properties reads Latin-1; other letters are written as \uXXXX.
    return parse_properties(content.decode("latin-1"), path, lines)


def parse_properties(text: str, origin: str = "the settings", lines: dict[str, int] | None = None) -> dict[str, str]:
    """Java's .properties: `key=value`, `key: value`, `key value`; #, ! comments; escapes; lines continued by a `\\`.

    `lines` is given the line, from 1 on, where each setting begins.
    """
    settings = {}
    for number, line in _logical_lines(text):
        match = re.fullmatch(_SEPARATED, line)
        assert match is not None
        name = _unescaped(match[1], origin)
        settings[name] = _unescaped(match[2], origin)
        if lines is not None:
            lines[name] = number
    return settings


def _logical_lines(text: str) -> list[tuple[int, str]]:
    lines: list[tuple[int, str]] = []
    continued = False
    for number, natural in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = natural.lstrip(" \t\f")
        if not continued and (not line or line[0] in "#!"):
            continue
        ends_open = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        if ends_open:
            line = line[:-1]
        if continued:
            lines[-1] = (lines[-1][0], lines[-1][1] + line)
        else:
            lines.append((number, line))
        continued = ends_open
    return lines


def _unescaped(text: str, origin: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        if match[1] is not None:
            return chr(int(match[1], 16))
        if match[2] == "u":
            raise ConfigError(f"{origin} has the malformed escape \\u in {text!r}: it needs four hexadecimal digits.")
        return _ESCAPES.get(match[2], match[2])

    return re.sub(_ESCAPED, replaced, text) if "\\" in text else text


def parse_yaml(content: bytes, origin: str = "the settings", lines: dict[str, int] | None = None) -> dict[str, str]:
    """YAML of flat (`log.retention.ms: 1000`) or nested names; lists are joined with commas.

    Scalars are taken as they are written: no YAML type comes between the file and the setting. `lines` is given the
    line, from 1 on, of each setting's value.
    """
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        document = yaml.compose(content, Loader=loader)
    except yaml.YAMLError as error:
        raise ConfigError(f"{origin} is not YAML: {' '.join(str(error).split())}.") from error
    settings: dict[str, str] = {}
    if document is not None:
        _flatten(document, "", origin, settings, {} if lines is None else lines)
    return settings


def _flatten(node: Any, name: str, origin: str, settings: dict[str, str], lines: dict[str, int]) -> None:
    if node.id == "mapping":
        for key, value in node.value:
            if key.id != "scalar":
                raise ConfigError(f"{origin}, line {key.start_mark.line + 1}: a setting's name must be plain text.")
            _flatten(value, f"{name}.{key.value}" if name else key.value, origin, settings, lines)
        return
    lines[name] = node.start_mark.line + 1
    where = f"{origin}, line {lines[name]}"
    if not name:
        raise ConfigError(f"{where}: settings must read name: value.")
    if name in settings:
        raise ConfigError(f"{where}: {name} is given twice.")
    if node.id == "sequence":
        if any(item.id != "scalar" for item in node.value):
            raise ConfigError(f"{where}: {name} must be a list of plain values.")
        settings[name] = ",".join(item.value for item in node.value)
    elif node.tag != "tag:yaml.org,2002:null":
        settings[name] = node.value


def environment_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """`KAFKA_LOG_DIRS` as `log.dirs`, the way Apache Kafka's image reads it: `_` is a dot, `__` an
    underscore, `___` a hyphen. `CLUSTER_ID` is the image's name for the id of a new cluster."""
    settings = {name: environment[variable] for variable, name in setting_variables(environment).items()}
    if environment.get("CLUSTER_ID"):
        settings.setdefault("odradek.cluster.id", environment["CLUSTER_ID"])
    return settings


def setting_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that look like settings, each with the name it stands for."""
    return {
        variable: setting_name(variable[len(IMAGE_PREFIX) :])
        for variable in environment
        if variable.startswith(IMAGE_PREFIX) and variable not in IMAGE_OWN_NAMES and len(variable) > len(IMAGE_PREFIX)
    }


def variable_name(setting: str) -> str:
    """The variable of Apache Kafka's image that stands for a setting."""
    return IMAGE_PREFIX + setting.replace("_", "__").replace("-", "___").replace(".", "_").upper()


def setting_name(variable: str) -> str:
    """The setting that a variable's name (without its prefix) stands for."""
    return variable.lower().replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")


def parse_assignments(assignments: Sequence[str]) -> dict[str, str]:
    """`key=value` of the command line."""
    settings = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--set {assignment} must read --set name=value.")
        if name.strip() in settings:
            raise ConfigError(f"--set {name.strip()} is given twice: leave one of them out.")
        settings[name.strip()] = value
    return settings


def resolve_variables(settings: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Values with `${provider:path:key}` filled in by the config providers that `config.providers` names."""
    providers = {}
    for name in filter(None, (part.strip() for part in settings.get("config.providers", "").split(","))):
        kind = settings.get(f"config.providers.{name}.class", "")
        reader = _PROVIDERS.get(kind.rpartition(".")[2])
        if reader is None:
            raise ConfigError(
                f"config.providers.{name}.class={kind} is not known here: use one of "
                f"{', '.join(f'org.apache.kafka.common.config.provider.{known}' for known in _PROVIDERS)}."
            )
        providers[name] = reader
    if not providers:
        return dict(settings)

    def filled(match: re.Match[str]) -> str:
        reader = providers.get(match[1])
        if reader is None:
            return match[0]
        value = reader(match[2] or "", match[3], environment)
        return match[0] if value is None else value

    return {name: re.sub(_VARIABLE, filled, value) for name, value in settings.items()}


def _from_file(path: str, key: str, _environment: Mapping[str, str]) -> str | None:
    return read_settings_file(path).get(key)


def _from_directory(path: str, key: str, _environment: Mapping[str, str]) -> str | None:
    file_path = os.path.join(path, key)
    try:
        with open(file_path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise ConfigError(f"The config provider's file {file_path} cannot be read: {error.strerror}.") from error


def _from_environment(_path: str, key: str, environment: Mapping[str, str]) -> str | None:
    return environment.get(key)


_PROVIDERS = {
    "FileConfigProvider": _from_file,
    "DirectoryConfigProvider": _from_directory,
    "EnvVarConfigProvider": _from_environment,
}
