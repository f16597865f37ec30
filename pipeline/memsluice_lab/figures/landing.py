"""What the gate is said to have admitted, landed by a real *land* worker."""

from collections.abc import Iterable

from memsluice.events.partition import partition_of
from memsluice.topics import names
from memsluice_lab.figures.bed import Bed
from memsluice_lab.tampering.entries import Landing

FLUSHED_S_MAX, LANDED_S_MAX = 60, 420


def land(running: Bed, landings: Iterable[Landing]) -> None:
    """Publish admissions, have a worker land them, and stop it: its sweep would mend what is done to the store next.

    Raises StackError where that takes too long.
    """
    producer = running.producer()
    for landing in landings:
        partition = partition_of(landing.tenant, names.PARTITIONS)
        producer.produce(names.ACCEPTED, key=landing.tenant.encode(), value=landing.value, partition=partition)
        producer.poll(0)
    producer.flush(FLUSHED_S_MAX)
    worker = running.start("land")
    running.drain(LANDED_S_MAX)
    running.stop(worker)
