"""The codecs: round trips, foreign framings, garbage, and bombs that are cut off."""

from __future__ import annotations

import gzip
import struct
import tracemalloc
import zlib

import cramjam
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wire.compression import DecompressedTooLarge
from wire.errors import KafkaError, MalformedMessage
from wire.records import Compression, compress, decompress

CODECS = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]
MIB = 1024 * 1024


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("size", [0, 1, 100, 32768, 32769, 65536, 65537, 300_000])
def test_what_was_compressed_comes_back(codec: Compression, size: int) -> None:
    compressible = (b"Odradek " * (size // 8 + 1))[:size]
    noise = zlib.compress(compressible) + bytes(i * i % 251 for i in range(size))
    for data in (compressible, noise):
        packed = compress(codec, data)
        assert decompress(codec, packed, len(data)) == data
        assert decompress(codec, memoryview(packed), len(data) + 5) == data


@given(data=st.binary(max_size=2000), codec=st.sampled_from(CODECS))
def test_any_bytes_come_back(data: bytes, codec: Compression) -> None:
    assert decompress(codec, compress(codec, data), len(data)) == data


@pytest.mark.parametrize(
    ("codec", "levels"),
    [
        (Compression.GZIP, [-1, 1, 6, 9]),
        (Compression.LZ4, [1, 3, 9, 12, 17]),
        (Compression.ZSTD, [-131072, -1, 1, 3, 19, 22]),
        (Compression.SNAPPY, [1]),
    ],
)
def test_every_level_of_the_settings_works(codec: Compression, levels: list[int]) -> None:
    data = bytes(i * i % 97 for i in range(100_000))
    for level in levels:
        assert decompress(codec, compress(codec, data, level), len(data)) == data


def test_higher_levels_compress_more() -> None:
    data = b"".join(b"%d %d\n" % (i, i * i % 9973) for i in range(20_000))
    for codec, low, high in ((Compression.GZIP, 1, 9), (Compression.LZ4, 9, 12), (Compression.ZSTD, 1, 19)):
        assert len(compress(codec, data, high)) < len(compress(codec, data, low)), codec


def test_names_are_those_of_the_setting_compression_type() -> None:
    assert [codec.label for codec in Compression] == ["none", "gzip", "snappy", "lz4", "zstd"]
    assert [Compression.from_name(codec.label) for codec in Compression] == list(Compression)
    assert Compression.from_name("uncompressed") is Compression.NONE
    with pytest.raises(KafkaError, match="brotli"):
        Compression.from_name("brotli")


# --- framings that other producers write -----------------------------------------------------------


def test_gzip_of_several_members_and_with_bytes_after_it_is_read_as_java_reads_it() -> None:
    data = gzip.compress(b"one ") + gzip.compress(b"two") + b"\0\0\0"
    assert decompress(Compression.GZIP, data, 100) == b"one two"


def test_snappy_is_read_raw_where_the_xerial_header_is_missing() -> None:
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(b"raw" * 50)), 150) == b"raw" * 50


def test_snappy_streams_may_follow_each_other() -> None:
    stream = compress(Compression.SNAPPY, b"a" * 40_000)
    assert decompress(Compression.SNAPPY, stream + stream, 80_000) == b"a" * 80_000


def test_snappy_is_written_in_the_framing_that_java_reads() -> None:
    packed = compress(Compression.SNAPPY, b"a" * 40_000)
    assert packed.startswith(b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1))


@pytest.mark.parametrize("content_checksum", [True, False])
def test_lz4_frames_with_checksums_are_read_and_linked_blocks_refused(content_checksum: bool) -> None:
    for level in (1, 9):
        for linked in (True, False):
            frame = cramjam.lz4.Compressor(level=level, content_checksum=content_checksum, block_linked=linked)
            frame.compress(b"lz4 " * 50_000)
            packed = bytes(frame.finish())
            if linked:
                with pytest.raises(MalformedMessage, match="linked"):
                    decompress(Compression.LZ4, packed, MIB)
            else:
                assert decompress(Compression.LZ4, packed, MIB) == b"lz4 " * 50_000


def test_lz4_frames_that_are_none_are_refused() -> None:
    frame = cramjam.lz4.Compressor(level=1, content_checksum=True, block_linked=False)
    frame.compress(b"lz4 " * 50)
    packed = bytes(frame.finish())
    for bad in (packed[:-1], packed[:-4], packed[:5] + b"\x30" + packed[6:], packed[:4] + b"\xa0" + packed[5:], b"lz4"):
        with pytest.raises(MalformedMessage):
            decompress(Compression.LZ4, bad, MIB)


def test_zstd_frames_with_a_content_size_and_in_a_row_are_read() -> None:
    streaming = cramjam.zstd.Compressor(level=3)
    streaming.compress(b"x" * 300_000)
    without_size = bytes(streaming.finish())
    with_size = bytes(cramjam.zstd.compress(b"y" * 10))
    skippable = struct.pack("<II", 0x184D2A53, 5) + b"12345"
    packed = without_size + skippable + with_size
    assert decompress(Compression.ZSTD, packed, MIB) == b"x" * 300_000 + b"y" * 10


# --- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_cut_off_at_the_callers_limit(codec: Compression) -> None:
    bomb = compress(codec, bytes(64 * MIB))
    tracemalloc.start()
    try:
        with pytest.raises(DecompressedTooLarge, match=f"limit of {MIB} bytes"):
            decompress(codec, bomb, MIB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * MIB + 4 * len(bomb)


@pytest.mark.parametrize("codec", Compression)
def test_the_limit_is_exact(codec: Compression) -> None:
    data = b"0123456789" * 1000
    packed = compress(codec, data)
    assert decompress(codec, packed, len(data)) == data
    with pytest.raises(DecompressedTooLarge):
        decompress(codec, packed, len(data) - 1)


def test_lengths_that_the_input_claims_are_not_believed() -> None:
    lies = {
        # raw snappy that declares 2 GiB in its first varint; and a block of 2 GiB in the framing
        Compression.SNAPPY: [
            b"\xff\xff\xff\xff\x07" + b"\0" * 20,
            b"\x82SNAPPY\0" + bytes(8) + b"\x7f\xff\xff\xff" + b"1",
        ],
        # a frame with a content size of 2^62, a block that declares 16 MiB
        Compression.LZ4: [b"\x04\x22\x4d\x18\x68\x40" + struct.pack("<Q", 1 << 62) + b"\0" + b"\xff\xff\xff\0" + b"1"],
        # a single segment of 2^62 bytes; a window of 2^41 bytes; a repeated byte in a block of 2 MiB
        Compression.ZSTD: [
            b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 1 << 62) + b"\x01\0\0",
            b"\x28\xb5\x2f\xfd\0\xff\x01\0\0",
            b"\x28\xb5\x2f\xfd\0\x58\xff\xff\xff0",
        ],
    }
    for codec, inputs in lies.items():
        for lie in inputs:
            tracemalloc.start()
            try:
                with pytest.raises(MalformedMessage):
                    decompress(codec, lie, 64 * MIB)
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert peak < MIB, codec


@pytest.mark.parametrize("codec", CODECS)
def test_cut_at_any_byte_it_is_refused_or_shorter(codec: Compression) -> None:
    data = b"a quick brown fox " * 40
    packed = compress(codec, data)
    for size in range(len(packed)):
        try:
            shorter = decompress(codec, packed[:size], MIB)
        except MalformedMessage:
            continue
        # Snappy's framing has no end: cut between blocks it is a whole, shorter stream.
        assert codec is Compression.SNAPPY
        assert shorter == data[: len(shorter)]
        assert len(shorter) < len(data)


PREFIXES = [
    b"",
    b"\x1f\x8b\x08\0",
    b"\x82SNAPPY\0\0\0\0\1\0\0\0\1\0\0\0",
    b"\x04\x22\x4d\x18\x60\x40\x82",
    b"\x28\xb5\x2f\xfd",
]


@given(codec=st.sampled_from(CODECS), prefix=st.sampled_from(PREFIXES), data=st.binary(max_size=200))
@example(codec=Compression.ZSTD, prefix=b"", data=b"")
@example(codec=Compression.ZSTD, prefix=b"", data=b"\x50\x2a\x4d\x18\xff\xff\xff\xff")
def test_garbage_is_refused_or_read_within_the_limit(codec: Compression, prefix: bytes, data: bytes) -> None:
    try:
        assert len(decompress(codec, prefix + data, 10_000)) <= 10_000
    except MalformedMessage:
        pass


@given(
    codec=st.sampled_from(CODECS),
    flips=st.lists(st.tuples(st.integers(0, 400), st.integers(1, 255)), min_size=1, max_size=3),
)
def test_flipped_bytes_are_refused_or_read_within_the_limit(codec: Compression, flips: list[tuple[int, int]]) -> None:
    packed = bytearray(compress(codec, b"".join(b"%d," % i for i in range(400))))
    for position, mask in flips:
        packed[position % len(packed)] ^= mask
    try:
        assert len(decompress(codec, bytes(packed), 10_000)) <= 10_000
    except MalformedMessage:
        pass
