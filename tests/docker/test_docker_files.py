"""What docker/ says, tried without an engine: the environment, the command and the health check of its files."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from odradek.client import Client

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text(encoding="utf-8"))
SERVICE = COMPOSE["services"]["odradek"]


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions, continued lines joined."""
    joined = re.sub(r"\\\n\s*", " ", re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE))
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in joined.splitlines() if line.strip()]


def last(name: str) -> str:
    return [value for instruction, value in instructions() if instruction == name][-1]


def image_environment() -> dict[str, str]:
    return dict(word.split("=", 1) for word in shlex.split(last("ENV")))


def on_free_ports(settings: dict[str, str]) -> dict[str, str]:
    """Listener settings as they stand in the files, but for the ports: those of the tests' machine may be taken."""
    return {
        name: re.sub(r":\d+(?=,|$)", ":0", value) if name.endswith("LISTENERS") else value
        for name, value in settings.items()
        if name.startswith("KAFKA_")
    }


@contextmanager
def node(settings: dict[str, str], *arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    command = [sys.executable, "-m", "odradek", "start", "--json", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("KAFKA_", "ODRADEK_"))}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment | settings, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def port_of(address: str) -> int:
    return int(address.rsplit(":", 1)[1])


def test_u13_the_image_starts_answers_its_health_check_and_ends_on_sigterm() -> None:
    assert json.loads(last("ENTRYPOINT")) == ["odradek", "start"]
    with node(on_free_ports(image_environment())) as (process, ready):
        port = port_of(ready["bootstrap_servers"].split(",")[0])
        health = json.loads(re.sub(r"^.*?CMD ", "", last("HEALTHCHECK")))
        assert health[:2] == ["odradek", "health"]
        asked = [argument.replace(":9092", f":{port}") for argument in health[1:]]
        done = subprocess.run(
            [sys.executable, "-m", "odradek", *asked], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_u01_the_host_and_other_containers_each_get_their_own_address(tmp_path: Path) -> None:
    environment = SERVICE["environment"]
    arguments = [argument.replace("/data", str(tmp_path)) for argument in SERVICE["command"]]
    with node(on_free_ports(environment), *arguments) as (_, ready):
        told = {}
        for address in ready["bootstrap_servers"].split(","):
            with Client(f"127.0.0.1:{port_of(address)}") as client:
                (broker,) = client.metadata([]).brokers
            told[broker.host] = (broker.port, port_of(address))
        assert set(told) == {"localhost", "odradek"}
        assert all(advertised == listening for advertised, listening in told.values())
        assert (tmp_path / "meta.properties").exists()


def test_ports_of_the_files_agree() -> None:
    published = {mapping.split(":")[1] for mapping in SERVICE["ports"]}
    listening = set(re.findall(r":(\d+)(?=,|$)", SERVICE["environment"]["KAFKA_LISTENERS"]))
    assert published <= listening
    assert last("EXPOSE") in published


def test_the_image_does_not_run_as_root_and_owns_its_data() -> None:
    names = [name for name, _ in instructions()]
    assert last("USER") == "odradek"
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert "install -d -o odradek" in DOCKERFILE
    assert f"data:{last('VOLUME')}" in SERVICE["volumes"]


def test_the_build_gets_what_the_wheel_needs() -> None:
    sent = {
        line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")
    }
    assert {
        "broker",
        "coordinator",
        "wire",
        "odradek",
        "pyproject.toml",
        "hatch_build.py",
        "README.md",
        "LICENSE",
    } <= sent
    assert all((ROOT / name).exists() for name in sent - {"configs"})
