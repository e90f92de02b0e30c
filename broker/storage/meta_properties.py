"""`meta.properties` and `.kafka_cleanshutdown`: who a log directory belongs to, and how it was left.

Source: MetaProperties, PropertiesUtils, CleanShutdownFileHandler.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from broker.storage.files import Files, StorageFault, replace_file
from wire.log_files import MalformedFile, decode_properties
from wire.primitives import uuid_from_text, uuid_text

META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"


@dataclass(frozen=True)
class MetaProperties:
    """Identity of a log directory. Version 0 (ZooKeeper times) may lack all three; version 1 has all."""

    version: int = 1
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: bytes | None = None


def read_meta_properties(files: Files, directory: str) -> MetaProperties | None:
    """What the directory says of itself; None if it was never formatted. Raises StorageFault."""
    path = f"{directory}/{META_PROPERTIES}"
    try:
        properties = decode_properties(files.read(path))
    except FileNotFoundError:
        return None
    except MalformedFile as error:
        raise StorageFault(f"{path} {error}") from error
    try:
        version = int(properties.get("version", "0"))
        node_text = properties.get("node.id" if version >= 1 else "broker.id")
        directory_text = properties.get("directory.id")
        result = MetaProperties(
            version,
            properties.get("cluster.id"),
            None if node_text is None else int(node_text),
            None if directory_text is None else uuid_from_text(directory_text),
        )
    except ValueError as error:
        raise StorageFault(f"{path} is malformed: {error}") from error
    if version not in (0, 1):
        raise StorageFault(f"{path} has version {version}; known are 0 and 1")
    if version == 1 and (result.cluster_id is None or result.node_id is None):
        raise StorageFault(f"{path} has version 1 but lacks cluster.id or node.id")
    return result


def write_meta_properties(files: Files, directory: str, properties: MetaProperties) -> None:
    """Write version 1 durably."""
    lines = [
        "#",
        "version=1",
        f"cluster.id={properties.cluster_id}",
        f"node.id={properties.node_id}",
    ]
    if properties.directory_id is not None:
        lines.append(f"directory.id={uuid_text(properties.directory_id)}")
    replace_file(files, f"{directory}/{META_PROPERTIES}", ("\n".join(lines) + "\n").encode())


def write_clean_shutdown(files: Files, directory: str, broker_epoch: int) -> None:
    """Leave the marker that every log of the directory is flushed and checkpointed (J21)."""
    content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    replace_file(files, f"{directory}/{CLEAN_SHUTDOWN}", content.encode())


def take_clean_shutdown(files: Files, directory: str) -> tuple[bool, int]:
    """Whether the directory was left cleanly, and the broker epoch then (-1 unknown); the marker is removed."""
    path = f"{directory}/{CLEAN_SHUTDOWN}"
    try:
        content = files.read(path)
    except FileNotFoundError:
        return False, -1
    files.delete(path)
    try:
        marker = json.loads(content)
        return True, int(marker["brokerEpoch"])
    except (ValueError, KeyError, TypeError):
        # Kafka of before KIP-966 left the file empty: a clean stop of an unknown epoch.
        return True, -1
