"""The command line: `odradek COMMAND`. Each command is a module of `odradek.cli`, imported only when it is named.

argparse, not a larger library: the start of a node is measured from the command, and the standard parser is the only
one that costs no import worth counting.
"""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module

from odradek.failure import BAD_SETTING, FAILED, Failure
from odradek.node_home import is_tree, put_first_on_path

COMMANDS = {
    "start": "run a node in the foreground",
    "health": "exit with 0 if a broker answers and is ready",
    "topics": "list, describe, create, delete topics",
    "groups": "list, describe, delete groups; show, set, delete what they have committed",
    "produce": "write records, one for each line of standard input",
    "consume": "read records",
    "configs": "describe and alter settings of topics, brokers and groups",
    "reset": "empty a node: topics, groups, everything",
    "compact": "compact a topic now instead of when it is due",
    "retention": "apply a topic's retention now instead of at the next check",
    "dump-log": "show and check the files of a log directory",
}


def usage() -> str:
    lines = [f"  {name:9} {what}" for name, what in COMMANDS.items()]
    return "\n".join(
        [
            "odradek: a broker that Apache Kafka clients cannot tell from Apache Kafka 4.4",
            "",
            *lines,
            "",
            "odradek COMMAND --help tells the options of a command.",
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 done, 1 failed, 2 bad setting or argument, 130 interrupted."""
    open_missing_streams()
    arguments = sys.argv[1:] if arguments is None else arguments
    if any("\udc80" <= character <= "\udcff" for argument in arguments for character in argument):
        print("odradek: the arguments are not text in the encoding of this terminal.", file=sys.stderr)
        return BAD_SETTING
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    if arguments[0] in ("-V", "--version"):
        from odradek import __version__

        print(f"odradek {__version__}, answering as Apache Kafka 4.4")
        return 0
    name = arguments[0]
    if name not in COMMANDS:
        print(f"odradek: there is no command {name!r}; the commands are {', '.join(COMMANDS)}.", file=sys.stderr)
        return BAD_SETTING
    return run_command(name, arguments[1:])


def open_missing_streams() -> None:
    """Stand in for standard streams that are closed: else a socket gets their number, and output meant for them."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name that the terminal cannot show is no failure


def missing(module: str | None) -> str:
    """What to do about a library that is not there: after a pull, in an environment made by hand."""
    way_out = "run python3 dev.py start, which installs" if is_tree() else "pip install --upgrade odradek installs"
    return f"The Python module {module} is missing: {way_out} what is needed."


def run_command(name: str, arguments: list[str]) -> int:
    put_first_on_path()
    try:
        import_module(f"odradek.cli.{name.replace('-', '_')}").run(arguments)
        sys.stdout.flush()
        return 0
    except Failure as failure:
        print(f"odradek {name}: {failure}", file=sys.stderr)
        return failure.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output went away (`| head`): nothing is wrong, and nothing more can be said on stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ModuleNotFoundError as error:
        print(f"odradek {name}: {missing(error.name)}", file=sys.stderr)
        return FAILED
    except Exception as error:
        if os.environ.get("ODRADEK_DEBUG"):
            raise
        print(
            f"odradek {name}: failed unexpectedly with {type(error).__name__}: {error} (ODRADEK_DEBUG=1 shows where).",
            file=sys.stderr,
        )
        return FAILED


if __name__ == "__main__":
    sys.exit(main())
