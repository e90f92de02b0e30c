"""The fixture `odradek`, as a suite of others uses it: run as pytest in a folder of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SUITE = """
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

@pytest.mark.parametrize("number", range(4))
def test_each_test_finds_it_empty(odradek, number):
    admin = AdminClient({"bootstrap.servers": odradek.bootstrap_servers})
    assert "orders" not in admin.list_topics(timeout=30).topics
    producer = Producer({"bootstrap.servers": odradek.bootstrap_servers})
    producer.produce("orders", b"%d" % number)
    assert producer.flush(30) == 0
    group = {"group.id": "shop", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": odradek.bootstrap_servers} | group)
    consumer.subscribe(["orders"])
    message = consumer.poll(30)
    assert (message.value(), message.offset()) == (b"%d" % number, 0)
    consumer.close()

def test_reset_in_the_middle(odradek):
    producer = Producer({"bootstrap.servers": odradek.bootstrap_servers})
    producer.produce("orders", b"x")
    assert producer.flush(30) == 0
    odradek.reset()
    admin = AdminClient({"bootstrap.servers": odradek.bootstrap_servers})
    assert "orders" not in admin.list_topics(timeout=30).topics
"""


def run_suite(folder: Path, *arguments: str, suite: str = SUITE, ini: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "test_suite.py").write_text(suite)
    (folder / "pytest.ini").write_text(f"[pytest]\n{ini}")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "odradek.pytest_plugin",
        "-p",
        "no:cacheprovider",
        *arguments,
    ]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=110, check=False
    )


@pytest.mark.parametrize("workers", ["0", "2"])
def test_u06_tests_share_nothing_but_the_process(tmp_path: Path, workers: str) -> None:
    done = run_suite(tmp_path, "-n", workers)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout


def test_settings_of_the_ini_file_reach_the_node(tmp_path: Path) -> None:
    suite = """
from confluent_kafka.admin import AdminClient, NewTopic

def test_partitions(odradek):
    admin = AdminClient({"bootstrap.servers": odradek.bootstrap_servers})
    admin.create_topics([NewTopic("t")])["t"].result(30)
    assert len(admin.list_topics("t", 30).topics["t"].partitions) == 7
"""
    done = run_suite(tmp_path, suite=suite, ini="odradek_settings =\n    num.partitions=7\n")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_node_that_a_test_has_ended_is_started_anew(tmp_path: Path) -> None:
    suite = """
import os, signal

def test_one(odradek):
    os.kill(odradek.pid, signal.SIGKILL)
    odradek._process.wait()

def test_two(odradek):
    assert odradek.alive
    odradek.reset()
"""
    done = run_suite(tmp_path, suite=suite)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_bad_setting_fails_the_tests_with_its_sentence(tmp_path: Path) -> None:
    suite = "def test_one(odradek): pass\n"
    done = run_suite(tmp_path, suite=suite, ini="odradek_settings =\n    nu.partitions=7\n")
    assert done.returncode == 1
    assert "did you mean num.partitions" in done.stdout
    assert "Traceback" not in done.stdout
