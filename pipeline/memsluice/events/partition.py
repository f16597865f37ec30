"""Which partition a tenant's records lie on, computed as the Java client and librdkafka's ``murmur2_random`` do."""

from functools import lru_cache

_SEED, _MULTIPLIER, _SHIFT, _WORD = 0x9747B28C, 0x5BD1E995, 24, 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return Kafka's hash of a key, unsigned: MurmurHash2 of 32 bits, little-endian, with the seed of its clients."""
    tail = len(data) & 3
    whole = len(data) - tail
    value = _SEED ^ len(data)
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * _MULTIPLIER & _WORD
        word = (word ^ word >> _SHIFT) * _MULTIPLIER & _WORD
        value = value * _MULTIPLIER & _WORD ^ word
    if tail:
        value = (value ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _WORD
    value = (value ^ value >> 13) * _MULTIPLIER & _WORD
    return value ^ value >> 15


@lru_cache(maxsize=65_536)
def partition_of(tenant: str, partitions: int) -> int:
    """Return the partition, 0 to ``partitions - 1``, of all records of a tenant (murmur2 of its UTF-8 bytes)."""
    return (murmur2(tenant.encode()) & 0x7FFFFFFF) % partitions
