"""*land* and an object that the store refuses: what lies there all the same, what the log has of it already, and what
another worker brings meanwhile. Embedded and on the real Weaviate."""

import pytest
from tests.stages.test_land import Faulty, found, why
from tests.stages.test_land_floor import gone, here, landed, place, tenant, worker
from tests.stores.build import PARTITIONS, accepted, axis

from memsluice.errors import StoreError, StoreUnavailable
from memsluice.events.models import Zone
from memsluice.events.partition import partition_of
from memsluice.stages.deferring import ATTEMPTS
from memsluice.stores.base import StoreAnswer, UpsertResult
from memsluice.topics.names import DEAD_LETTER, STORE

__all__ = ["here", "place", "tenant"]


def refuse(_real, objects):
    """Refuse whatever is written."""
    return [UpsertResult(item.object_id, StoreAnswer.REFUSED, "too many open files") for item in objects]


def lose(real, objects):
    """Take what is written, and give no answer."""
    real.upsert(objects)
    raise StoreUnavailable("the answer was lost")


class Overtaken(Faulty):
    """A real store; before what was seen is taken out, another worker does something."""

    def __init__(self, store, faults, meanwhile) -> None:
        super().__init__(store, faults)
        self.meanwhile = meanwhile

    def delete(self, *arguments, **options):
        """Let the other worker go first."""
        self.meanwhile()
        return self.store.delete(*arguments, **options)


def behind(stage, store):
    """Give a stage another way to its store."""
    stage._store = store
    return stage


def test_what_the_log_has_and_the_store_refuses_when_it_is_delivered_again_stays(place, tenant) -> None:
    """A passing refusal ("too many open files") of a re-delivered record takes nothing out that was landed: the log
    says the same once more, and nothing is a dead letter."""
    record = accepted(tenant, 7, "note")
    first = worker(place).process([record])
    place.publish(first[0])
    again = behind(worker(place), Faulty(place.store, [refuse]))
    assert again.process([record]) == first
    assert found(place.store, tenant) == {"note"}


def test_what_the_log_has_and_the_store_lost_is_a_dead_letter_once_it_is_refused(place, tenant) -> None:
    """Nothing lies there that the log could be told of once more: the record's own bytes are kept."""
    record = accepted(tenant, 7, "note")
    (stored,) = landed(place, worker(place), record)
    place.store.delete(tenant, Zone.GUIDANCE, [stored.object_id])
    ((letter,),) = behind(worker(place), Faulty(place.store, [refuse])).process([record])
    assert (letter.topic, letter.value) == (DEAD_LETTER, record.value)


@pytest.mark.parametrize("refused", [True, False], ids=["a refused version", "a withdrawal"])
def test_a_worker_that_was_overtaken_takes_out_nothing_that_came_since(place, tenant, refused) -> None:
    """It was paused between its look at the store and its deletion: the new owner's version stays."""
    old, new = accepted(tenant, 7, "old", key="k"), accepted(tenant, 9, "new", key="k")
    owner = worker(place)

    def overtake() -> None:
        landed(place, owner, new)

    faults = [lose, refuse]
    if not refused:
        landed(place, owner, old)
        faults = []
    late = behind(worker(place), Overtaken(place.store, faults, overtake))
    late.process([old if refused else gone(old, 8, tenant)])
    assert found(place.store, tenant) == {"new"}


def test_what_the_new_owner_landed_and_said_is_not_taken_back_by_the_former_one(place, tenant) -> None:
    """The same version: whoever was refused reads the log on before it takes anything out."""
    record = accepted(tenant, 7, "note")
    late = worker(place)
    landed(place, late, accepted(tenant, 1, "other", axis(3)))  # its floors are read

    def overtake(real, objects):
        landed(place, worker(place), record)
        return refuse(real, objects)

    assert [len(outputs) for outputs in behind(late, Faulty(place.store, [overtake])).process([record])] == [1]
    assert found(place.store, tenant) == {"note", "other"}


def test_a_worker_that_is_told_to_stop_takes_nothing_out(place, tenant) -> None:
    """Its partitions go to another one: what lies there is that one's by now."""
    record = accepted(tenant, 7, "note")
    stage = worker(place, wait=None)

    def stop(real, objects):
        real.upsert(objects)
        stage._patience.end()
        return refuse(real, objects)

    with pytest.raises(StoreUnavailable):
        behind(stage, Faulty(place.store, [stop])).process([record])
    assert found(place.store, tenant) == {"note"}


def test_the_version_before_a_refused_one_lands_where_both_come_together(place, tenant) -> None:
    """Three versions of one entry in a batch, the last refused: the one before is in memory and in the log, as if they
    had come one by one; the first gives way to it."""
    batch = [accepted(tenant, n, f"v{n}", key="k") for n in (2, 3, 4)]

    def only_the_last(real, objects):
        assert [item.version for item in objects] == [4]
        return refuse(real, objects)

    first, second, (letter,) = behind(worker(place), Faulty(place.store, [only_the_last])).process(batch)
    assert first == []
    assert [output.topic for output in second] == [STORE]
    assert (letter.topic, letter.value) == (DEAD_LETTER, batch[2].value)
    assert found(place.store, tenant) == {"v3"}


def test_what_is_refused_stays_refused_where_its_tenant_is_put_off(here, tenant) -> None:
    """The tenant's part of the store cannot be looked at any more: the log does not say of a refused object that it
    landed."""
    other = next(n for n in (f"{tenant}-{i}" for i in range(999)) if partition_of(n, PARTITIONS) == _at(tenant))
    landed(here, worker(here), accepted(other, 1, "theirs"))
    record, pauses = accepted(tenant, 7, "note"), []

    class Unreadable(Faulty):
        def upsert(self, objects, *, overwrite=False):
            if objects[0].tenant != tenant:
                return self.store.upsert(objects, overwrite=overwrite)
            return refuse(self.store, objects)

        def __getattr__(self, name):
            if name in ("held", "admissions"):
                raise StoreError("tenant not active")
            return getattr(self.store, name)

    def wait(seconds: float) -> bool:
        pauses.append(seconds)
        return len(pauses) > 2 * ATTEMPTS

    stage = worker(here, wait=wait)
    stage.owns({_at(tenant)})
    ((letter,),) = behind(stage, Unreadable(here.store, [])).process([record])
    assert why(letter)["reason"] == "store_refused"


def _at(tenant: str) -> int:
    return partition_of(tenant, PARTITIONS)
