"""The wheel: its node's packages hide, so that a user's packages of the same names and ours never meet."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(folder),
        str(ROOT),
    ]
    # Interpreted: what is compiled, and that it equals the source, is tested with the kernels.
    subprocess.run(pip, env={**os.environ, "ODRADEK_PURE": "1"}, check=True, capture_output=True, timeout=110)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel and decoys; the libraries it needs are lent by the one that runs the tests."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "venv", with_pip=False, symlinks=os.name != "nt")
    python = folder / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        str(wheel),
    ]
    subprocess.run(pip, check=True, capture_output=True, timeout=110)
    (packages,) = (folder / "venv").rglob("site-packages")
    (packages / "lent.pth").write_text(sysconfig.get_paths()["purelib"])
    for name in ("broker", "wire", "coordinator"):
        (packages / name).mkdir()
        (packages / name / "__init__.py").write_text(f"MINE = 'the user\\'s own {name}'\n")
    return python


def test_the_wheel_brings_one_name_only(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"odradek"}


def test_the_wheel_holds_the_whole_node(wheel: Path) -> None:
    held = {name.removeprefix("odradek/_node/") for name in zipfile.ZipFile(wheel).namelist() if "/_node/" in name}
    for package in ("wire", "coordinator", "broker"):
        assert {str(file.relative_to(ROOT)) for file in (ROOT / package).rglob("*.py")} - held == set()


def run(python: Path, program: str, folder: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        [str(python), "-c", program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_user_and_the_node_have_each_their_own_broker(installed: Path, tmp_path: Path) -> None:
    program = """
import broker, wire, coordinator
import odradek
with odradek.Broker() as node:
    node.reset()
    print(broker.MINE, wire.MINE, coordinator.MINE, node.alive, sep="|")
"""
    said = run(installed, program, tmp_path)
    assert said == "the user's own broker|the user's own wire|the user's own coordinator|True\n"


def test_the_installed_command_runs(installed: Path, tmp_path: Path) -> None:
    command = [str(installed.with_name("odradek")), "start", "--set", "nu.partitions=1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "did you mean num.partitions" in done.stderr


def test_the_plugin_is_found_by_its_entry_point(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("def test_one(odradek):\n    odradek.reset()\n")
    done = subprocess.run(
        [str(installed), "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
