"""*land* and an object that the store refuses: what lies there all the same, what the log has of it already, and what
another worker brings meanwhile. Embedded and on the real Weaviate."""

from dataclasses import replace

import pytest
from tests.stages.test_land import Faulty, found, why
from tests.stages.test_land_floor import gone, here, landed, place, tenant, worker
from tests.stores.build import PARTITIONS, RING, T0, accepted, axis

from memsluice.envelope.records import accepted_from_bytes
from memsluice.errors import StoreError, StoreUnavailable
from memsluice.events.models import Zone
from memsluice.events.partition import partition_of
from memsluice.stages.deferring import ATTEMPTS
from memsluice.stages.reconcile import Reconciler
from memsluice.stores.base import StoreAnswer, UpsertResult
from memsluice.stores.log_index import LogIndex
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


@pytest.mark.parametrize("event_id", ["event-9", "event-7"], ids=["another event", "landed again by a command"])
@pytest.mark.parametrize("refused", [True, False], ids=["a refused version", "a withdrawal"])
def test_a_worker_that_was_overtaken_takes_out_nothing_that_came_since(place, tenant, refused, event_id) -> None:
    """It was paused between its look at the store and its deletion: the new owner's version stays, also where it is of
    the same event, as what is renewed or declassified."""
    old, new = accepted(tenant, 7, "old", key="k"), accepted(tenant, 9, "new", key="k", event_id=event_id)
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
    """Three versions of one entry in a batch, the last refused: the one before is in memory, and the log has both that
    came before, as if they had come one by one."""
    batch = [accepted(tenant, n, f"v{n}", key="k") for n in (2, 3, 4)]

    def only_the_last(real, objects):
        assert [item.version for item in objects] == [4]
        return refuse(real, objects)

    first, second, (letter,) = behind(worker(place), Faulty(place.store, [only_the_last])).process(batch)
    assert [output.topic for output in (*first, *second)] == [STORE, STORE]
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


@pytest.mark.parametrize("how", ["given up", "committed in parts"])
def test_a_version_is_not_lost_to_one_that_the_log_never_had(place, tenant, how) -> None:
    """Two versions are written, and the second one's transaction is never committed: delivered again, the store
    refuses it. The first is in memory and in the log."""
    old, new = accepted(tenant, 7, "old", key="k"), accepted(tenant, 9, "new", key="k")
    said, _never_committed = worker(place).process([old, new])
    if how == "given up":
        said = worker(place).process([old])[0]
    place.publish(said)
    ((letter,),) = behind(worker(place), Faulty(place.store, [refuse])).process([new])
    assert letter.topic == DEAD_LETTER
    mended(place, tenant, old, new)
    assert found(place.store, tenant) == {"old"}


@pytest.mark.parametrize("how", ["given up", "committed in parts"])
def test_a_revoked_entry_does_not_come_back_behind_a_refused_one(place, tenant, how) -> None:
    """Its withdrawal came with a newer write that was never committed, and that the store refuses afterwards: the log
    has the withdrawal, so that no sweep lands the entry again."""
    old, new = accepted(tenant, 5, "poison", key="k"), accepted(tenant, 9, "new", key="k")
    landed(place, worker(place), old)
    said, _never_committed = worker(place).process([gone(old, 7, tenant), new])
    if how == "given up":
        said = worker(place).process([gone(old, 7, tenant)])[0]
    place.publish(said)
    behind(worker(place), Faulty(place.store, [refuse])).process([new])
    mended(place, tenant, old, new)
    assert found(place.store, tenant) == set()


def test_an_insert_that_arrives_after_its_refusal_keeps_no_older_version_out(place, tenant) -> None:
    """The store answers too late, refuses, and takes the first attempt after all: the version before is overwritten by
    none that became a dead letter."""
    old, new = accepted(tenant, 7, "old", key="k"), accepted(tenant, 9, "new", key="k")
    late = []

    def time_out(_real, objects):
        late.extend(objects)
        raise StoreUnavailable("deadline")

    def arrive(real, objects):
        real.upsert(late)
        return real.upsert(objects)

    stage = behind(worker(place), Faulty(place.store, [time_out, refuse, arrive]))
    assert [[output.topic for output in outputs] for outputs in stage.process([old, new])] == [[STORE], [DEAD_LETTER]]
    assert found(place.store, tenant) == {"old"}


def test_what_is_taken_back_is_gone_before_the_dead_letter_says_so(place, tenant) -> None:
    """A store that answers a deletion and keeps the object is asked again."""
    old, new = accepted(tenant, 7, "old", key="k"), accepted(tenant, 9, "new", key="k")

    class Keeps(Faulty):
        left = 1

        def delete(self, *arguments, **options):
            if self.left:
                self.left -= 1
                return 1
            return self.store.delete(*arguments, **options)

    stage = behind(worker(place), Keeps(place.store, [lose, refuse, refuse]))
    assert [[output.topic for output in outputs] for outputs in stage.process([old, new])] == [[STORE], [DEAD_LETTER]]
    assert found(place.store, tenant) == {"old"}


def test_what_was_said_and_given_up_is_forgotten_with_the_partition(place, tenant) -> None:
    """A worker's outputs were dropped as it lost the partition, and the next owner's store refused that version: back
    at the first one, the sweep goes by the log."""
    old, new = accepted(tenant, 8, "old", key="k"), accepted(tenant, 9, "new", key="k")
    first = worker(place)
    landed(place, first, old)
    first._log.catch_up(_at(tenant))
    highest = first._log.highest(_at(tenant))  # of whoever shares the partition, where the stack serves other tests too
    first.process([new])
    behind(worker(place), Faulty(place.store, [refuse])).process([new])
    first.owns({_at(tenant)})
    first._log.catch_up(_at(tenant))  # as batch and sweep do
    (known,) = first._log.known(tenant, Zone.GUIDANCE, [expected(old, tenant)]).values()
    assert (known.version, first._log.highest(_at(tenant))) == (8, highest)


@pytest.mark.parametrize("told", [True, False], ids=["given up", "forgotten"])
def test_a_batch_of_the_assignment_before_says_nothing_in_the_next_one(place, tenant, told) -> None:
    """The partition went and came back while it was read back: the version that will not be committed keeps no older
    one out."""
    old, new = accepted(tenant, 8, "old", key="k"), accepted(tenant, 9, "new", key="k")

    class Revoked(Faulty):
        def held_of(self, asked):
            held = self.store.held_of(asked)
            if told:
                stage.give_up()
            stage.owns(())
            stage.owns({_at(tenant)})
            return held

    stage = worker(place)
    stage.owns({_at(tenant)})
    behind(stage, Revoked(place.store, []))
    with pytest.raises(StoreUnavailable):
        stage.process([new])
    assert [one.topic for (one,) in behind(stage, place.store).process([old])] == [STORE]


def expected(record, tenant: str) -> str:
    """Return the object id of an accepted record."""
    return accepted_from_bytes(RING, tenant, record.value).admission.object_id


def mended(place, tenant: str, *records) -> None:
    """Have a sweep that has just read the log mend the tenant's entries, from these accepted records."""
    placed = [replace(record, offset=number) for number, record in enumerate(records)]

    class Accepted:
        def read(self, _partition, from_offset=0):
            return iter(placed[from_offset:])

    log = LogIndex(lambda _ended: place.reader(), lambda: RING)
    sweep = Reconciler(place.store, log, lambda _ended: Accepted(), lambda: RING, PARTITIONS, lambda: T0)
    sweep.mend(tenant, Zone.GUIDANCE, sweep.look(tenant, Zone.GUIDANCE).differs, search=True)


@pytest.mark.parametrize("withdraws", [False, True])
def test_what_another_owner_is_about_to_say_is_not_overwritten(place, tenant, withdraws) -> None:
    """It wrote to the store, and its transaction is under way: whoever finds a newer version there that the log has
    not looks at the log once more, a moment later."""
    old, new = accepted(tenant, 7, "old", key="k"), accepted(tenant, 9, "new", key="k")
    said = [output for outputs in worker(place).process([new]) for output in outputs]
    late = worker(place, wait=lambda _seconds: place.publish(said))
    assert late.process([gone(old, 8, tenant) if withdraws else old]) == [[]]
    assert found(place.store, tenant) == {"new"}
