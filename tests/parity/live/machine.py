"""What every machine of random sequences has: a pair of brokers, steps, and what becomes of a difference."""

from __future__ import annotations

from typing import Any, ClassVar

from hypothesis.stateful import RuleBasedStateMachine

from tests.parity.differences import STUMBLES
from tests.parity.live.stage import Stage
from tests.parity.live.twins import Difference
from wire.message import Message, Struct
from wire.messages.describe_transactions import DescribeTransactionsRequest

ADMIN = "admin"
"""The connection on which nothing waits."""
CONCURRENT_TRANSACTIONS = 51


class Machine(RuleBasedStateMachine):
    """One sequence. It ends at its first difference."""

    stage: ClassVar[Stage]
    set_aside: ClassVar[tuple[str, ...]] = ()
    survey: ClassVar[dict[str, Difference] | None] = None
    last: ClassVar[Difference | None] = None
    share: ClassVar[int] = 1
    """One sequence where others have so many: it takes its time."""
    begun: ClassVar[int] = 0
    steps: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.twins, self.prefix = self.stage.twins()
        self.is_over = False
        type(self).begun += 1

    def ask(self, connection: str, request: Message, version: int, **how: Any) -> Any:
        """One step; None when it is not answered, or cannot be said at the version, or all is over."""
        if self.is_over:
            return None
        Machine.steps += 1
        try:
            return self.twins.ask(connection, request, version, **how)
        except ValueError:
            return None
        except Difference as fault:
            self.end(fault)
            return None

    def settled(self, name: str, request: Any, version: int, **how: Any) -> Any:
        """A step of a transaction; what comes after it finds its markers written."""
        answer = self.ask(ADMIN, request, version, passes=still_ending, **how)
        if answer is not None and not self.is_over:
            asked = DescribeTransactionsRequest(transactional_ids=[self.prefix + name])
            self.twins.each_until(asked, 0, lambda found: "Prep" not in found.transaction_states[0].transaction_state)
        return answer

    def end(self, fault: Difference) -> None:
        """End this sequence; raise the difference unless it was set aside or a survey collects all."""
        self.is_over = True
        if fault.signature in STUMBLES or any(text in str(fault) for text in self.set_aside):
            return
        if self.survey is None:
            type(self).last = fault
            raise fault
        known = self.survey.get(fault.signature)
        if known is None or len(str(fault)) < len(str(known)):
            self.survey[fault.signature] = fault

    def teardown(self) -> None:
        """Close the connections."""
        self.twins.close()


def still_ending(answer: Any) -> bool:
    """Whether an answer says that the transaction before is being completed."""
    if isinstance(answer, list):
        return any(still_ending(each) for each in answer)
    if not isinstance(answer, Struct):
        return False
    values = ((name, getattr(answer, name)) for name in answer.__slots__)
    return any(
        value == CONCURRENT_TRANSACTIONS if name.endswith("error_code") else still_ending(value)
        for name, value in values
    )
