"""The kernels, compiled: the same tests pass over them, and a stale extension is noticed."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import compile_kernels

ROOT = Path(__file__).parents[2]
TESTS = (
    "conftest",
    "record_strategies",
    "test_record_kernel",
    "test_record_batches",
    "test_record_validation",
    "test_golden_records",
)

needs_compiler = pytest.mark.skipif(
    importlib.util.find_spec("mypyc") is None or not (shutil.which("cc") or shutil.which("gcc")),
    reason="compiling needs mypyc and a C compiler",
)


def _copy_package(folder: Path) -> Path:
    package = folder / "wire"
    package.mkdir()
    for source in (ROOT / "wire").glob("*.py"):
        shutil.copy(source, package)
    return package


@needs_compiler
@pytest.mark.timeout(300)
def test_the_tests_of_records_pass_over_the_compiled_kernels(tmp_path: Path) -> None:
    package = _copy_package(tmp_path)
    assert compile_kernels.compile_kernels(package)
    tests = tmp_path / "tests" / "wire"
    tests.mkdir(parents=True)
    for name in TESTS:
        shutil.copy(ROOT / "tests" / "wire" / f"{name}.py", tests)
    (tmp_path / "tests" / "golden").mkdir()
    shutil.copytree(ROOT / "tests" / "golden" / "records", tmp_path / "tests" / "golden" / "records")
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    (tests / "test_it_is_compiled.py").write_text(
        "from wire import record_kernel\n\n\n"
        "def test_it_is_compiled():\n    assert not record_kernel.__file__.endswith('.py')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests/wire"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert "test_it_is_compiled" not in done.stdout

    # A changed source is not what runs: that must be noticed, and be undone.
    assert not compile_kernels.is_stale(package)
    with (package / "record_kernel.py").open("a") as source:
        source.write("\n# changed\n")
    assert compile_kernels.is_stale(package)
    compile_kernels.remove(package)
    assert not compile_kernels.is_stale(package)
    assert compile_kernels.extensions(package) == []


def test_the_kernels_of_this_tree_are_not_stale() -> None:
    assert not compile_kernels.is_stale(), "run python compile_kernels.py, or with --remove"


@needs_compiler
def test_a_source_that_does_not_compile_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    package = _copy_package(tmp_path)
    (package / "record_kernel.py").write_text("def broken(x: int) -> str:\n    return x\n")
    with pytest.raises(RuntimeError, match="mypyc failed"):
        compile_kernels.compile_kernels(package)
    assert compile_kernels.extensions(package) == []
