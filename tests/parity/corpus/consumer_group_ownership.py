"""Consumer groups: whose a partition is between the answer that gives it and the heartbeat that names it.

A member that was told of a partition and has not named it yet gives it up without a word: a heartbeat that says
what it owns, and does not name the partition, frees it at once when the target has moved it to somebody else.
"""

from __future__ import annotations

from tests.parity.corpus.consumer_groups import beat, describe, enter, prepare
from tests.parity.player import Player


def scenario_consumer_group_given_and_moved_before_named(player: Player) -> None:
    """A was told of all partitions and has named none when half of them are to be B's."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    (topic_id,) = prepare(connection, group, topics={topic: 4})
    connection.call(enter(group, "A", topic), 1, "A is told of all")
    connection.call(enter(group, "B", topic), 1, "B waits for its half")
    describe(connection, group, "A has all")
    connection.call(beat(group, "A", 2, owned=[]), 1, "A owns nothing yet")
    describe(connection, group, "A has its half of the new target")
    connection.call(beat(group, "B", 3, owned=[]), 1, "B is given its half at once")
    connection.call(beat(group, "A", 3, owned=[(topic_id, [0, 1, 2, 3])]), 1, "A names all, too late")
    connection.call(beat(group, "A", 3, owned=[(topic_id, [0, 1])]), 1, "A names its half")
    connection.call(beat(group, "B", 3, owned=[(topic_id, [2, 3])]), 1, "B names its half")
    describe(connection, group, "stable")


def scenario_consumer_group_given_and_moved_named_in_part(player: Player) -> None:
    """What a member names counts, partition by partition; a heartbeat that says nothing frees nothing."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    (topic_id,) = prepare(connection, group, topics={topic: 6})
    connection.call(enter(group, "A", topic), 1, "A is told of all")
    connection.call(enter(group, "B", topic), 1, "B waits")
    connection.call(beat(group, "A", 2, owned=[(topic_id, [0, 1, 2])]), 1, "A names only what it keeps")
    connection.call(beat(group, "B", 3), 1, "B is given the rest")
    connection.call(enter(group, "C", topic), 1, "C waits")
    connection.call(beat(group, "A", 3), 1, "A says nothing, and is to give one up")
    connection.call(beat(group, "C", 4), 1, "C waits on")
    connection.call(beat(group, "A", 3, owned=[]), 1, "A owns nothing")
    connection.call(beat(group, "C", 4), 1, "C is given A's")
    connection.call(beat(group, "B", 3, owned=[(topic_id, [5])]), 1, "B names what it is to give up")
    connection.call(beat(group, "C", 4), 1, "C waits for B's")
    connection.call(beat(group, "B", 3, owned=[(topic_id, [3])]), 1, "B names another")
    connection.call(beat(group, "C", 4), 1, "C is given B's")
    describe(connection, group, "stable")


def scenario_consumer_group_given_and_moved_twice(player: Player) -> None:
    """A partition that was given, moved away and comes back before its member has named it at all."""
    connection, group, topic = player.connect(), player.name("g"), player.name("t")
    (topic_id,) = prepare(connection, group, topics={topic: 2})
    connection.call(enter(group, "A", topic), 1, "A is told of both")
    connection.call(enter(group, "B", topic), 1, "B waits")
    connection.call(beat(group, "A", 2), 1, "A is to give one up")
    connection.call(beat(group, "B", -1), 1, "B leaves")
    connection.call(beat(group, "A", 2, owned=[]), 1, "A owns nothing")
    describe(connection, group, "A has both")
    connection.call(enter(group, "B", topic), 1, "B comes back")
    connection.call(beat(group, "A", 4, owned=[(topic_id, [1])]), 1, "A names the one that is to be B's")
    connection.call(beat(group, "B", 5), 1, "B waits")
    connection.call(beat(group, "A", 4, owned=[(topic_id, [0])]), 1, "A names the other")
    connection.call(beat(group, "B", 5), 1, "B is given its own")
    describe(connection, group, "stable")
