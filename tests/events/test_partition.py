"""A tenant's partition is the one that every Kafka client in Java or C gives it."""

import aiokafka.partitioner
import pytest
from confluent_kafka import murmur2 as librdkafka_murmur2
from hypothesis import given
from hypothesis import strategies as st

from memsluice.events.partition import murmur2, partition_of

# Apache Kafka's own unit test, UtilsTest.testMurmur2: signed 32-bit integers.
APACHE = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize("key", sorted(APACHE))
def test_the_hash_is_apache_kafkas(key: bytes) -> None:
    """The vectors that Apache Kafka tests itself with come out, as unsigned numbers."""
    assert murmur2(key) == APACHE[key] & 0xFFFFFFFF


@given(st.binary(max_size=300))
def test_the_hash_is_that_of_another_client(key: bytes) -> None:
    """For any bytes of any length, aiokafka's implementation says the same."""
    assert murmur2(key) == aiokafka.partitioner.murmur2(key) & 0xFFFFFFFF


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=64), st.integers(1, 1024))
def test_the_partition_is_librdkafkas(tenant: str, partitions: int) -> None:
    """Producers in C put a tenant's records where the gate looks for them."""
    assert partition_of(tenant, partitions) == librdkafka_murmur2(tenant.encode(), partitions)
