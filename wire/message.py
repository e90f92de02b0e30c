"""What all generated messages share: decoding from and encoding to whole buffers."""

from __future__ import annotations

from struct import error as StructError
from typing import Any, ClassVar, Self

from wire.errors import MalformedMessage, WireError
from wire.primitives import Buffer, read_unknown_tag, read_uvarint

EMPTY: Any = ()
"""Default of list and struct parameters: a fresh empty value for each instance."""


class Struct:
    """A group of fields: equality and representation by its fields; reading and writing in place."""

    __slots__: tuple[str, ...] = ()
    __hash__ = None  # type: ignore[assignment]

    unknown_tagged_fields: list[tuple[int, bytes]] | None

    @classmethod
    def read(cls, buffer: bytes, position: int, version: int) -> tuple[Self, int]:
        """Read from ``position``; returns the value and the position after it."""
        raise TypeError(f"{cls.__name__} has no fields to read")

    def write(self, out: list[Buffer], version: int) -> None:
        """Append the encoded buffers to ``out``; raises UnsupportedField."""
        raise TypeError(f"{type(self).__name__} has no fields to write")

    def _read_tags(self, buffer: bytes, position: int, version: int) -> int:
        """Read a tagged-field section none of whose tags is known; keeps them (KIP-482).

        Tags are to ascend; Kafka does not ask for it, and so do we not.
        """
        count, position = read_uvarint(buffer, position)
        unknown: list[tuple[int, bytes]] = []
        message: Any = self
        message.unknown_tagged_fields = unknown
        for _ in range(count):
            tag, position = read_uvarint(buffer, position)
            size, position = read_uvarint(buffer, position)
            value, position = read_unknown_tag(buffer, position, size)
            unknown.append((tag, value))
        return position

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        fields = ", ".join(
            f"{name}={getattr(self, name)!r}"
            for name in self.__slots__
            if name != "unknown_tagged_fields"
        )
        return f"{type(self).__name__}({fields})"


class Message(Struct):
    """A request, response, header, record or embedded structure with its range of versions."""

    __slots__ = ()

    API_KEY: ClassVar[int]
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    FLEXIBLE_FROM: ClassVar[int]

    @classmethod
    def decode(cls, buffer: bytes, version: int, position: int = 0) -> Self:
        """Decode a message that fills the buffer from ``position`` on.

        Bytes after the message are ignored, as Kafka does. Raises MalformedMessage for bytes
        that are no such message and ValueError for a version that does not exist.
        """
        if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
            raise ValueError(f"{cls.__name__} has no version {version}")
        try:
            return cls.read(buffer, position, version)[0]
        except (StructError, IndexError) as error:
            raise MalformedMessage(f"{cls.__name__} v{version} ends too early: {error}") from error

    def encode(self, version: int) -> bytes:
        """The message's bytes at ``version``; raises UnsupportedField or WireError."""
        if not self.MIN_VERSION <= version <= self.MAX_VERSION:
            raise ValueError(f"{type(self).__name__} has no version {version}")
        out: list[Buffer] = []
        try:
            self.write(out, version)
        except (StructError, AttributeError, TypeError, ValueError) as error:
            raise WireError(f"{type(self).__name__} v{version} cannot be written: {error}") from error
        return b"".join(out)
