"""Transcripts: commands for Apache Kafka's tools and what they printed, in one file that a person can read.

A transcript's lines, by how they begin:

- `# ` a comment; `% PATTERN => TEXT` what differs from run to run, for the rest of the file
- `< ` a line that the next command reads from its standard input
- `$ kafka-topics --create --topic words~` a command; --bootstrap-server is added, `words~` gets an ending of this run
- `! ` what it printed to stderr, `[1]` its exit code where it is not 0, anything else what it printed to stdout

And its commands, by their words:

- `$ kafka-topics --list | grep words` shows the lines that match; `| sort` sorts them, `| count` counts them
- `$ kafka-console-consumer ... &` runs in the background until the file's end or a line `$ stop`
- `$ alone kafka-verifiable-producer ...` runs in a process of its own, for tools that work in the hooks of their end
- `$ until PATTERN kafka-consumer-groups ...` is repeated until what it prints matches; that is shown
- `$ file NAME` writes its input into a file, which later commands find as `@NAME`
"""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from jvm import Said, Tools, end, wait_until
from masks import masked

UNTIL_TIMEOUT_S = 40.0


@dataclass(slots=True)
class Command:
    """One command of a transcript."""

    line: str
    stdin: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    """The lines above it: comments, masks, what it reads."""
    expected: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Transcript:
    """A file: its commands, and the lines after the last."""

    name: str
    commands: list[Command]
    masks: list[tuple[str, str]]

    @classmethod
    def read(cls, file: Path) -> Transcript:
        commands: list[Command] = []
        masks: list[tuple[str, str]] = []
        before: list[str] = []
        stdin: list[str] = []
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("$ "):
                commands.append(Command(line[2:], stdin, before))
                before, stdin = [], []
            elif line.startswith(("# ", "% ", "< ", "<")) or (not line and (before or not commands)):
                before.append(line)
                if line.startswith("% "):
                    pattern, _, text = line[2:].partition(" => ")
                    masks.append((pattern, text))
                elif line.startswith("<"):
                    stdin.append(line[2:])
            elif commands:
                commands[-1].expected.append(line)
        return cls(file.stem, commands, masks)

    def write(self, file: Path, printed: list[list[str]]) -> None:
        lines = []
        for command, said in zip(self.commands, printed, strict=True):
            lines += [*command.before, f"$ {command.line}", *said]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")


class Session:
    """Runs the commands of one transcript against one broker."""

    def __init__(self, tools: Tools, address: str, transcript: Transcript) -> None:
        self.tools = tools
        self.address = address
        self.transcript = transcript
        self.ending = f"-{uuid.uuid4().hex[:8]}"
        self.directory = Path(tempfile.mkdtemp(prefix="transcript-", dir=tools.directory))
        self.background: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self.background:
            end(self.background.pop())

    def printed(self, command: Command) -> list[str]:
        """Run a command and return the lines that stand below it in the file."""
        text, _, through = command.line.partition(" | ")
        words = shlex.split(text.replace("~", self.ending))
        stdin = "".join(f"{line}\n" for line in command.stdin).replace("~", self.ending)
        if words[0] == "stop":
            return [f"[{end(self.background.pop())}]"]
        if words[0] == "file":
            (self.directory / words[1]).write_text(stdin, encoding="utf-8")
            return []
        if words[-1] == "&":
            self.start(words[:-1])
            return []
        if words[0] == "alone":
            return self.shown(self.tools.alone(words[1], self.arguments(words[1:])), through)
        if words[0] == "until":
            return self.until(words[1].replace(self.ending, "~"), words[2:], through)
        return self.shown(self.run(words, stdin), through)

    def run(self, words: list[str], stdin: str = "") -> Said:
        return self.tools.run(words[0], self.arguments(words), stdin)

    def arguments(self, words: list[str]) -> list[str]:
        """With the broker's address where this tool wants it, and files by their path."""
        rest = [re.sub(r"^@", f"{self.directory}/", word) for word in words[1:]]
        rest = [word.replace("BROKER", self.address) for word in rest]
        if "--help" in rest or "--version" in rest or "BROKER" in " ".join(words):
            return rest
        if words[0] == "kafka-cluster":
            return [*rest, "--bootstrap-server", self.address]
        return ["--bootstrap-server", self.address, *rest]

    def start(self, words: list[str]) -> None:
        output = (self.directory / f"background-{len(self.background)}").open("w", encoding="utf-8")
        with output:
            self.background.append(self.tools.in_background(words[0], self.arguments(words), output))

    def until(self, pattern: str, words: list[str], through: str) -> list[str]:
        said: list[list[str]] = []

        def came() -> bool:
            said.append(self.shown(self.run(words), through))
            return re.search(pattern, "\n".join(said[-1]), re.MULTILINE) is not None

        if not wait_until(came, UNTIL_TIMEOUT_S):
            return [*said[-1], f"[did not come within {UNTIL_TIMEOUT_S:g} s]"]
        return said[-1]

    def shown(self, said: Said, through: str) -> list[str]:
        lines = [*self.masked(said.out), *(f"! {line}" for line in self.masked(said.err))]
        for filtering in filter(None, through.split(" | ")):
            lines = filtered(lines, filtering.replace("~", self.ending).replace(self.ending, "~"))
        return [*lines, *([f"[{said.code}]"] if said.code else [])]

    def masked(self, text: str) -> list[str]:
        text = text.replace(self.ending, "~").replace(str(self.directory), "@")
        return masked(text, self.transcript.masks)


def filtered(lines: list[str], filtering: str) -> list[str]:
    name, *arguments = shlex.split(filtering)
    if name == "sort":
        return sorted(lines)
    if name == "grep":
        return [line for line in lines if re.search(arguments[0], line)]
    if name == "count":
        return [f"{len(lines)} lines"]
    raise ValueError(f"a transcript knows sort, grep and count, not {name}")
