"""The machines of random sequences: two nodes of ours are equal, and one that answers otherwise is found out."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import odradek
from tests.parity.brokers import address_of
from tests.parity.live.command import MACHINES, play
from tests.parity.live.machine import Machine
from tests.parity.live.stage import SETTINGS, Address, Stage, java_bucket
from tests.parity.live.twins import differing
from tests.parity.live.values import Made, Ref, resolved, source
from wire.messages.heartbeat import HeartbeatRequest
from wire.messages.leave_group import LeaveGroupRequest, MemberIdentity

SEED = 20_261_129


@pytest.fixture(scope="module")
def node() -> Iterator[Address]:
    with odradek.Broker(settings=SETTINGS) as broker:
        yield address_of(broker.bootstrap_servers)


@pytest.fixture(scope="module")
def stage(node: Address) -> Iterator[Stage]:
    with odradek.Broker(settings=SETTINGS) as broker:
        yield Stage(node, address_of(broker.bootstrap_servers), ("one", "other"))


@pytest.mark.parametrize(("name", "steps"), [("groups", 20), ("data", 20), ("frames", 6), ("lapses", 3)])
def test_two_nodes_are_equal(stage: Stage, name: str, steps: int) -> None:
    before = Machine.steps
    assert [str(each) for each in play(MACHINES[name], stage, examples=3, seed=SEED, steps=steps)] == []
    assert Machine.steps - before >= 3 * steps // 2, "next to nothing was played"


def test_a_wrong_answer_is_found_and_shortened(node: Address) -> None:
    """The other node takes no commit that has metadata: what is left is little more than such a commit."""
    with odradek.Broker(settings={**SETTINGS, "offset.metadata.max.bytes": 0}) as broker:
        stage = Stage(node, address_of(broker.bootstrap_servers), ("right", "wrong"))
        found = play(MACHINES["groups"], stage, examples=60, seed=SEED, steps=20)
    assert found, "the machine has found nothing"
    assert "OffsetCommit" in found[0].signature
    assert "12" in found[0].signature, "OFFSET_METADATA_TOO_LARGE"
    script = str(found[0]).split("--- the sequence\n")[1].splitlines()
    assert len(script) <= 3, script


def test_a_survey_collects_kinds_of_differences(node: Address) -> None:
    with odradek.Broker(settings={**SETTINGS, "group.max.size": 1, "offset.metadata.max.bytes": 0}) as broker:
        stage = Stage(node, address_of(broker.bootstrap_servers), ("right", "wrong"))
        found = play(MACHINES["groups"], stage, examples=12, seed=SEED, steps=20, survey=True)
        rest = play(MACHINES["groups"], stage, examples=4, seed=SEED, steps=20, set_aside=("",))
    assert len({each.signature for each in found}) == len(found) >= 1
    assert rest == [], "what is set aside is no failure"


def test_a_message_is_resolved_for_each_broker_and_read_as_python() -> None:
    message = LeaveGroupRequest(group_id="run-7-g", members=[MemberIdentity(member_id=Ref("m1"))])  # type: ignore[arg-type]
    names = re.compile(r"run-(?:\d+-)?")
    assert resolved(message, {"m1": "id"}).members[0].member_id == "id"
    assert message.members[0].member_id == Ref("m1"), "the message itself is as before"
    shown = "LeaveGroupRequest(group_id=player.name('g'), members=[MemberIdentity(member_id=m1)])"
    assert source(message, names) == shown
    made = HeartbeatRequest(group_id=Made(str.upper, (Ref("m1"),)))  # type: ignore[arg-type]
    assert resolved(made, {"m1": "id"}).group_id == "ID"
    assert source(made, names) == "HeartbeatRequest(group_id=upper(m1))"


def test_every_place_that_differs_is_named() -> None:
    left = {"a": [1, {"b": 2}], "c": 3}
    assert list(differing("", left, {"a": [1, {"b": 4}]})) == [(".a[1].b", 2, 4), (".c", 3, "<default>")]
    assert list(differing("", left, dict(left))) == []


def test_buckets_are_those_of_java() -> None:
    """new Uuid(1, 2).hashCode() is 3; of (1 << 32, 0) it is 1."""
    assert java_bucket((1).to_bytes(8, "big") + (2).to_bytes(8, "big")) == 3
    assert java_bucket((1 << 32).to_bytes(8, "big") + bytes(8)) == 1
