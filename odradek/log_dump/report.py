"""What a dump prints: lines for a person, or one JSON object a line, and the faults it met."""

from __future__ import annotations

import json
import sys
from typing import Any


class Report:
    """Collects nothing but a count of faults; everything else is printed at once."""

    def __init__(self, *, as_json: bool, faults_only: bool) -> None:
        self.faults = 0
        self.faults_only = faults_only
        self.as_json = as_json
        self._path = ""
        self._told_path = ""

    def file(self, path: str) -> None:
        """What follows is of this file."""
        self._path = path
        if not self.faults_only and not self.as_json:
            self._tell_path()

    def _tell_path(self) -> None:
        if self._told_path != self._path:
            self._told_path = self._path
            print(f"Dumping {self._path}")

    def show(self, kind: str, fields: dict[str, Any], *, lead: str = "") -> None:
        """One thing of the file: `name: value` pairs behind `lead`."""
        if self.faults_only:
            return
        if self.as_json:
            self._print_json({"file": self._path, "kind": kind, **fields})
            return
        pairs = " ".join(f"{name}: {shown(value)}" for name, value in fields.items())
        sys.stdout.write(f"{lead}{pairs}\n")

    def note(self, sentence: str) -> None:
        """Something worth knowing that is no fault."""
        if self.faults_only:
            return
        if self.as_json:
            self._print_json({"file": self._path, "kind": "note", "text": sentence})
        else:
            print(f"note: {sentence}")

    def empty(self) -> None:
        """The file is, in the words of kafka-dump-log; JSON shows it by showing nothing."""
        if not self.faults_only and not self.as_json:
            print(f"{self._path} is empty.")

    def fault(self, sentence: str, *, position: int | None = None, offset: int | None = None) -> None:
        """Something that cannot be right; `position` counts bytes in the file, `offset` records of the log."""
        self.faults += 1
        places = {"position": position, "offset": offset}
        known = {name: place for name, place in places.items() if place is not None}
        if self.as_json:
            self._print_json({"file": self._path, "kind": "corrupt", **known, "text": sentence})
            return
        self._tell_path()
        where = ", ".join(f"{name} {place}" for name, place in known.items())
        print(f"CORRUPT{' at ' + where if where else ''}: {sentence}")

    def _print_json(self, value: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")


def shown(value: Any) -> str:
    """A value as kafka-dump-log writes it: true and false, structures as JSON."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if isinstance(value, str):
        return value if value.isprintable() else value.encode("unicode_escape").decode()
    return str(value)
