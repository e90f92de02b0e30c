"""`odradek groups` against a node: members and what they have, lag in records and time, setting offsets, refusals."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from odradek import Broker
from odradek.cli import group_lag
from odradek.cli.arguments import print_table
from odradek.cli.group_description import ago, partitions_text, ranges, shortened
from odradek.cli.group_lag import first_timestamp, group_offsets
from odradek.cli.group_offsets import datetime_ms, duration_ms
from odradek.failure import Failure
from tests.odradek.test_commands import Shell
from wire.records import NewRecord, build_batch


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker(settings={"num.partitions": 2}) as running:
        yield running


@pytest.fixture
def broker(shared: Broker) -> Broker:
    shared.reset()
    return shared


@pytest.fixture
def shell(broker: Broker) -> Shell:
    return Shell(broker.bootstrap_servers)


def fill(broker: Broker, topic: str, count: int, *, partition: int = 0, timestamp_ms: int = 0) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(count):
        stamp = {"timestamp": timestamp_ms + number} if timestamp_ms else {}
        producer.produce(topic, str(number), partition=partition, **stamp)
    assert producer.flush(30) == 0


def consumer(broker: Broker, group: str, topic: str, **settings: str) -> Consumer:
    """A consumer that has been assigned something."""
    made = Consumer({
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        **settings,
    })  # fmt: skip
    made.subscribe([topic])
    assert made.poll(30) is not None
    return made


def described(shell: Shell, group: str) -> dict[str, Any]:
    (found,) = shell.json(f"groups describe {group}")
    return found


def committed(shell: Shell, group: str) -> dict[int, int]:
    return {offset["partition"]: offset["committed"] for offset in described(shell, group)["offsets"]}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_describe_tells_who_has_what_how_far_and_why(shell: Shell, broker: Broker, protocol: str) -> None:
    shell("topics create orders")
    fill(broker, "orders", 5)
    settings = {"group.protocol": protocol, "group.instance.id": "till", "client.id": "shop"}
    member = consumer(broker, "shop", "orders", **settings)
    member.commit(offsets=[TopicPartition("orders", 0, 2)], asynchronous=False)
    found = described(shell, "shop")
    assert (found["type"], found["state"]) == (protocol, "Stable")
    (shown,) = found["members"]
    assert (shown["instance_id"], shown["client_id"]) == ("till", "shop")
    assert shown["assignment"] == {"orders": [0, 1]}
    offset, without_commit = found["offsets"]
    assert without_commit["committed"] is None
    assert (offset["committed"], offset["end"], offset["lag"]) == (2, 5, 3)
    assert 0 <= offset["behind_ms"] < 120_000
    assert any("joined" in event["text"] for event in found["rebalances"])
    text = shell("groups describe shop")
    assert "orders 0-1" in text
    assert "till" in text
    assert "AGO" in text
    member.close()


def test_describe_tells_time_behind_from_the_first_unread_record(shell: Shell, broker: Broker) -> None:
    shell("topics create orders --partitions 1")
    day_ms = 24 * 3600 * 1000
    fill(broker, "orders", 4, timestamp_ms=int(time.time() * 1000) - 2 * day_ms)
    shell("groups reset-offsets shop --topic orders --to-offset 2")
    (offset,) = described(shell, "shop")["offsets"]
    assert (offset["lag"], round(offset["behind_ms"] / day_ms)) == (2, 2)
    shell("groups reset-offsets shop --topic orders --to-latest")
    (offset,) = described(shell, "shop")["offsets"]
    assert (offset["lag"], offset["behind_ms"]) == (0, 0)
    shell("topics delete orders")
    assert described(shell, "shop")["offsets"] == [], "offsets go with their topic"


def test_offsets_are_set_by_place(shell: Shell, broker: Broker) -> None:
    shell("topics create orders")
    fill(broker, "orders", 5)
    fill(broker, "orders", 3, partition=1)
    steps = [
        ("--topic orders --to-latest", {0: 5, 1: 3}),
        ("--topic orders:0 --shift-by -2", {0: 3, 1: 3}),
        ("--all-topics --shift-by 1", {0: 4, 1: 3}),
        ("--topic orders:1 --to-offset 1", {0: 4, 1: 1}),
        ("--all-topics --to-offset 99", {0: 5, 1: 3}),
        ("--all-topics --to-earliest", {0: 0, 1: 0}),
        ("--all-topics --shift-by -1", {0: 0, 1: 0}),
    ]
    for arguments, expected in steps:
        shell(f"groups reset-offsets shop {arguments}")
        assert committed(shell, "shop") == expected, arguments


def test_an_offset_that_cannot_be_read_is_said_to_be_another(shell: Shell, broker: Broker) -> None:
    shell("topics create orders")
    fill(broker, "orders", 5)
    said = shell("groups reset-offsets shop --topic orders:0 --to-offset 99 --dry-run")
    assert "orders-0: 99 is beyond the end; 5 is taken.\n" in said
    shell("groups reset-offsets shop --topic orders:0 --to-offset 3")
    said = shell("groups reset-offsets shop --all-topics --shift-by -5")
    assert "orders-0: -2 is before the first record; 0 is taken.\n" in said


def test_the_groups_that_can_be_deleted_are(shell: Shell, broker: Broker) -> None:
    shell("topics create orders")
    for group in ("one", "two"):
        shell(f"groups reset-offsets {group} --topic orders --to-earliest")
    done = shell.run("groups delete one none two one")
    assert done.stdout == "Deleted group one.\nDeleted group two.\n"
    assert done.stderr == "odradek groups: There is no group 'none'.\n"
    assert done.returncode == 1


def test_partitions_without_a_commit_are_shown_with_who_has_them(shell: Shell, broker: Broker) -> None:
    shell("topics create orders")
    fill(broker, "orders", 5)
    member = consumer(broker, "shop", "orders", **{"group.instance.id": "till"})
    (first, second) = described(shell, "shop")["offsets"]
    assert (first["committed"], first["end"], first["lag"]) == (None, 5, None)
    assert (second["partition"], second["end"]) == (1, 0)
    (line,) = [line for line in shell("groups describe shop").splitlines() if line.startswith("orders  0")]
    assert line.split() == ["orders", "0", "-", "5", "-", "-", "till"]
    member.close()


def test_offsets_are_set_by_time(shell: Shell, broker: Broker) -> None:
    shell("topics create orders --partitions 1")
    now_ms = int(time.time() * 1000)
    fill(broker, "orders", 2, timestamp_ms=now_ms - 3 * 3_600_000)
    fill(broker, "orders", 2, timestamp_ms=now_ms - 600_000)
    for arguments, expected in [
        ("--by-duration 1h", 2),
        ("--by-duration P1D", 0),
        ("--by-duration 1s", 4),
        ("--to-datetime 2001-01-01", 0),
        ("--to-datetime 2400-01-01T00:00:00+01:00", 4),
    ]:
        shell(f"groups reset-offsets shop --topic orders {arguments}")
        assert committed(shell, "shop") == {0: expected}, arguments


def test_a_dry_run_sets_nothing_and_an_export_is_read_back(shell: Shell, broker: Broker, tmp_path: Path) -> None:
    shell("topics create orders")
    fill(broker, "orders", 5)
    shell("groups reset-offsets shop --topic orders:0 --to-offset 3")
    assert "Nothing was set" in shell("groups reset-offsets shop --topic orders --to-earliest --dry-run")
    assert committed(shell, "shop") == {0: 3}
    exported = shell("groups reset-offsets shop --all-topics --to-current --dry-run --export")
    assert exported == "orders,0,3\n"
    file = tmp_path / "offsets.csv"
    file.write_text("topic,partition,offset\norders,0,1\n\norders,1,0\n")
    assert shell.json(f"groups reset-offsets other --from-file {file}") == [
        {"topic": "orders", "partition": 0, "before": None, "after": 1, "set": True},
        {"topic": "orders", "partition": 1, "before": None, "after": 0, "set": True},
    ]
    shell("groups reset-offsets other --from-file -", exported)
    assert committed(shell, "other") == {0: 3, 1: 0}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--to-latest", "Say which topics"),
        ("--all-topics --to-latest", "has committed nothing"),
        ("--topic nothing --to-latest", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("--topic orders:7 --to-latest", "has no partition 7"),
        ("--topic orders:x --to-latest", "is not TOPIC:PARTITION"),
        ("--topic orders", "one of the arguments"),
        ("--topic orders --to-latest --to-earliest", "not allowed with"),
        ("--topic orders --shift-by 1", "nothing to shift"),
        ("--topic orders --by-duration soon", "is no duration"),
        ("--topic orders --by-duration P", "is no duration"),
        ("--topic orders --to-datetime tomorrow", "is no time"),
        ("--from-file /nowhere", "cannot be read"),
        ("--from-file -", "There is no line"),
    ],
)
def test_what_cannot_be_set_is_one_sentence(shell: Shell, arguments: str, sentence: str) -> None:
    shell("topics create orders")
    done = shell.run(f"groups reset-offsets shop {arguments}")
    assert done.returncode in (1, 2)
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_file_of_something_else_is_told_by_its_line(shell: Shell) -> None:
    done = shell.run("groups reset-offsets shop --from-file -", "orders,0,1\norders,zero,1\n")
    assert "Line 2 of -" in done.stderr


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_members_is_left_alone(shell: Shell, broker: Broker, protocol: str) -> None:
    shell("topics create orders")
    fill(broker, "orders", 5)
    member = consumer(broker, "shop", "orders", **{"group.protocol": protocol})
    member.commit(offsets=[TopicPartition("orders", 0, 2)], asynchronous=False)
    assert "stop them first" in shell.fails("groups reset-offsets shop --topic orders --to-earliest")
    assert "'shop' has members: stop them first (NON_EMPTY_GROUP)" in shell.fails("groups delete shop")
    assert "GROUP_SUBSCRIBED_TO_TOPIC" in shell.fails("groups delete-offsets shop --topic orders")
    member.close()
    assert "has committed nothing in topic 'bread'" in shell.fails("groups delete-offsets shop --topic bread")
    assert "has committed nothing in orders-1" in shell.fails("groups delete-offsets shop --topic orders:0,1")
    assert shell("groups delete-offsets shop --topic orders:0") == "Deleted 1 offset of group shop.\n"
    assert described(shell, "shop")["offsets"] == []
    assert shell("groups delete shop") == "Deleted group shop.\n"


# --- words --------------------------------------------------------------------------------------------------


def test_numbers_are_shown_as_ranges() -> None:
    assert [ranges(each) for each in ([], [3], [0, 1, 2], [5, 0, 1, 7])] == ["", "3", "0-2", "0-1,5,7"]
    assert partitions_text({"u": [1], "t": [0, 1], "v": []}) == "t 0-1  u 1"
    assert partitions_text({}) == "-"


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0 s"), (-5, "0 s"), (59_999, "59 s"), (61_000, "1 min 1 s"), (3_600_000, "1 h"), (90_061_000, "1 d 1 h")],
)
def test_spans_are_told_in_two_units(milliseconds: int, text: str) -> None:
    assert ago(milliseconds) == text


def test_many_of_the_same_are_shown_by_the_first_and_the_last() -> None:
    joins = [(float(at), f"a rebalance to epoch {at} begins: member m{at} joined") for at in range(2, 22)]
    events = [(0.0, "a rebalance to epoch 1 begins: member a (static, i) joined"), *joins, (30.0, "member b left")]
    assert shortened(events) == [events[0], joins[0], (21.0, "(18 more like it)"), joins[-1], events[-1]]
    assert shortened(joins[:3]) == joins[:3]


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("250ms", 250),
        ("90s", 90_000),
        ("2h", 7_200_000),
        ("P1DT2H", 93_600_000),
        ("PT0.5S", 500),
        ("pt3m", 180_000),
        ("1h30m", 5_400_000),
    ],
)
def test_durations(text: str, milliseconds: int) -> None:
    assert duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "1", "1w", "-1h", "P1Y", "1h30"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(Failure):
        duration_ms(text)


def test_times_without_a_zone_are_utc() -> None:
    assert datetime_ms("1970-01-02") == datetime_ms("1970-01-02T01:00:00+01:00") == 86_400_000
    assert datetime_ms("1970-01-01T00:00:01Z") == 1_000


def test_the_first_unread_record_is_found_within_a_batch() -> None:
    records = [NewRecord(key=None, value=b"x", timestamp=stamp) for stamp in (10, 20, 30)]
    batch = build_batch(records, base_offset=5)
    assert [first_timestamp(batch, offset) for offset in (0, 6, 7, 8)] == [10, 20, 30, None]
    assert first_timestamp(b"", 0) is None


def test_a_partition_that_two_members_have_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An assignor of the classic protocol may give one to several."""
    client: Any = SimpleNamespace(leaders=lambda topic: {0: 1})
    monkeypatch.setattr(group_lag, "committed_offsets", lambda *_: [])
    monkeypatch.setattr(group_lag, "offsets_of", lambda *_: {0: 5})
    (offset,) = group_offsets(client, "g", [("t", 0), ("t", 0)])
    assert (offset.topic, offset.partition, offset.committed, offset.end) == ("t", 0, None, 5)


def test_names_of_clients_do_not_write_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["MEMBER", "CLIENT"], [["m\nx", "\x1b[2J"], ["é", 1]])
    assert capsys.readouterr().out.splitlines() == ["MEMBER  CLIENT", "m\\nx    \\x1b[2J", "é       1"]
