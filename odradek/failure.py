"""The one exception that ends a command: a sentence for a person and an exit code, never a traceback."""

from __future__ import annotations

FAILED = 1
BAD_SETTING = 2


class Failure(Exception):
    """What went wrong, in one sentence; `exit_code` 1 for a failure, 2 for a bad setting or argument."""

    def __init__(self, sentence: str, exit_code: int = FAILED) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code
