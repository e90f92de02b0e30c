"""What the `run` programs of clients in Rust share: a crate's integration tests, fetched, compiled and run by cargo."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from suite import Broken, Suite, finish, step, tell

LINE = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)", re.MULTILINE)
VERDICTS = {"ok": "ok", "FAILED": "FAILED", "ignored": "skipped"}
MANIFEST = """[package]
name = "fetch"
version = "0.0.0"
edition = "2021"
[lib]
path = "lib.rs"
[dependencies]
{crate} = "={version}"
"""


def cargo_source(suite: Suite, crate: str) -> Path:
    """A writable copy of a crate at the suite's version, as cargo fetches it."""
    fetch = suite.directory / "fetch"
    fetch.mkdir(exist_ok=True)
    (fetch / "Cargo.toml").write_text(MANIFEST.format(crate=crate, version=suite.version))
    (fetch / "lib.rs").write_text("")
    step(["cargo", "fetch"], fetch)
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    found = sorted(home.glob(f"registry/src/*/{crate}-{suite.version}"))
    if not found:
        raise Broken(f"cargo fetched no {crate} {suite.version}")
    source = suite.directory / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(found[-1], source)
    return source


def cargo_build(suite: Suite, tests: Sequence[str], *features: str) -> None:
    """Compile a crate's integration tests and keep where their programs lie."""
    selected = [argument for name in tests for argument in ("--test", name)]
    command = ["cargo", "test", *features, "--no-run", "--message-format=json", *selected]
    said = step(command, suite.directory / "source")
    messages = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    programs = {message["target"]["name"]: message["executable"] for message in messages if message.get("executable")}
    (suite.directory / "programs.json").write_text(json.dumps(programs))


def cargo_test(suite: Suite, tests: Sequence[str], timeout_s: float, environment: Mapping[str, str]) -> None:
    """Run a crate's integration tests, one program after the other, and tell them as PROGRAM/TEST."""
    programs = json.loads((suite.directory / "programs.json").read_text())
    for program in tests:
        chosen = [name.removeprefix(f"{program}/") for name in suite.tests if name.startswith(f"{program}/")]
        if suite.tests and not chosen:
            continue
        command = [programs[program], "--test-threads=2", *(["--exact", *chosen] if chosen else [])]
        code, said = finish(command, suite.directory / "source", timeout_s, environment)
        print(said)
        for name, verdict in LINE.findall(said):
            panic = re.search(rf"^thread '{re.escape(name)}'.* panicked at .*\n(.*)", said, re.MULTILINE)
            detail = panic[1] if panic and verdict == "FAILED" else ""
            tell(VERDICTS[verdict], f"{program}/{name}", detail=detail)
        if code is None:
            tell("FAILED", f"{program}/all", timeout_s, "not at its end in time")
