"""Which partition a tenant's records lie on, computed as the Java client and librdkafka's ``murmur2_random`` do."""

from functools import lru_cache

from aiokafka.partitioner import murmur2


@lru_cache(maxsize=65_536)
def partition_of(tenant: str, partitions: int) -> int:
    """Return the partition, 0 to ``partitions - 1``, of all records of a tenant (murmur2 of its UTF-8 bytes)."""
    return int((murmur2(tenant.encode()) & 0x7FFFFFFF) % partitions)
