"""Measures a node of this tree, and Apache Kafka beside it in the same run: `python3 dev.py bench [SUBJECT]`.

    clients      what clients see: start, memory, records written and read, transactions, latency (the default)
    log          the log engine: appending, reading, compaction, starting over what is there
    partitions   many partitions on one node: making them, starts, memory, open files, rest

Both keep their data on disk. Numbers of one machine mean little by themselves: the ratio of two brokers measured side
by side is what to look at. `bench SUBJECT --help` has the options of one.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path

from brokers import ROOT, NotStarted

SUBJECTS = {"clients": "clients", "log": "log_operations", "partitions": "partitions"}
"""Subject and the module that measures it: MEASURES, add_options(parser), measure(kind, options)."""

Measure = tuple[str, str, bool]
"""(title, unit, whether more is better)."""


def show(measures: Mapping[str, Measure], results: dict[str, dict[str, float]]) -> None:
    """A row for each measure that was taken, with the ratio where there are two brokers."""
    kinds = list(results)
    rows = [["", *kinds, *(["ratio"] if len(kinds) == 2 else [])]]
    for name, (title, unit, more_is_better) in measures.items():
        if name not in results[kinds[0]]:
            continue
        values = [results[kind][name] for kind in kinds]
        cells = [f"{value:,.0f} {unit}" if value >= 100 else f"{value:,.2f} {unit}" for value in values]
        if len(kinds) == 2:
            ours, theirs = values
            better, worse = (ours, theirs) if more_is_better else (theirs, ours)
            cells.append(f"{better / worse:.1f} times as good" if worse > 0.05 else "")
        rows.append([title, *cells])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for title, *cells in rows:
        line = [title.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))]
        print("  ".join(line).rstrip())


def main(arguments: list[str]) -> int:
    named = arguments[0] if arguments and not arguments[0].startswith("-") else "clients"
    if named not in SUBJECTS:
        print(f"There is no subject {named!r}; there are {', '.join(SUBJECTS)}.", file=sys.stderr)
        return 2
    subject = importlib.import_module(SUBJECTS[named])
    is_named = arguments[:1] == [named]
    about = subject.__doc__ if is_named else __doc__
    layout = argparse.RawDescriptionHelpFormatter
    program = f"dev.py bench {named if is_named else '[SUBJECT]'}"
    parser = argparse.ArgumentParser(prog=program, description=about, formatter_class=layout)
    subject.add_options(parser)
    parser.add_argument("--alone", action="store_true", help="without Apache Kafka")
    parser.add_argument("--output", type=Path, help="also write the numbers as JSON into a file")
    options = parser.parse_args(arguments[1:] if is_named else arguments)
    describe_machine()
    results = {}
    for kind in ["odradek"] if options.alone else ["odradek", "kafka"]:
        try:
            results[kind] = subject.measure(kind, options)
        except NotStarted as fault:
            print(f"{kind} was not measured: {fault}", file=sys.stderr)
            if kind == "odradek":
                return 1
    show(subject.MEASURES, results)
    if options.output:
        options.output.write_text(json.dumps(results, indent=1), encoding="utf-8")
    return 0


def describe_machine() -> None:
    """On what was measured, and whether it had anything else to do."""
    is_compiled = any((ROOT / "wire").glob("record_kernel.*.so"))
    kernels = "compiled" if is_compiled else "interpreted (dev.py compile makes them fast)"
    print(f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores, kernels {kernels}")
    if os.getloadavg()[0] > 0.5:
        print(f"This machine is busy (load {os.getloadavg()[0]:.1f}): measure again when it is quiet.")


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
