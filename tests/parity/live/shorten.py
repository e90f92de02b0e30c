"""Makes the sequence before a difference as short as it can be: by leaving steps out and playing the rest again."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tests.parity.live.stage import Stage
from tests.parity.live.twins import Difference, Step

PATIENCE_S = 1.0
"""How long a step that waits may wait for what a step left out would have ordered."""


def shortened(stage: Stage, found: Difference, budget_s: float = 60.0) -> Difference:
    """The same kind of difference after fewer steps; `found` itself if it is not found again."""
    deadline = time.monotonic() + budget_s
    best = again(stage, found, found.steps)
    if best is None:
        return found
    size = max(len(best.steps) // 2, 1)
    while time.monotonic() < deadline:
        start, changed = 0, False
        while start < len(best.steps) and time.monotonic() < deadline:
            fewer = best.steps[:start] + best.steps[start + size :]
            shorter = again(stage, found, fewer) if fewer else None
            if shorter is None or len(shorter.steps) >= len(best.steps):
                start += size
            else:
                best, changed = shorter, True
        if size == 1 and not changed:
            break
        size = max(size // 2, 1)
    return best


def again(stage: Stage, found: Difference, steps: Sequence[Step]) -> Difference | None:
    """Play steps with names of their own; the difference if it is of the same kind."""
    twins, own = stage.twins()
    twins.renamed = found.own, own
    twins.patience_s = PATIENCE_S
    try:
        for step in steps:
            getattr(twins, step.method)(*step.arguments, **{**step.fields, **WITHOUT_MODEL.get(step.method, {})})
    except Difference as fault:
        # The steps are named as they were found: they are played under other names each time.
        fault.own, fault.steps = found.own, tuple(steps[: len(twins.steps)])
        return fault if fault.signature == found.signature else None
    except (KeyError, ValueError):
        return None  # what was left out chose something that is named later
    finally:
        twins.close()
    return None


WITHOUT_MODEL = {"ask": {"done": None}}
"""What a step told the machine is not told again."""
