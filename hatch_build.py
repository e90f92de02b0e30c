"""Lays the node's packages under odradek/_node/ of the wheel, with the hot kernels compiled where a compiler is found.

Compiled or not, the modules keep the names they have in the tree (wire.record_kernel …), because the node's process
puts that folder first on its path. Without mypyc or a C compiler the same files run interpreted.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGES = ("wire", "coordinator", "broker")
KERNELS = ("wire/record_kernel.py",)


class NodeBuildHook(BuildHookInterface):
    """Adds the files; an editable install needs none of it, it runs from the tree."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        root = Path(self.root)
        for package in PACKAGES:
            for file in sorted((root / package).rglob("*")):
                if file.suffix in (".py", ".md") and "__pycache__" not in file.parts:
                    build_data["force_include"][str(file)] = f"odradek/_node/{file.relative_to(root)}"
        compiled = compile_kernels(root)
        for file, place in compiled.items():
            build_data["force_include"][str(file)] = f"odradek/_node/{place}"
        if compiled:
            build_data["pure_python"] = False
            build_data["infer_tag"] = True


def compile_kernels(root: Path) -> dict[Path, str]:
    """Compiled kernels and their places in the tree; empty where they cannot be compiled (or ODRADEK_PURE is set)."""
    if os.environ.get("ODRADEK_PURE"):
        return {}
    work = Path(tempfile.mkdtemp(prefix="odradek-kernels-"))
    for package in PACKAGES:
        shutil.copytree(root / package, work / package, ignore=shutil.ignore_patterns("__pycache__", "*.so", "schemas"))
    command = [sys.executable, "-m", "mypyc", "--follow-imports=silent", "--ignore-missing-imports", *KERNELS]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"odradek: the kernels stay interpreted, mypyc ended with {done.returncode}", file=sys.stderr)
        return {}
    return {file: str(file.relative_to(work)) for file in work.glob("wire/*") if file.suffix in (".so", ".pyd")}
