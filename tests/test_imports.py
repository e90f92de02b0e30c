"""Imports go one way: odradek over broker over coordinator over wire, and in order inside broker."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parent.parent

# From the top down; a module imports only from layers below its own, names in one layer never import each other.
BROKER_LAYERS: list[list[str]] = [
    ["process"],
    ["server"],
    ["handlers", "http"],
    ["runtime"],
    ["replication"],
    ["storage", "network", "security", "quotas"],
    ["metrics", "config", "clock", "principal", "chance"],
]


# What the module that runs a node may name of it.
NODE_MODULES = ("broker.process", "broker.server", "broker.config", "broker.network.listener", "broker.storage.files")


@functools.cache
def graph() -> grimp.ImportGraph:
    present = [name for name in ("odradek", "broker", "coordinator", "wire") if (ROOT / name / "__init__.py").exists()]
    return grimp.build_graph(*present, include_external_packages=True, cache_dir=None)


# Modules that are one part with another: split for their size, of one layer.
PART_OF = {"log_cleaner": "server", "log_upkeep": "server", "node_state": "server", "server_settings": "server"}


def broker_part(module: str) -> str | None:
    """The part of broker a module belongs to: `broker.config_log` is of `config`, `broker` itself of none."""
    if not module.startswith("broker."):
        return None
    top = module.split(".")[1]
    return "config" if re.match(r"config(_|$)", top) else PART_OF.get(top, top)


def layer_of(part: str) -> int | None:
    return next((number for number, names in enumerate(BROKER_LAYERS) if part in names), None)


def wrong_broker_imports(edges: list[tuple[str, str]]) -> list[str]:
    """Those of the (importer, imported) pairs that go up, or sideways, in BROKER_LAYERS."""
    wrong = []
    for importer, imported in edges:
        upper, lower = broker_part(importer), broker_part(imported)
        if upper is None or lower is None or upper == lower:
            continue
        upper_layer, lower_layer = layer_of(upper), layer_of(lower)
        if upper_layer is not None and lower_layer is not None and upper_layer >= lower_layer:
            wrong.append(f"{importer} imports {imported}: {upper} may not import {lower}")
    return wrong


def edges_of(package: str) -> list[tuple[str, str]]:
    return [
        (importer, imported)
        for importer in sorted(graph().modules)
        if importer == package or importer.startswith(package + ".")
        for imported in sorted(graph().find_modules_directly_imported_by(importer))
    ]


def test_contracts_of_pyproject_hold() -> None:
    program = "from importlinter.cli import lint_imports; import sys; sys.exit(lint_imports(no_cache=True))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_broker_modules_import_downward_only() -> None:
    assert wrong_broker_imports(edges_of("broker")) == []


def test_every_broker_module_has_a_layer() -> None:
    parts = {part for module in graph().modules if (part := broker_part(module)) is not None}
    assert {part for part in parts if layer_of(part) is None} == set()


def test_handlers_do_not_import_each_other() -> None:
    """A module that answers requests is imported by the table alone; others in the folder are what handlers share."""
    answering = {
        f"broker.handlers.{path.stem}"
        for path in (ROOT / "broker" / "handlers").glob("*.py")
        if re.search(r"^async def handle\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    wrong = [
        f"{importer} imports {imported}"
        for importer, imported in edges_of("broker.handlers")
        if imported in answering and importer != "broker.handlers.dispatch"
    ]
    assert answering
    assert wrong == []


def test_storage_knows_bytes_only() -> None:
    banned = ("coordinator", "asyncio", "socket", "ssl", "broker.network", "broker.security")
    wrong = [
        f"{importer} imports {imported}"
        for importer, imported in edges_of("broker.storage")
        if any(imported == name or imported.startswith(name + ".") for name in banned)
    ]
    assert wrong == []


def test_what_a_person_touches_speaks_to_a_node_through_its_ports() -> None:
    """Only the module that runs the node itself may name the node's parts; the rest may import wire."""
    wrong = [
        f"{importer} imports {imported}"
        for importer, imported in edges_of("odradek")
        if imported.split(".")[0] in ("broker", "coordinator")
        and not (importer == "odradek.node" and imported in NODE_MODULES)
    ]
    assert wrong == []


def test_client_scenarios_import_nothing_of_ours() -> None:
    ours = re.compile(r"^\s*(?:from|import)\s+(odradek|broker|coordinator|wire)\b", re.MULTILINE)
    folder = ROOT / "compat-tests"
    scripts = [*folder.rglob("*.py"), *folder.glob("*/run")]
    assert scripts
    wrong = [str(path.relative_to(ROOT)) for path in scripts if ours.search(path.read_text())]
    assert wrong == []


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("broker.server", "broker.storage.log", True),
        ("broker.handlers.produce", "broker.replication.partition", True),
        ("broker.config_log", "broker.config", True),
        ("broker.storage.log", "broker.replication.partition", False),
        ("broker.storage.log", "broker.network.connection", False),
        ("broker.handlers.produce", "broker.http.app", False),
        ("broker.clock", "broker.config", False),
    ],
)
def test_the_rule_itself_tells_right_from_wrong(importer: str, imported: str, allowed: bool) -> None:
    assert (wrong_broker_imports([(importer, imported)]) == []) is allowed
