"""Style limits as tests: what a reader can hold in mind, and what must not be left behind.

Long functions and modules that stand today are listed in tidy_exceptions.json with their size. A listed number may
only fall: the test fails when a thing outgrows its number, and also when it has shrunk below it, until the number is
lowered (or the line removed).
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXCEPTIONS = ROOT / "tests" / "tidy_exceptions.json"

FUNCTION_LINES_MAX = 60  # a screen
MODULE_LINES_MAX = 500
TEST_MODULE_LINES_MAX = 800  # tests are read one function at a time

GENERATED = ("wire/messages/",)
BANNED_NAMES = {
    "utils": "the name of what it does",
    "util": "the name of what it does",
    "common": "the name of what is shared",
    "helpers": "the module that uses them",
    "helper": "the module that uses it",
    "misc": "the name of what it holds",
    "types": "the module that changes the type",
}
# Written in halves, so that this file does not find itself.
LEFTOVERS = {
    r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b": "say it in an issue or do it",
    r"\braise Not" + r"ImplementedError\b": "an unfinished path must not be registered",
    r"pytest\.mark\.skip\b": "skip with a real condition (skipif) or not at all",
    r"(?:/work" + r"/|/root" + r"/|/home" + r"/(?!user|odradek)|/Users" + r"/)": "a path of one machine",
    r"\b(?:py" + r"pi\.org|repo1?\.mav" + r"en|registry\.npm" + r"js)": "a registry's address: the clients know theirs",
}
TEXT_ENDINGS = {".py", ".md", ".toml", ".yaml", ".yml", ".sh", ".json", ".properties", ".schema", ".txt", ""}


def tracked_files() -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def python_files() -> list[str]:
    return [name for name in tracked_files() if name.endswith(".py") and not name.startswith(GENERATED)]


def long_functions(source: str, limit: int) -> dict[str, int]:
    """Functions of more lines than `limit`, docstring not counted, by qualified name."""
    found: dict[str, int] = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = length_without_docstring(child)
                if lines > limit:
                    found[prefix + child.name] = lines
                visit(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.ClassDef):
                visit(child, f"{prefix}{child.name}.")
            else:
                visit(child, prefix)

    visit(ast.parse(source), "")
    return found


def length_without_docstring(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def oversizes() -> dict[str, int]:
    sizes: dict[str, int] = {}
    for name in python_files():
        source = (ROOT / name).read_text(encoding="utf-8")
        lines = source.count("\n")
        if lines > (TEST_MODULE_LINES_MAX if name.startswith("tests/") else MODULE_LINES_MAX):
            sizes[name] = lines
        for function, length in long_functions(source, FUNCTION_LINES_MAX).items():
            sizes[f"{name}:{function}"] = length
    return sizes


def ratchet_faults(sizes: dict[str, int], allowed: dict[str, int]) -> list[str]:
    """What breaks the ratchet: a new long thing, one that grew, or an allowance larger than what stands."""
    new = {what: size for what, size in sizes.items() if what not in allowed}
    faults = [f"{what} has {size} lines: split it by what it decides" for what, size in new.items()]
    for what, most in allowed.items():
        now = sizes.get(what, 0)
        if now > most:
            faults.append(f"{what} grew from {most} to {now} lines; it may only shrink")
        elif now < most:
            faults.append(f"{what} is down to {now} from {most}: lower or drop its number in tidy_exceptions.json")
    return sorted(faults)


def test_functions_fit_a_screen_and_modules_a_reading() -> None:
    assert ratchet_faults(oversizes(), json.loads(EXCEPTIONS.read_text(encoding="utf-8"))) == []


def test_no_drawer_modules() -> None:
    wrong = [
        f"{name}: name it by {BANNED_NAMES[part]}"
        for name in python_files()
        for part in Path(name).with_suffix("").parts
        if part in BANNED_NAMES
    ]
    assert wrong == []


def test_nothing_left_behind() -> None:
    wrong = []
    for name in tracked_files():
        if name == "tests/test_tidy.py" or Path(name).suffix not in TEXT_ENDINGS:
            continue
        text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            wrong += [f"{name}:{number}: {why}" for pattern, why in LEFTOVERS.items() if re.search(pattern, line)]
    assert wrong == []


def test_test_modules_have_names_of_their_own() -> None:
    """Test folders are no packages, so two modules of one name cannot be imported in one run."""
    names = [Path(name).name for name in python_files() if Path(name).name.startswith("test_")]
    assert not {name for name in names if names.count(name) > 1}


def test_tests_do_not_sleep() -> None:
    sleep = re.compile(r"\btime\.sle" + r"ep\(")
    wrong = [name for name in python_files() if name.startswith("tests/") and sleep.search((ROOT / name).read_text())]
    assert wrong == [], "await the condition instead"


def test_what_answers_requests_asks_for_no_task_of_its_own() -> None:
    """A request runs without a task until it waits (broker/network/first_step.py): these would fail there."""
    needs_task = re.compile(r"\basyncio\.(?:timeout|timeout_at|wait_for|TaskGroup|current_task)\b")
    folders = ("broker/handlers/", "broker/runtime/", "broker/replication/")
    answering = [name for name in python_files() if name.startswith(folders)]
    wrong = [name for name in answering if needs_task.search((ROOT / name).read_text())]
    assert wrong == []


def test_every_package_says_what_it_is() -> None:
    files = [name for name in python_files() if name.endswith("/__init__.py") and not name.startswith("tests/")]
    missing = [name for name in files if not says_purpose(Path(name).parent)]
    assert missing == []


def says_purpose(package: Path) -> bool:
    """A README.md of its own, or a docstring in __init__.py that says the same in a line."""
    if (ROOT / package / "README.md").exists():
        return True
    return ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text(encoding="utf-8"))) is not None


@pytest.mark.parametrize(
    ("sizes", "allowed", "faults"),
    [
        ({}, {}, 0),
        ({"a.py:f": 70}, {}, 1),
        ({"a.py:f": 70}, {"a.py:f": 70}, 0),
        ({"a.py:f": 71}, {"a.py:f": 70}, 1),
        ({"a.py:f": 69}, {"a.py:f": 70}, 1),
        ({}, {"a.py:f": 70}, 1),
    ],
)
def test_the_ratchet_only_turns_one_way(sizes: dict[str, int], allowed: dict[str, int], faults: int) -> None:
    assert len(ratchet_faults(sizes, allowed)) == faults


def test_long_functions_are_found_wherever_they_hide() -> None:
    body = "\n".join("        x = 1" for _ in range(61))
    source = f"class A:\n    def f(self):\n        '''doc\n\n\n'''\n{body}\n"
    assert long_functions(source, 60) == {"A.f": 62}
    assert long_functions(source, 62) == {}
