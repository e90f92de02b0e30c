"""Every message in every version: what is written is read back, by us and by other libraries."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from message_strategies import declared_messages, messages

from wire.message import Message

MESSAGES = declared_messages()


@pytest.mark.parametrize("name", MESSAGES)
@settings(max_examples=15)
@given(data=st.data())
def test_what_is_written_is_read_back(name: str, data: st.DataObject) -> None:
    declared = MESSAGES[name]
    version = data.draw(st.sampled_from(declared.versions))
    message = data.draw(messages(declared, version))
    encoded = message.encode(version)
    decoded = declared.message_class.decode(encoded, version)
    assert decoded == message
    assert decoded.encode(version) == encoded
    pieces: list[bytes] = []
    message.write(pieces, version)
    assert b"".join(pieces) == encoded
    assert isinstance(message, Message)
