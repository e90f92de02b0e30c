"""Lays the node's packages under odradek/_node/ of the wheel, with the hot kernels compiled where a compiler is found.

Compiled or not, the modules keep the names they have in the tree (wire.record_kernel …), because the node's process
puts that folder first on its path. Without a C compiler, or with ODRADEK_PURE set, the same files run interpreted.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGES = ("wire", "coordinator", "broker")


class NodeBuildHook(BuildHookInterface):
    """Adds the files; an editable install needs none of it, it runs from the tree."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        root = Path(self.root)
        for package in PACKAGES:
            for file in sorted((root / package).rglob("*.py")):
                build_data["force_include"][str(file)] = f"odradek/_node/{file.relative_to(root)}"
        compiled = compiled_kernels(root)
        for file in compiled:
            build_data["force_include"][str(file)] = f"odradek/_node/wire/{file.name}"
        if compiled:
            build_data["pure_python"] = False
            build_data["infer_tag"] = True


def compiled_kernels(root: Path) -> list[Path]:
    """The kernels' extension modules, in a folder of their own; empty where they cannot be compiled."""
    if os.environ.get("ODRADEK_PURE"):
        return []
    sys.path.insert(0, str(root))
    try:
        from compile_kernels import compile_kernels
    finally:
        sys.path.remove(str(root))
    folder = Path(tempfile.mkdtemp(prefix="odradek-kernels-")) / "wire"
    shutil.copytree(root / "wire", folder, ignore=shutil.ignore_patterns("__pycache__", "messages", "schemas", "*.so"))
    try:
        return compile_kernels(folder)
    except RuntimeError as error:
        print(f"odradek: the kernels stay interpreted: {error}", file=sys.stderr)
        return []
