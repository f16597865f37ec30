"""Run as a program: publishes one record whose header name is no UTF-8, as a client of another language can.

Arguments: a connection file, a topic, a partition, a compression. aiokafka's Python record builder takes any type of
string, whose own ``encode`` may say anything.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaProducer

from memsluice.deployment.connection import Connection


class OddName(str):
    """A header name with bytes that are no text."""

    def encode(self, *_: Any) -> bytes:
        """Return the bytes that go to the broker."""
        return b"\xff\xfeX"


async def main(file: str, topic: str, partition: int, compression: str) -> None:
    """Publish a good record, the odd one, and another good one; print the first one's offset."""
    settings = Connection.from_file(Path(file)).aiokafka("admin")
    producer = AIOKafkaProducer(**settings, compression_type=None if compression == "none" else compression)
    await producer.start()
    first = await producer.send_and_wait(topic, b"before", partition=partition)
    await producer.send_and_wait(topic, b"odd", partition=partition, headers=[(OddName("x"), b"1"), ("y", None)])
    await producer.send_and_wait(topic, b"after", partition=partition)
    await producer.stop()
    print(first.offset)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]))
