"""All groups of one shard, whatever their kind, and when something of them is due."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator

from coordinator.group.group import Group
from coordinator.group.settlement import GroupEvent

EVENTS_KEPT_PER_GROUP = 64


class Groups:
    """Groups by id. Iteration is in the order of ids, so that equal states answer equally."""

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}
        self._events: dict[str, deque[GroupEvent]] = {}
        # (deadline, group id); an entry counts if `_armed` has the same deadline. A group whose
        # deadline moves later keeps its entry until that is due, so heartbeats cost nothing here.
        self._heap: list[tuple[int, str]] = []
        self._armed: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[Group]:
        return iter([self._groups[group_id] for group_id in sorted(self._groups)])

    def get(self, group_id: str) -> Group | None:
        """The group, or None."""
        return self._groups.get(group_id)

    def put(self, group: Group) -> None:
        """Add a group or replace the one of the same id."""
        group_id = group.group_id
        self._groups[group_id] = group
        self._arm(group_id, group.earliest_deadline_ms())

    def remove(self, group_id: str) -> None:
        """Forget a group, its deadlines and events; does nothing for an unknown id."""
        self._groups.pop(group_id, None)
        self._armed.pop(group_id, None)
        self._events.pop(group_id, None)

    def next_deadline_ms(self) -> int | None:
        """When `due` has something, at the earliest (a heartbeat may have moved it later)."""
        heap = self._heap
        while heap and self._armed.get(heap[0][1]) != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def due(self, now_ms: int) -> list[str]:
        """Ids of groups whose noted deadline has come, in the order of deadlines. Changes nothing."""
        due = [entry for entry in self._heap if entry[0] <= now_ms]
        return [group_id for at_ms, group_id in sorted(due) if self._armed.get(group_id) == at_ms]

    def rearm(self, group_id: str) -> None:
        """Look again when something of the group is due."""
        group = self._groups.get(group_id)
        if group is not None:
            self._arm(group_id, group.earliest_deadline_ms())

    def note(self, event: GroupEvent) -> None:
        """Keep an event with its group."""
        events = self._events.get(event.group_id)
        if events is None:
            events = self._events[event.group_id] = deque(maxlen=EVENTS_KEPT_PER_GROUP)
        events.append(event)

    def events(self, group_id: str) -> tuple[GroupEvent, ...]:
        """The last few events of a group, oldest first."""
        return tuple(self._events.get(group_id, ()))

    def _arm(self, group_id: str, at_ms: int | None) -> None:
        if at_ms is None:
            self._armed.pop(group_id, None)
        elif self._armed.get(group_id) != at_ms:
            self._armed[group_id] = at_ms
            heapq.heappush(self._heap, (at_ms, group_id))
            if len(self._heap) > 2 * len(self._armed) + 64:
                self._heap = [(ms, each) for each, ms in self._armed.items()]
                heapq.heapify(self._heap)
