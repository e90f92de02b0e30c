"""The four codecs of record batches, in the framings that Kafka's clients use.

Decompression is bounded: the caller gives the most bytes it will take, no buffer is ever sized
from a length that the input merely claims, and a payload that would grow past the limit is cut
off with DecompressedTooLarge. For lz4 and zstd the headers of the blocks are walked first: they give
an upper bound that the input's own size enforces.

Source: Kafka package org.apache.kafka.common.compress; KIP-110 (zstd), KIP-390 (levels).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from enum import IntEnum

import cramjam

from wire.errors import ErrorCode, KafkaError, MalformedMessage

DECOMPRESSED_SIZE_LIMIT = 128 * 1024 * 1024
"""The most bytes the records of one batch may take unpacked, unless a caller says otherwise."""

_GZIP_SYSTEM_POSITION = 9
_GZIP_UNKNOWN_SYSTEM = b"\xff"
"""What Java writes: a batch tells nothing of the machine that compressed it."""
_SNAPPY_MAGIC = b"\x82SNAPPY\0"
_SNAPPY_HEADER = _SNAPPY_MAGIC + b"\0\0\0\1\0\0\0\1"
_SNAPPY_BLOCK_SIZE = 32 * 1024
_SNAPPY_RATIO_MAX = 22
"""A copy of 3 bytes yields at most 64: a block that declares more than this ratio is a lie."""
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_HEADER = _LZ4_MAGIC + b"\x60\x40\x82"
"""Version 1, blocks of 64 KiB that are not linked, no checksums; the last byte is the header's own."""
_LZ4_BLOCK_SIZE = 64 * 1024
_LZ4_STORED = 1 << 31
_LZ4_RATIO_MAX = 256
_LZ4_LEVEL_DEFAULT = 9
"""Kafka's default: it stands for the fast compressor."""
_LZ4_LEVEL_MAX = 12
_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_SKIPPABLE_MAGIC = 0x184D2A50
_ZSTD_BLOCK_SIZE_MAX = 128 * 1024
_ZSTD_WINDOW_SIZE_MAX = 1 << 27
"""The decoders of Java clients and brokers take no larger window either."""

_int32 = struct.Struct(">i")
_uint32_little = struct.Struct("<I")


class DecompressedTooLarge(MalformedMessage):
    """A payload that would take more bytes, decompressed, than the caller allows."""


class Compression(IntEnum):
    """A codec, by its id in the attributes of a batch."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def label(self) -> str:
        """The name that the setting compression.type uses; ``none`` for no codec."""
        return self.name.lower()

    @classmethod
    def from_name(cls, name: str) -> Compression:
        """The codec of a setting's text; ``uncompressed`` and ``none`` both mean no codec.

        Raises KafkaError(INVALID_CONFIG) for any other text (``producer`` names no codec).
        """
        if name == "uncompressed":
            return cls.NONE
        try:
            return cls[name.upper()]
        except KeyError:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown compression name: {name}") from None

    @classmethod
    def of_attributes(cls, attributes: int) -> Compression:
        """The codec named by a batch's attributes.

        Raises KafkaError(UNKNOWN_SERVER_ERROR), Kafka's own answer, for the ids 5 to 7, which name none.
        """
        codec = attributes & 0x07
        if codec > cls.ZSTD:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown compression type id: {codec}")
        return cls(codec)


def compress(compression: Compression, data: bytes, level: int | None = None) -> bytes:
    """Compress ``data``; ``level`` is the codec's own, None its default (KIP-390).

    Snappy has no levels. Levels above what a codec knows count as its highest.
    """
    if compression is Compression.NONE:
        return data
    if compression is Compression.GZIP:
        packer = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
        member = packer.compress(data) + packer.flush()
        return member[:_GZIP_SYSTEM_POSITION] + _GZIP_UNKNOWN_SYSTEM + member[_GZIP_SYSTEM_POSITION + 1 :]
    if compression is Compression.SNAPPY:
        return _compress_snappy(data)
    if compression is Compression.LZ4:
        return _compress_lz4(data, _LZ4_LEVEL_DEFAULT if level is None else level)
    return bytes(cramjam.zstd.compress(data, level=3 if level is None else level))


def decompress(compression: Compression, data: bytes | memoryview, size_limit: int) -> bytes:
    """Decompress ``data`` to at most ``size_limit`` bytes.

    Raises MalformedMessage for bytes that the codec does not read, DecompressedTooLarge for a
    result over the limit.
    """
    if compression is Compression.NONE:
        if len(data) > size_limit:
            raise _over_limit(size_limit)
        return bytes(data)
    if compression is Compression.GZIP:
        return _decompress_gzip(data, size_limit)
    if compression is Compression.SNAPPY:
        return _decompress_snappy(bytes(data), size_limit)
    if compression is Compression.LZ4:
        frame = bytes(data)
        frame_size, bound = _lz4_extent(frame)
        return _unpack(cramjam.lz4.decompress_into, frame[:frame_size], bound, size_limit, "lz4")
    frame = bytes(data)
    return _unpack(cramjam.zstd.decompress_into, frame, _zstd_bound(frame), size_limit, "zstd")


def _over_limit(size_limit: int) -> DecompressedTooLarge:
    return DecompressedTooLarge(f"the records take more than the limit of {size_limit} bytes when decompressed")


def _broken(codec: str, why: str) -> MalformedMessage:
    return MalformedMessage(f"the records do not decompress with {codec}: {why}")


def _unpack(
    decompress_into: Callable[[bytes, bytearray], int], frame: bytes, bound: int, size_limit: int, codec: str
) -> bytes:
    """Decompress into a buffer of min(bound, limit) bytes, so that nothing can grow past it."""
    unpacked = bytearray(min(bound, size_limit))
    try:
        size = decompress_into(frame, unpacked)
    except cramjam.DecompressionError as error:
        if bound > size_limit and "write whole buffer" in str(error):
            raise _over_limit(size_limit) from None
        raise _broken(codec, str(error)) from None
    return bytes(memoryview(unpacked)[:size])


def _decompress_gzip(data: bytes | memoryview, size_limit: int) -> bytes:
    """Members are read one after another; as in Java, bytes that start no member end the stream."""
    parts: list[bytes] = []
    left = size_limit
    while True:
        member = zlib.decompressobj(31)
        try:
            # One byte more than is left tells a full result from one that is too long.
            part = member.decompress(data, left + 1)
        except zlib.error as error:
            raise _broken("gzip", str(error)) from None
        left -= len(part)
        if left < 0:
            raise _over_limit(size_limit)
        if not member.eof:
            raise _broken("gzip", "the stream is cut off")
        parts.append(part)
        data = member.unused_data
        if data[:2] != b"\x1f\x8b":
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _compress_snappy(data: bytes) -> bytes:
    """Blocks of 32 KiB, each after its length, behind the header of the xerial framing."""
    parts = [_SNAPPY_HEADER]
    for start in range(0, len(data), _SNAPPY_BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _SNAPPY_BLOCK_SIZE]))
        parts.append(_int32.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(data: bytes, size_limit: int) -> bytes:
    """Read the xerial framing, or one raw block where its magic is missing.

    As in snappy-java, streams may follow each other and up to three last bytes are ignored.
    """
    if not data.startswith(_SNAPPY_MAGIC):
        return _decompress_snappy_block(data, size_limit, size_limit)
    if len(data) < len(_SNAPPY_HEADER):
        raise _broken("snappy", "the header is cut off")
    parts: list[bytes] = []
    left = size_limit
    position = len(_SNAPPY_HEADER)
    while position + 4 <= len(data):
        if data.startswith(_SNAPPY_MAGIC, position):
            position += len(_SNAPPY_HEADER)
            continue
        size: int = _int32.unpack_from(data, position)[0]
        position += 4
        if not 0 <= size <= len(data) - position:
            raise _broken("snappy", f"a block declares {size} bytes where {len(data) - position} are left")
        part = _decompress_snappy_block(data[position : position + size], left, size_limit)
        left -= len(part)
        parts.append(part)
        position += size
    return b"".join(parts)


def _decompress_snappy_block(block: bytes, left: int, size_limit: int) -> bytes:
    try:
        declared = cramjam.snappy.decompress_raw_len(block)
    except cramjam.DecompressionError as error:
        raise _broken("snappy", str(error)) from None
    if declared > _SNAPPY_RATIO_MAX * len(block):
        raise _broken("snappy", f"a block of {len(block)} bytes cannot hold the {declared} it declares")
    if declared > left:
        raise _over_limit(size_limit)
    unpacked = bytearray(declared)
    try:
        size = cramjam.snappy.decompress_raw_into(block, unpacked)
    except cramjam.DecompressionError as error:
        raise _broken("snappy", str(error)) from None
    return bytes(memoryview(unpacked)[:size])


def _compress_lz4(data: bytes, level: int) -> bytes:
    """One frame of blocks that are not linked: Kafka's reader refuses linked ones."""
    if level != _LZ4_LEVEL_DEFAULT:
        frame = cramjam.lz4.Compressor(level=min(level, _LZ4_LEVEL_MAX), content_checksum=False, block_linked=False)
        frame.compress(data)
        return bytes(frame.finish())
    parts = [_LZ4_HEADER]
    for start in range(0, len(data), _LZ4_BLOCK_SIZE):
        block = data[start : start + _LZ4_BLOCK_SIZE]
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        if len(packed) < len(block):
            parts.append(_uint32_little.pack(len(packed)))
            parts.append(packed)
        else:
            parts.append(_uint32_little.pack(len(block) | _LZ4_STORED))
            parts.append(block)
    parts.append(b"\0\0\0\0")
    return b"".join(parts)


def _lz4_extent(frame: bytes) -> tuple[int, int]:
    """Walk the blocks of an lz4 frame: (size of the frame, upper bound of what it unpacks to).

    As in Kafka's Lz4BlockInputStream blocks must not be linked, and what follows the frame is
    not looked at.
    """
    if frame[:4] != _LZ4_MAGIC or len(frame) < 7:
        raise _broken("lz4", "it does not start with a frame")
    flags = frame[4]
    if flags >> 6 != 1 or not flags & 0x20:
        raise _broken("lz4", "the frame has an unknown version or linked blocks")
    size_code = frame[5] >> 4 & 0x07
    if size_code < 4:
        raise _broken("lz4", f"the frame has an unknown block size {size_code}")
    block_size_max = 1 << (8 + 2 * size_code)
    position = 7 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    block_trailer = 4 if flags & 0x10 else 0
    bound = 0
    while True:
        if position + 4 > len(frame):
            raise _broken("lz4", "the frame is cut off")
        word: int = _uint32_little.unpack_from(frame, position)[0]
        position += 4
        if word == 0:
            break
        size = word & 0x7FFFFFFF
        bound += size if word >> 31 else min(block_size_max, size * _LZ4_RATIO_MAX)
        if size > block_size_max or size > len(frame) - position:
            raise _broken("lz4", f"a block declares {size} bytes where {len(frame) - position} are left")
        position += size + block_trailer
    position += 4 if flags & 0x04 else 0
    if position > len(frame):
        raise _broken("lz4", "the frame is cut off")
    return position, bound


def _zstd_bound(frames: bytes) -> int:
    """Walk the blocks of zstd frames (RFC 8878): an upper bound of what they unpack to."""
    bound = 0
    position = 0
    if not frames:
        raise _broken("zstd", "there is no frame")
    while position < len(frames):
        try:
            magic: int = _uint32_little.unpack_from(frames, position)[0]
            if magic & 0xFFFFFFF0 == _ZSTD_SKIPPABLE_MAGIC:
                position += 8 + _uint32_little.unpack_from(frames, position + 4)[0]
            elif magic == _ZSTD_MAGIC:
                position, frame_bound = _zstd_frame_bound(frames, position + 4)
                bound += frame_bound
            else:
                raise _broken("zstd", "it does not start with a frame")
        except (IndexError, struct.error):
            raise _broken("zstd", "a frame is cut off") from None
    if position > len(frames):
        raise _broken("zstd", "a frame is cut off")
    return bound


def _zstd_frame_bound(frames: bytes, position: int) -> tuple[int, int]:
    """(Position after a frame, upper bound of its content), from ``position`` behind its magic."""
    descriptor = frames[position]
    position += 1
    is_single_segment = descriptor & 0x20
    window_size = 0
    if not is_single_segment:
        base = 1 << (10 + (frames[position] >> 3))
        window_size = base + (base >> 3) * (frames[position] & 0x07)
        position += 1
    position += (0, 1, 2, 4)[descriptor & 0x03]
    field_size = (1 if is_single_segment else 0, 2, 4, 8)[descriptor >> 6]
    content_size: int | None = None
    if field_size:
        content_size = int.from_bytes(frames[position : position + field_size], "little")
        content_size += 256 if field_size == 2 else 0
        position += field_size
    if is_single_segment:
        window_size = content_size or 0
    if window_size > _ZSTD_WINDOW_SIZE_MAX:
        raise _broken("zstd", f"a window of {window_size} bytes exceeds the limit of {_ZSTD_WINDOW_SIZE_MAX}")
    block_size_max = min(window_size, _ZSTD_BLOCK_SIZE_MAX)
    bound = 0
    is_last = 0
    while not is_last:
        header = frames[position] | frames[position + 1] << 8 | frames[position + 2] << 16
        position += 3
        is_last, kind, size = header & 1, header >> 1 & 3, header >> 3
        if kind == 3 or size > _ZSTD_BLOCK_SIZE_MAX:
            raise _broken("zstd", "a block has an impossible header")
        bound += block_size_max if kind == 2 else size
        position += 1 if kind == 1 else size
    return position + (4 if descriptor & 0x04 else 0), bound if content_size is None else min(bound, content_size)
