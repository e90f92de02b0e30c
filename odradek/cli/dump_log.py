"""`odradek dump-log`: show and check the files of a log directory. Exit code 1 if any of them is corrupt.

It reads what Apache Kafka writes as well as what we write, and needs no broker; a directory of a running one may be
read, but its newest segment is then ahead of its indexes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from odradek.cli.arguments import Parser
from odradek.failure import Failure
from odradek.log_dump import index_file, small_files
from odradek.log_dump.report import Report
from odradek.log_dump.segment_file import dump_segment
from wire.log_files import CLEANED_SUFFIX, DELETED_SUFFIX, SWAP_SUFFIX

Dump = Callable[[Path, Report], None]

SNAPSHOT_NAME = re.compile(r"\d{20}-\d{10}\.checkpoint")
BY_NAME: dict[str, Dump] = {
    "leader-epoch-checkpoint": small_files.dump_leader_epochs,
    "recovery-point-offset-checkpoint": small_files.dump_offset_checkpoint,
    "log-start-offset-checkpoint": small_files.dump_offset_checkpoint,
    "replication-offset-checkpoint": small_files.dump_offset_checkpoint,
    "cleaner-offset-checkpoint": small_files.dump_offset_checkpoint,
    "partition.metadata": small_files.dump_partition_metadata,
    "meta.properties": small_files.dump_meta_properties,
    "quorum-state": small_files.dump_json,
    ".kafka_cleanshutdown": small_files.dump_json,
}
BY_SUFFIX: dict[str, Dump] = {
    ".index": index_file.dump_offset_index,
    ".timeindex": index_file.dump_time_index,
    ".txnindex": index_file.dump_transaction_index,
    ".snapshot": small_files.dump_producer_snapshot,
}


def run(arguments: list[str]) -> None:
    parser = Parser(
        prog="odradek dump-log", description="Show and check files of a log directory; 1 if one is corrupt."
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a file, or a directory for all files below it")
    parser.add_argument("--records", action="store_true", help="show records too, internal topics' decoded")
    parser.add_argument("--topic", help="whose records the files hold (default: as the name of their directory says)")
    parser.add_argument("--check", action="store_true", help="print nothing but what is corrupt")
    parser.add_argument("--json", action="store_true", help="print JSON, one object a line")
    options = parser.parse_args(arguments)
    report = Report(as_json=options.json, faults_only=options.check)
    for name in options.files:
        path = Path(name)
        if not path.exists():
            raise Failure(f"There is no file {name}.")
        for file in files_of(path):
            dump = dump_of(file, options.topic, records=options.records)
            if dump is None:
                if file == path:
                    raise Failure(f"{name} is no file that a log directory holds, by its name.")
                continue
            report.file(str(file))
            try:
                dump(file, report)
            except OSError as error:
                raise Failure(f"{file} cannot be read: {error.strerror or error}.") from None
    if report.faults:
        raise Failure(f"{report.faults} {'fault was' if report.faults == 1 else 'faults were'} found.")


def files_of(path: Path) -> Iterator[Path]:
    """A file itself; the files below a directory, in the order of their names."""
    if path.is_dir():
        yield from sorted(file for file in path.rglob("*") if file.is_file())
    else:
        yield path


def dump_of(file: Path, topic: str | None, *, records: bool) -> Dump | None:
    """What shows a file, told by its name; None for one that log directories do not hold."""
    name = file.name
    for suffix in (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX):
        name = name.removesuffix(suffix)
    if name in BY_NAME:
        return BY_NAME[name]
    suffix = name[name.rfind(".") :]
    if suffix == ".log" or SNAPSHOT_NAME.fullmatch(name) or name == "bootstrap.checkpoint":
        named = topic or ("__cluster_metadata" if suffix == ".checkpoint" else topic_of(file))
        return lambda path, report: dump_segment(path, named, report, records=records)
    return BY_SUFFIX.get(suffix)


def topic_of(file: Path) -> str:
    """The topic that a file is of, by the name of its directory: `<topic>-<partition>`, perhaps on its way out."""
    directory = re.sub(r"\.[0-9a-f]{32}-(delete|stray|future)$", "", file.resolve().parent.name)
    return directory.rpartition("-")[0]
