"""The `partition.metadata` file: which topic a partition directory belongs to.

Source: PartitionMetadataFile (KIP-516).
"""

from __future__ import annotations

from broker.storage.files import Files, replace_file
from wire.log_files import MalformedFile, decode_partition_metadata, encode_partition_metadata

FILE_NAME = "partition.metadata"


class CorruptPartitionMetadata(OSError):
    """A partition.metadata file that is not one; the text names the file."""


def write_topic_id(files: Files, directory: str, topic_id: bytes, *, durable: bool = True) -> None:
    """Write the file. Durable before the first data, as Kafka has it."""
    replace_file(files, f"{directory}/{FILE_NAME}", encode_partition_metadata(topic_id), durable=durable)


def read_topic_id(files: Files, directory: str) -> bytes | None:
    """The topic id of a partition directory, None without the file. Raises CorruptPartitionMetadata."""
    path = f"{directory}/{FILE_NAME}"
    try:
        return decode_partition_metadata(files.read(path))
    except FileNotFoundError:
        return None
    except MalformedFile as error:
        raise CorruptPartitionMetadata(f"{path} {error}") from error
