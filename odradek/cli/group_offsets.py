"""`odradek groups reset-offsets` and `delete-offsets`: set, or forget, where a group goes on reading."""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import re
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from odradek.cli.arguments import counted, print_json, print_table
from odradek.cli.group_lag import committed_offsets
from odradek.cli.groups import listed_groups
from odradek.cli.offsets import EARLIEST, LATEST, offsets_of
from odradek.client import Client, check
from odradek.failure import BAD_SETTING, Failure
from wire.errors import ErrorCode

Partition = tuple[str, int]
_SHORT_DURATION = re.compile(r"(\d+)(ms|s|m|h|d)")
_SHORT_DURATIONS = re.compile(r"(\d+(ms|s|m|h|d))+")
_ISO_DURATION = re.compile(
    r"P(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?", re.IGNORECASE
)
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class Reset:
    """One partition: where it is (None: nowhere yet), what was asked for, and where it will be."""

    topic: str
    partition: int
    before: int | None
    asked: int
    after: int

    @property
    def remark(self) -> str | None:
        """A sentence where it will not be what was asked for."""
        if self.asked == self.after:
            return None
        where = "before the first record" if self.asked < self.after else "beyond the end"
        return f"{self.topic}-{self.partition}: {self.asked} is {where}; {self.after} is taken."


def reset_offsets(client: Client, options: argparse.Namespace) -> None:
    """Set a group's offsets. Raises Failure if it has members, or for what does not exist."""
    _require_nobody(client, options.group)
    current = {
        (each.topic, each.partition): each.committed
        for each in committed_offsets(client, options.group)
        if each.committed is not None
    }
    wanted = _from_file(options.from_file) if options.from_file else None
    partitions = list(wanted) if wanted is not None else _chosen(client, options, current)
    resets = [
        Reset(topic, partition, current.get((topic, partition)), asked, after)
        for (topic, partition), (asked, after) in sorted(_targets(client, options, partitions, current, wanted).items())
    ]
    if not options.dry_run:
        _commit(client, options.group, resets)
    _show(options, resets)


def _require_nobody(client: Client, group_id: str) -> None:
    listed = listed_groups(client).get(group_id)
    if listed is None:
        return
    if listed.group_type.lower() in ("share", "streams"):
        raise Failure(f"Group {group_id!r} is a {listed.group_type} group, which does not read by committed offsets.")
    if listed.group_state not in ("Empty", "Dead"):
        raise Failure(
            f"Group {group_id!r} has members ({listed.group_state}), who would commit over it: stop them first."
        )


# --- which partitions ----------------------------------------------------------------------------------


def _chosen(client: Client, options: argparse.Namespace, current: dict[Partition, int]) -> list[Partition]:
    if options.all_topics and options.topic:
        raise Failure("--all-topics and --topic exclude each other.", BAD_SETTING)
    if options.all_topics:
        if not current:
            raise Failure(f"Group {options.group!r} has committed nothing: name topics with --topic.")
        return list(current)
    if not options.topic:
        raise Failure("Say which topics: --topic TOPIC or --all-topics.", BAD_SETTING)
    return list(dict.fromkeys(named for text in options.topic for named in topic_partitions(client, text)))


def topic_partitions(client: Client, text: str) -> list[Partition]:
    """The partitions that `TOPIC` or `TOPIC:0,3` names. Raises Failure for what there is not."""
    topic, colon, numbers = text.partition(":")
    existing = sorted(client.leaders(topic))
    if not colon:
        return [(topic, partition) for partition in existing]
    partitions = []
    for number in numbers.split(","):
        if not number.strip().isdecimal():
            raise Failure(f"{text!r} is not TOPIC:PARTITION,PARTITION.", BAD_SETTING)
        if int(number) not in existing:
            raise Failure(f"Topic {topic!r} has no partition {int(number)}; it has {len(existing)}.")
        partitions.append((topic, int(number)))
    return partitions


def _from_file(name: str) -> dict[Partition, int]:
    """Lines of topic,partition,offset. Raises Failure with the line that is something else."""
    try:
        text = sys.stdin.read() if name == "-" else open_text(name)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise Failure(f"{name} cannot be read: {why}.") from None
    wanted: dict[Partition, int] = {}
    for number, row in enumerate(csv.reader(text.splitlines()), 1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or cells == ["topic", "partition", "offset"]:
            continue
        if len(cells) != 3 or not cells[1].isdecimal() or not cells[2].isdecimal():
            raise Failure(f"Line {number} of {name} is not topic,partition,offset: {','.join(row)}", BAD_SETTING)
        wanted[cells[0], int(cells[1])] = int(cells[2])
    if not wanted:
        raise Failure(f"There is no line in {name}.", BAD_SETTING)
    return wanted


def open_text(name: str) -> str:
    """What a file holds."""
    with open(name, encoding="utf-8") as file:
        return file.read()


# --- where to ------------------------------------------------------------------------------------------------


def _targets(
    client: Client,
    options: argparse.Namespace,
    partitions: list[Partition],
    current: dict[Partition, int],
    wanted: dict[Partition, int] | None,
) -> dict[Partition, tuple[int, int]]:
    """The offset of each partition that was asked for, and the same brought within what can be read."""
    targets: dict[Partition, tuple[int, int]] = {}
    for topic in sorted({topic for topic, _ in partitions}):
        chosen = [partition for each, partition in partitions if each == topic]
        leaders = client.leaders(topic)
        for partition in chosen:
            if partition not in leaders:
                raise Failure(f"Topic {topic!r} has no partition {partition}; it has {len(leaders)}.")
        asked = {partition: leaders[partition] for partition in chosen}
        first, end = (offsets_of(client, topic, asked, which) for which in (EARLIEST, LATEST))
        timed = _by_time(client, options, topic, asked)
        for partition in chosen:
            key = topic, partition
            if wanted is not None:
                target = wanted[key]
            elif timed is not None:
                target = timed[partition] if timed[partition] >= 0 else end[partition]
            else:
                target = _by_place(options, key, current.get(key), first[partition], end[partition])
            targets[key] = target, min(max(target, first[partition]), end[partition])
    return targets


def _by_time(client: Client, options: argparse.Namespace, topic: str, leaders: dict[int, int]) -> dict[int, int] | None:
    """Offsets by time, -1 where no record is that young; None if time is not what was asked for."""
    if options.to_datetime is not None:
        return offsets_of(client, topic, leaders, datetime_ms(options.to_datetime))
    if options.by_duration is not None:
        return offsets_of(client, topic, leaders, int(time.time() * 1000) - duration_ms(options.by_duration))
    return None


def _by_place(options: argparse.Namespace, key: Partition, committed: int | None, first: int, end: int) -> int:
    if options.to_earliest:
        return first
    if options.to_latest:
        return end
    if options.to_offset is not None:
        return int(options.to_offset)
    if options.shift_by is not None:
        if committed is None:
            raise Failure(
                f"Group {options.group!r} has committed nothing in {key[0]}-{key[1]}: there is nothing to shift."
            )
        return int(committed + options.shift_by)
    return end if committed is None else committed


def datetime_ms(text: str) -> int:
    """A time in ISO 8601 as milliseconds since 1970; UTC if it names no zone. Raises Failure."""
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        raise Failure(
            f"{text!r} is no time like 2026-01-31T12:00:00 or 2026-01-31T12:00:00+01:00.", BAD_SETTING
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return round(moment.timestamp() * 1000)


def duration_ms(text: str) -> int:
    """`90s`, `2h`, `3h30m` or an ISO 8601 duration as milliseconds. Raises Failure."""
    if _SHORT_DURATIONS.fullmatch(text):
        return sum(int(count) * _UNIT_MS[unit] for count, unit in _SHORT_DURATION.findall(text))
    iso = _ISO_DURATION.fullmatch(text)
    if iso is None or not any(iso.groupdict().values()):
        raise Failure(f"{text!r} is no duration like 90s, 15m, 3h30m, 7d or P1DT2H.", BAD_SETTING)
    return round(sum(float(count) * _UNIT_MS[unit] for unit, count in iso.groupdict().items() if count))


# --- doing it, saying it ---------------------------------------------------------------------------------------


def _commit(client: Client, group_id: str, resets: list[Reset]) -> None:
    from wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic

    topics: dict[str, OffsetCommitRequestTopic] = {}
    for reset in resets:
        topic = topics.setdefault(reset.topic, OffsetCommitRequestTopic(name=reset.topic))
        topic.partitions.append(
            OffsetCommitRequestPartition(
                partition_index=reset.partition, committed_offset=reset.after, committed_metadata=""
            )
        )
    request = OffsetCommitRequest(group_id=group_id, topics=list(topics.values()))
    answer = client.coordinator(group_id).request(request, most=9)
    for topic in answer.topics:
        for each in topic.partitions:
            check(each.error_code, f"The offset of {topic.name}-{each.partition_index} was not set")


def _show(options: argparse.Namespace, resets: list[Reset]) -> None:
    if options.export:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows([reset.topic, reset.partition, reset.after] for reset in resets)
    elif options.json:
        for reset in resets:
            print_json({
                "topic": reset.topic, "partition": reset.partition, "before": reset.before, "after": reset.after,
                "set": not options.dry_run,
            })  # fmt: skip
    else:
        heads = ["TOPIC", "PARTITION", "COMMITTED", "NEW"]
        rows = [
            [each.topic, each.partition, "-" if each.before is None else each.before, each.after] for each in resets
        ]
        print_table(heads, rows)
        for remark in filter(None, (each.remark for each in resets)):
            print(remark)
        if options.dry_run:
            print("Nothing was set (--dry-run).")
        else:
            print(f"Set {counted(len(resets), 'offset')} of group {options.group}.")


def delete_offsets(client: Client, options: argparse.Namespace) -> None:
    """Forget what a group committed. Raises Failure for a topic that its members are subscribed to."""
    from wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic

    committed = committed_offsets(client, options.group)
    chosen = list(dict.fromkeys(each for text in options.topic for each in _committed_in(text, committed)))
    topics: dict[str, OffsetDeleteRequestTopic] = {}
    for topic, partition in chosen:
        wanted = topics.setdefault(topic, OffsetDeleteRequestTopic(name=topic))
        wanted.partitions.append(OffsetDeleteRequestPartition(partition_index=partition))
    answer = client.coordinator(options.group).request(
        OffsetDeleteRequest(group_id=options.group, topics=list(topics.values()))
    )
    check(answer.error_code, f"Offsets of group {options.group!r} were not deleted")
    for each in answer.topics:
        for partition in each.partitions:
            if partition.error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC:
                raise Failure(
                    f"Members of group {options.group!r} are subscribed to topic {each.name!r}: stop them first"
                    " (GROUP_SUBSCRIBED_TO_TOPIC)."
                )
            check(partition.error_code, f"The offset of {each.name}-{partition.partition_index} was not deleted")
    if options.json:
        for topic, partition in chosen:
            print_json({"topic": topic, "partition": partition, "deleted": True})
    else:
        print(f"Deleted {counted(len(chosen), 'offset')} of group {options.group}.")


def _committed_in(text: str, committed: Iterable[Any]) -> list[Partition]:
    """What of `TOPIC` or `TOPIC:0,3` the group has committed; the topic need not exist any more."""
    topic, colon, numbers = text.partition(":")
    found = [(each.topic, each.partition) for each in committed if each.topic == topic]
    if colon:
        if not all(number.strip().isdecimal() for number in numbers.split(",")):
            raise Failure(f"{text!r} is not TOPIC:PARTITION,PARTITION.", BAD_SETTING)
        partitions = {int(number) for number in numbers.split(",")}
        found = [each for each in found if each[1] in partitions]
        missing = partitions - {partition for _, partition in found}
        if missing:
            raise Failure(f"The group has committed nothing in {topic}-{min(missing)}.")
    if not found:
        raise Failure(f"The group has committed nothing in topic {topic!r}.")
    return found
