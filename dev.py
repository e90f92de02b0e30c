#!/usr/bin/env python3
"""The one entry for people working in this tree. Needs nothing but Python 3.11 or newer: it makes its own .venv.

python3 dev.py start [options]      start a node in the foreground (odradek start)
python3 dev.py test [pytest args]   run the tests
python3 dev.py check [--fix]        lint, types, import rules, tidiness, generated files fresh
python3 dev.py compile [--remove]   compile the record kernels in place (needs a C compiler)
python3 dev.py compat [client ...]  run existing clients' own suites and scenarios, here or --against another broker
python3 dev.py parity [--record]    compare answers with Apache Kafka's, request by request; record them anew
python3 dev.py parity --live        the same for random sequences, from a --seed; --full is both
python3 dev.py simulate [options]   a node in virtual time: random clients, lost answers, deaths, from a --seed
python3 dev.py crash [options]      kill a node under load at random moments, check that all it promised holds;
                                    --full, --cycles N; --workload transactions: the clients of simulate
python3 dev.py bench [subject]      measure, side by side with Apache Kafka: clients, log, partitions
python3 dev.py reference ...        start Apache Kafka 4.4.0, or run one of its tools
python3 dev.py odradek ...          any other command of the command line (topics, consume, health ...)
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
STAMP = VENV / "odradek-stamp"
OLDEST_PYTHON = (3, 11)


def main(arguments: list[str]) -> int:
    if sys.version_info < OLDEST_PYTHON:
        return fail(f"dev.py needs Python 3.11 or newer, not {sys.version.split()[0]}: start it as python3.11 dev.py.")
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(__doc__.strip())
        return 0
    command, rest = arguments[0], arguments[1:]
    if command not in COMMANDS:
        return fail(f"There is no command {command!r}; the commands are {', '.join(COMMANDS)}.")
    return COMMANDS[command](rest)


def fail(sentence: str, code: int = 2) -> int:
    print(sentence, file=sys.stderr)
    return code


# --- the environment ---------------------------------------------------------------------------


def venv_python() -> Path:
    return VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def dependencies() -> list[str]:
    """What the tree needs to run and be tested, as pyproject.toml lists it."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [*project["dependencies"], *project["optional-dependencies"]["test"]]


def ready_python() -> str:
    """The path of an interpreter that has everything; makes or completes .venv where its stamp is another."""
    wanted = dependencies()
    stamp = hashlib.sha256("\n".join(wanted).encode()).hexdigest()
    python = venv_python()
    if python.exists() and STAMP.exists() and STAMP.read_text(encoding="utf-8") == stamp:
        remove_stale_kernels(str(python))
        return str(python)
    if not python.exists():
        print("dev.py: making .venv; this happens once and may take a minute or two", file=sys.stderr, flush=True)
        run_or_leave([sys.executable, "-m", "venv", str(VENV)], "The virtual environment could not be made")
    print("dev.py: installing what pyproject.toml lists ", end="", file=sys.stderr, flush=True)
    install = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off", *wanted]
    run_or_leave(install, "The dependencies could not be installed")
    STAMP.write_text(stamp, encoding="utf-8")
    return str(python)


def remove_stale_kernels(python: str) -> None:
    """Python prefers a compiled kernel to its source, changed or not: one of another source must go."""
    if not any(file.suffix in (".so", ".pyd") for file in (ROOT / "wire").iterdir()):
        return
    kernels = [python, "compile_kernels.py"]
    if subprocess.run([*kernels, "--check"], cwd=ROOT, capture_output=True, check=False).returncode:
        print("dev.py: the compiled kernels were of an older source and are gone; compile makes them", file=sys.stderr)
        subprocess.run([*kernels, "--remove"], cwd=ROOT, check=True)


def run_or_leave(command: list[str], what_failed: str) -> None:
    """Run a step of the set-up, a dot for each line it says; on failure show them, one sentence, leave with code 1."""
    said = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as step:
        assert step.stdout is not None
        for line in step.stdout:
            said.append(line)
            print(".", end="", file=sys.stderr, flush=True)
    if said:
        print(file=sys.stderr)
    if step.returncode:
        sys.stderr.write("".join(said))
        raise SystemExit(fail(f"{what_failed} ({' '.join(command[:4])} ... ended with {step.returncode}).", 1))


def run(command: list[str]) -> int:
    """Run in the foreground from the tree's root; an interrupt ends it as it ends the command, without a trace."""
    try:
        return subprocess.run(command, cwd=ROOT, check=False).returncode
    except KeyboardInterrupt:
        return 130


def become(command: list[str]) -> int:
    """Replace this process by the command, so that signals reach it and nothing stands between."""
    if os.name == "nt":
        return run(command)
    sys.stdout.flush()
    environment = {**os.environ, "ODRADEK_COMMAND": "python3 dev.py odradek"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    os.execve(command[0], command, environment)
    return 0


# --- the commands ------------------------------------------------------------------------------


def start(arguments: list[str]) -> int:
    return odradek(["start", *arguments])


def odradek(arguments: list[str]) -> int:
    return become([ready_python(), "-m", "odradek", *arguments])


def test(arguments: list[str]) -> int:
    python = ready_python()
    if not any(argument.startswith(("-n", "-p", "--pdb")) for argument in arguments):
        arguments = ["-n", str(min(4, os.cpu_count() or 1)), *arguments]
    return run([python, "-m", "pytest", *arguments])


def check(arguments: list[str]) -> int:
    """All checks run, so that one look shows everything; the exit code is 1 if any failed."""
    unknown = [argument for argument in arguments if argument != "--fix"]
    if unknown:
        return fail(f"check knows --fix only, not {unknown[0]!r}.")
    python = ready_python()
    fix = ["--fix"] if "--fix" in arguments else []
    steps = {
        "lint": [python, "-m", "ruff", "check", "--quiet", *fix, "."],
        "types": [python, "-m", "mypy"],
        "generated messages": [python, "-m", "wire.generate", "--check"],
        "imports, tidiness, support table": [
            python,
            "-m",
            "pytest",
            "-q",
            "tests/test_imports.py",
            "tests/test_tidy.py",
            "tests/test_support_table.py",
        ],
    }
    failed = []
    for name, command in steps.items():
        print(f"== {name}", flush=True)
        if run(command):
            failed.append(name)
    print("all checks passed" if not failed else f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def compile_kernels(arguments: list[str]) -> int:
    return run([ready_python(), "compile_kernels.py", *arguments])


def compat(arguments: list[str]) -> int:
    return become([ready_python(), str(ROOT / "compat-tests" / "run.py"), *arguments])


def parity(arguments: list[str]) -> int:
    return become([ready_python(), "-m", "tests.parity.record", *arguments])


def crash(arguments: list[str]) -> int:
    return become([ready_python(), "-m", "tests.crash", *arguments])


def reference(arguments: list[str]) -> int:
    return become([ready_python(), str(ROOT / "compat-tests" / "reference" / "reference.py"), *arguments])


def simulate(arguments: list[str]) -> int:
    """`--workload NAME` chooses what runs, `transactions` by default; the rest is the workload's own."""
    workload = "transactions"
    if "--workload" in arguments:
        place = arguments.index("--workload")
        workload = next(iter(arguments[place + 1 : place + 2]), "")
        arguments = arguments[:place] + arguments[place + 2 :]
    if workload not in WORKLOADS:
        return fail(f"There is no workload {workload!r}; there are {', '.join(WORKLOADS)}.")
    return run([ready_python(), "-m", WORKLOADS[workload], *arguments])


def bench(arguments: list[str]) -> int:
    return become([ready_python(), str(ROOT / "benchmarks" / "run.py"), *arguments])


WORKLOADS = {"transactions": "tests.simulation.transactions", "groups": "tests.simulation.groups"}

COMMANDS = {
    "start": start,
    "test": test,
    "check": check,
    "compile": compile_kernels,
    "compat": compat,
    "parity": parity,
    "simulate": simulate,
    "crash": crash,
    "bench": bench,
    "reference": reference,
    "odradek": odradek,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
