"""How much a fetched record batch unpacks to, found out within a bound and before anybody unpacks it whole.

The broker's limit on a record batch is on its compressed size: 6 KiB of zstd hold 200 MiB of zeros, and a consumer that
unpacks them to look at them is out of memory before it can refuse anything. (A topic that has the broker unpack every
batch instead, ``compression.type=uncompressed``, takes them in the broker's own heap.) Pure: bytes in, numbers out.
"""

import struct
import zlib
from dataclasses import dataclass

import cramjam

UNPACKED_BYTES_MAX = 16 * 1024 * 1024
"""Most bytes that a batch may unpack to: six times the largest that an intake topic takes uncompressed."""
_HEADER = struct.Struct(">qiibIhiqqqhii")
"""Base offset, length, leader's epoch, magic, CRC, attributes, last offset delta, first and last timestamp, producer's
id and epoch, base sequence, number of records: of magic 2, the only one that brokers still write."""
_MAGIC, _CODEC_MASK, _LOG_APPEND, _CONTROL = 2, 0x07, 0x08, 0x20
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16
_NONE, _GZIP, _SNAPPY, _LZ4, _ZSTD = range(5)
_RATIO_MAX = {_GZIP: 1_040, _SNAPPY: 22, _LZ4: 256, _ZSTD: 40_000}
"""More than each format can unpack a byte to: a batch below the bound by that needs no closer look."""


@dataclass(frozen=True, slots=True)
class TooLarge:
    """A batch that is not to be unpacked: its first and last offset, and the broker's append time (Unix ms)."""

    first: int
    last: int
    append_ms: int


def too_large(batch: bytes | memoryview, bytes_max: int = UNPACKED_BYTES_MAX) -> TooLarge | None:
    """Return what can be said of a batch that unpacks to more than ``bytes_max``; None of every other.

    A batch that cannot be unpacked at all is left to whoever reads it: the broker, which validates, lets none in.
    """
    if len(batch) < _HEADER.size:
        return None
    base, _, _, magic, _, attributes, last, _, append_ms, *_ = _HEADER.unpack_from(batch)
    codec, packed = attributes & _CODEC_MASK, memoryview(batch)[_HEADER.size :]
    if magic != _MAGIC or attributes & _CONTROL or codec not in _RATIO_MAX:
        return None
    if len(packed) * _RATIO_MAX[codec] <= bytes_max or _fits(codec, packed, bytes_max):
        return None
    return TooLarge(base, base + last, append_ms)


def _fits(codec: int, packed: memoryview, bytes_max: int) -> bool:
    if codec == _GZIP:
        return _gzip_fits(packed, bytes_max)
    if codec == _SNAPPY:
        return _snappy_bytes(packed) <= bytes_max
    unpack = cramjam.zstd.decompress_into if codec == _ZSTD else cramjam.lz4.decompress_into
    try:
        unpack(bytes(packed), bytearray(bytes_max))
    except cramjam.DecompressionError as error:
        return "whole buffer" not in str(error)
    return True


def _gzip_fits(packed: memoryview, bytes_max: int) -> bool:
    left, rest = bytes_max, bytes(packed)
    while rest:  # members one after another are one stream
        member = zlib.decompressobj(wbits=31)
        try:
            left -= len(member.decompress(rest, left + 1))
        except zlib.error:
            return True
        if left < 0:
            return False
        if not member.eof:
            return True
        rest = member.unused_data
    return True


def _snappy_bytes(packed: memoryview) -> int:
    """Return what a snappy stream says that it unpacks to: the format begins each block with that, and keeps to it."""
    try:
        if bytes(packed[: len(_XERIAL)]) != _XERIAL:
            return int(cramjam.snappy.decompress_raw_len(bytes(packed)))
        total, at = 0, _XERIAL_HEADER_BYTES
        while at + 4 <= len(packed):
            size = int.from_bytes(packed[at : at + 4], "big")
            total += int(cramjam.snappy.decompress_raw_len(bytes(packed[at + 4 : at + 4 + size])))
            at += 4 + size
    except cramjam.DecompressionError:
        return 0
    return total
