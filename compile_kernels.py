"""Compile the hot loops of this tree in place with mypyc: ``python compile_kernels.py``.

The extension modules land beside their sources, where Python prefers them; without them the
sources run interpreted. Needs mypy and a C compiler. ``--remove`` goes back to the sources;
``--check`` fails when an extension was made from another source than the one that lies there
(a changed source is not seen by Python, which would go on loading the extension).
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

KERNELS = ("record_kernel",)
"""Modules of ``wire`` that hold typed loops over bytes and nothing else."""

PACKAGE = Path(__file__).parent / "wire"


def extensions(folder: Path = PACKAGE) -> list[Path]:
    """The extension modules that were compiled into a folder, runtime parts of mypyc included."""
    return sorted(
        path
        for kernel in KERNELS
        for stem in (kernel, f"{kernel}__mypyc")
        for path in folder.glob(f"{stem}.*")
        if any(path.name == stem + suffix for suffix in EXTENSION_SUFFIXES)
    )


def _fingerprint(folder: Path) -> str:
    digest = hashlib.sha256()
    for kernel in KERNELS:
        digest.update((folder / f"{kernel}.py").read_bytes())
    return digest.hexdigest()


def _fingerprint_path(folder: Path) -> Path:
    return folder / "build" / "kernels.sha256"


def is_stale(folder: Path = PACKAGE) -> bool:
    """Whether extensions are there that were not compiled from the sources that are there."""
    if not extensions(folder):
        return False
    recorded = _fingerprint_path(folder)
    return not recorded.is_file() or recorded.read_text() != _fingerprint(folder)


def remove(folder: Path = PACKAGE) -> None:
    """Remove compiled extensions, so that the sources run interpreted."""
    for path in extensions(folder):
        path.unlink()
    shutil.rmtree(folder / "build", ignore_errors=True)


def compile_kernels(folder: Path = PACKAGE) -> list[Path]:
    """Compile the kernels of a ``wire`` folder in place; returns the extension modules.

    Raises RuntimeError with the compiler's output when mypyc or the C compiler fails.
    """
    with tempfile.TemporaryDirectory() as scratch:
        package = Path(scratch) / "wire"
        package.mkdir()
        # What the kernels import comes along for its types; only the kernels are compiled.
        for source in ("__init__.py", "errors.py", *(f"{kernel}.py" for kernel in KERNELS)):
            shutil.copy(folder / source, package / source)
        done = subprocess.run(
            [sys.executable, "-m", "mypyc", "--strict", *(f"wire/{kernel}.py" for kernel in KERNELS)],
            cwd=scratch,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"mypyc failed:\n{done.stdout}{done.stderr}")
        remove(folder)
        for built in extensions(package):
            shutil.copy(built, folder / built.name)
    _fingerprint_path(folder).parent.mkdir(exist_ok=True)
    _fingerprint_path(folder).write_text(_fingerprint(folder))
    return extensions(folder)


def main() -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python compile_kernels.py", description=__doc__)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--check", action="store_true", help="fail if a compiled kernel is stale")
    choice.add_argument("--remove", action="store_true", help="remove the compiled kernels")
    options = parser.parse_args()
    if options.check:
        if is_stale():
            sys.stderr.write("compiled kernels are stale: run python compile_kernels.py, or --remove them\n")
        return 1 if is_stale() else 0
    if options.remove:
        remove()
        return 0
    try:
        for path in compile_kernels():
            sys.stdout.write(f"{path}\n")
    except RuntimeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
