"""kcat (librdkafka) from a shell: list, produce, consume, query by time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scenario import expect, main, scenario, unique


def kcat(address: str, *arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        ["kcat", "-b", address, *arguments], input=stdin, capture_output=True, text=True, timeout=60, check=False
    )
    expect(done.returncode, 0, f"the exit code of kcat {' '.join(arguments)} which says {done.stderr[-200:]}")
    return done.stdout


@scenario
def the_cluster_is_listed(address: str) -> None:
    listed = json.loads(kcat(address, "-L", "-J"))
    expect(len(listed["brokers"]), 1, "brokers")


@scenario
def every_codec_comes_back(address: str) -> None:
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        topic = unique(codec)
        lines = "".join(f"k{n}:v{n}\n" for n in range(200))
        kcat(address, "-P", "-t", topic, "-K:", "-z", codec, stdin=lines)
        expect(kcat(address, "-C", "-t", topic, "-e", "-q", "-K:", "-o", "beginning"), lines, f"lines with {codec}")


@scenario
def a_group_reads_to_the_end(address: str) -> None:
    topic = unique("group")
    kcat(address, "-P", "-t", topic, stdin="a\nb\nc\n")
    earliest = ["-X", "auto.offset.reset=earliest"]
    expect(kcat(address, "-G", unique("group"), "-e", "-q", *earliest, topic), "a\nb\nc\n", "lines")


@scenario
def offsets_are_queried_by_time(address: str) -> None:
    topic = unique("time")
    kcat(address, "-P", "-t", topic, stdin="a\nb\n")
    expect(kcat(address, "-Q", "-t", f"{topic}:0:1000").split()[-1], "0", "the offset at a time before the records")


if __name__ == "__main__":
    main()
