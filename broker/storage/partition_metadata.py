"""The `partition.metadata` file: which topic a partition directory belongs to.

Source: PartitionMetadataFile (KIP-516).
"""

from __future__ import annotations

from broker.storage.files import Files, replace_file
from wire.primitives import ZERO_UUID, uuid_from_text, uuid_text

FILE_NAME = "partition.metadata"


class CorruptPartitionMetadata(OSError):
    """A partition.metadata file that is not one; the text names the file."""


def write_topic_id(files: Files, directory: str, topic_id: bytes, *, durable: bool = True) -> None:
    """Write the file. Durable before the first data, as Kafka has it."""
    content = f"version: 0\ntopic_id: {uuid_text(topic_id)}"
    replace_file(files, f"{directory}/{FILE_NAME}", content.encode(), durable=durable)


def read_topic_id(files: Files, directory: str) -> bytes | None:
    """The topic id of a partition directory, None without the file. Raises CorruptPartitionMetadata."""
    path = f"{directory}/{FILE_NAME}"
    try:
        text = files.read(path).decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise CorruptPartitionMetadata(f"{path} is not text: {error}") from error
    values = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    try:
        version = int(values["version"])
        topic_id = uuid_from_text(values["topic_id"].strip())
    except (KeyError, ValueError) as error:
        raise CorruptPartitionMetadata(f"{path} is malformed: {error}") from error
    if version < 0:
        raise CorruptPartitionMetadata(f"{path} has version {version}")
    if topic_id == ZERO_UUID:
        raise CorruptPartitionMetadata(f"{path} holds the zero topic id")
    return topic_id
