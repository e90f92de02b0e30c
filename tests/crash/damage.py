"""What else may have happened to the files of a node that was killed, short of losing what was acknowledged.

Indexes, snapshots and checkpoints can be made anew from the logs; temporary files and torn ends are what a loss of
power leaves. All of it is done to the directory of a node that does not run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

TORN_HEAD = 61
CHECKPOINTS = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", "cleaner-offset-checkpoint")


def damage(data: Path, chance: Random) -> list[str]:
    """Do up to three kinds of damage; what was done, in words."""
    done = []
    for act in chance.sample(DAMAGES, chance.randint(0, 3)):
        told = act(data, chance)
        if told:
            done.append(told)
    return done


def is_partition(directory: Path) -> bool:
    """Not one that was deleted or set aside, which no node reads any more."""
    return directory.name[-1].isdigit()


def some(data: Path, pattern: str, chance: Random) -> list[Path]:
    """A few of the files of partitions that match."""
    found = sorted(path for path in data.glob(pattern) if is_partition(path.parent))
    return chance.sample(found, min(len(found), chance.randint(1, 4)))


def indexes_are_missing(data: Path, chance: Random) -> str:
    paths = some(data, "*/*.index", chance) + some(data, "*/*.timeindex", chance)
    for path in paths:
        path.unlink()
    return f"indexes missing: {len(paths)}"


def indexes_are_garbage(data: Path, chance: Random) -> str:
    paths = some(data, "*/*.index", chance) + some(data, "*/*.timeindex", chance)
    for path in paths:
        path.write_bytes(chance.choice((b"", b"\x01", chance.randbytes(24), chance.randbytes(241))))
    return f"indexes garbled: {len(paths)}"


def snapshots_are_broken(data: Path, chance: Random) -> str:
    paths = some(data, "*/*.snapshot", chance)
    for path in paths:
        path.write_bytes(path.read_bytes()[: chance.randint(0, 40)])
    return f"producer snapshots cut short: {len(paths)}"


def checkpoints_are_broken(data: Path, chance: Random) -> str:
    name = chance.choice(CHECKPOINTS)
    if not (data / name).exists():
        return ""
    (data / name).write_bytes(chance.choice((b"", b"0\n5\n", chance.randbytes(50))))
    return f"{name} broken"


def ends_are_torn(data: Path, chance: Random) -> str:
    """The first bytes of a batch that was being written; nobody was told of it."""
    paths = some(data, "*/*.log", chance)
    newest = [path for path in paths if path == max(path.parent.glob("*.log"))]
    for path in newest:
        content = path.read_bytes()
        torn = bytearray(content[: chance.randint(1, TORN_HEAD)])
        torn[:8] = (1 << 40).to_bytes(8, "big")[: len(torn)]
        path.write_bytes(content + torn)
    return f"torn ends: {len(newest)}" if newest else ""


def strays_are_there(data: Path, chance: Random) -> str:
    (data / "replication-offset-checkpoint.tmp").write_bytes(b"0\n")
    paths = some(data, "*/*.log", chance)
    for path in paths:
        path.with_name(path.name + ".cleaned").write_bytes(chance.randbytes(100))
        path.with_name("leader-epoch-checkpoint.tmp").write_bytes(b"")
    return f"temporary files left: {len(paths) + 1}"


DAMAGES: list[Callable[[Path, Random], str]] = [
    indexes_are_missing,
    indexes_are_garbage,
    snapshots_are_broken,
    checkpoints_are_broken,
    ends_are_torn,
    strays_are_there,
]
