"""How much of dead letters is kept: a flood takes its own sender's room, and nobody loses an event's place by it."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import orjson
import pytest
from tests.encoders import minilm
from tests.schemas.load import named
from tests.stages.test_seal import KEYRING, NOW_MS, OTHER, PARTITION, REGISTRY, SIGNERS, TENANT, message, record

from memsluice.encoder import Encoder
from memsluice.envelope import dsse
from memsluice.envelope.keys import HmacKey
from memsluice.envelope.seals import sealed_from_bytes
from memsluice.errors import MalformedEvent
from memsluice.events.names import REASON_HEADER
from memsluice.events.records import Output, Record
from memsluice.events.span_names import ERROR_TYPE
from memsluice.gate.checks.authenticity import signer
from memsluice.operations.dead_letters.letters import why_of
from memsluice.runtimes.kafka.spec import Tuning
from memsluice.stages.dead_letter import digest_of, note, original
from memsluice.stages.letter_budget import (
    ACCOUNTS_MAX,
    DECISIONS_MAX,
    LETTER_BYTES_MAX,
    NOBODY,
    NOTE_BYTES_MAX,
    OTHERS_WINDOWS,
    WINDOW_MS,
    Kept,
    LetterBudget,
)
from memsluice.stages.seal import SealStage
from memsluice.telemetry import spans
from memsluice.topics.names import DEAD_LETTER, EVENTS, PARTITIONS, SEALED
from memsluice.topics.spec import load_topics

DAY = NOW_MS // WINDOW_MS * WINDOW_MS
LETTERS = next(topic.spec for topic in load_topics() if topic.name == DEAD_LETTER)


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    """The real encoder, loaded once."""
    return minilm()


def at(offset: int, *, partition: int = PARTITION, ms: int = DAY) -> Record:
    """Return a record of that place and append time."""
    return Record(EVENTS, partition, offset, None, b"x", (), ms)


def taken(budget: LetterBudget, count: int, sender: str = "a", *, first: int = 0, ms: int = DAY) -> list[Kept]:
    """Put letters of 100 bytes, and notes of 10, on a sender's account."""
    return [budget.take(at(offset, ms=ms), sender, 100, 10) for offset in range(first, first + count)]


def test_beyond_its_bytes_a_sender_leaves_notes_and_then_markers_alone() -> None:
    """The bound is in bytes, of letters and of notes; what follows costs the topic nothing."""
    assert taken(LetterBudget(250, 15), 5) == [Kept.WHOLE, Kept.WHOLE, Kept.NOTED, Kept.MARKED, Kept.MARKED]


def test_a_small_letter_still_fits_where_a_large_one_did_not() -> None:
    """One bomb does not use up what its sender's other letters may take."""
    budget = LetterBudget(250, 15)
    assert budget.take(at(0), "a", 1_000, 10) is Kept.NOTED
    assert budget.take(at(1), "a", 100, 10) is Kept.WHOLE


def test_a_flood_takes_nothing_of_another_sender_or_partition() -> None:
    """Accounts are of one sender and partition: nobody's flood leaves a producer's letters whole, and another's."""
    budget = LetterBudget(250, 15)
    taken(budget, 50, NOBODY)
    taken(budget, 50, "flooding", first=50)
    assert taken(budget, 2, "a", first=200) == [Kept.WHOLE, Kept.WHOLE]
    assert budget.take(at(0, partition=PARTITION + 1), NOBODY, 100, 10) is Kept.WHOLE


def test_the_day_is_the_brokers() -> None:
    """A window is of append times, so that a backlog is counted as it came in, whenever it is worked through."""
    budget = LetterBudget(250, 15)
    taken(budget, 5)
    assert taken(budget, 1, first=5, ms=DAY + WINDOW_MS - 1) == [Kept.MARKED]
    assert taken(budget, 1, first=6, ms=DAY + WINDOW_MS) == [Kept.WHOLE]
    assert taken(budget, 1, first=7, ms=DAY) == [Kept.MARKED]  # the other intake topic is a little behind


def test_what_comes_again_is_decided_as_before() -> None:
    """After a rebalance the same records come once more: they are neither counted twice nor kept otherwise."""
    budget = LetterBudget(250, 15)
    first = taken(budget, 5)
    assert taken(budget, 5) == first
    whole = LetterBudget(250, 15)
    assert taken(whole, 2) == taken(whole, 2) == [Kept.WHOLE, Kept.WHOLE]
    assert taken(whole, 1, first=2) == [Kept.NOTED]


def test_more_senders_than_are_counted_share_nobodys_account() -> None:
    """The accounts are bounded: who comes late shares one bound, and is not without."""
    budget = LetterBudget(150, 0, accounts_max=2)
    assert [budget.take(at(n), f"s{n}", 100, 10) for n in range(4)] == [Kept.WHOLE, Kept.WHOLE, Kept.WHOLE, Kept.MARKED]
    assert ACCOUNTS_MAX >= 1_024


@pytest.mark.parametrize(("windows", "kept"), [(OTHERS_WINDOWS, Kept.MARKED), (OTHERS_WINDOWS + 1, Kept.WHOLE)])
def test_partitions_that_went_to_another_worker_keep_no_senders_account_from_the_others(
    windows: int, kept: Kept
) -> None:
    """Once they are behind by more than two windows nobody writes to them here: their places are for those who come."""
    budget = LetterBudget(150, 0, accounts_max=2)
    for partition in (0, 1):
        budget.take(at(partition, partition=partition), "gone", 100, 10)
    late = DAY + windows * WINDOW_MS
    assert [budget.take(at(n, partition=2, ms=late), f"s{n}", 100, 10) for n in (10, 11)] == [Kept.WHOLE, kept]


def test_what_nobody_signed_never_fills_the_topic() -> None:
    """The topic is kept by age and by size: at its bound every day, whoever signs nothing stays below the size."""
    days = LETTERS.retention // WINDOW_MS
    assert days * (LETTER_BYTES_MAX + NOTE_BYTES_MAX) < (LETTERS.retention_size or 0)


def test_a_note_says_what_and_where_and_is_not_mistaken_for_the_letter() -> None:
    """It has the reason, the place and the digest of what is not kept; put together it is refused."""
    lost = Record(EVENTS, 3, 5, b"key", b"value" * 1_000, (("a", None), ("b", b"1")), 9)
    output = note(lost, MalformedEvent("why", field="data"), KEYRING)
    why = why_of(Record(DEAD_LETTER, 3, 0, output.key, output.value, output.headers, 9))
    assert why is not None
    assert (why.reason, why.place, why.value_bytes, why.kept) == ("malformed", (EVENTS, 3, 5), 5_000, False)
    assert why.digest == digest_of(lost, KEYRING) != digest_of(replace(lost, headers=lost.headers[:1]), KEYRING)
    assert len(output.headers[-1][1] or b"") < 600
    named("memsluice.dead-letter.v1").validate(orjson.loads(output.headers[-1][1] or b""))
    with pytest.raises(MalformedEvent, match="not kept"):
        original([(output.key, output.value, output.headers)])


def sealed_by(encoder: Encoder, budget: LetterBudget, records: list[Record]) -> list[list[Output]]:
    """Run a batch through a stage with a budget of its own."""
    stage = SealStage(lambda: KEYRING, lambda: REGISTRY, encoder, PARTITIONS, lambda: NOW_MS, letters=budget)
    return stage.process(records)


def kept_of(outputs: list[Output]) -> Kept:
    """Return what is kept of a record that was refused, by what stands before its marker."""
    *letters, marker = outputs
    assert marker.topic == SEALED
    assert marker.headers[-1][0] == REASON_HEADER
    if not letters:
        return Kept.MARKED
    return Kept.WHOLE if orjson.loads(letters[0].headers[-1][1] or b"").get("kept", True) else Kept.NOTED


def misplaced(signed_by: str, offset: int) -> Record:
    """Return a record that a producer signed and put on a wrong partition."""
    return record(message(source=signed_by), offset=offset, partition=(PARTITION + 1) % PARTITIONS)


def forged(offset: int) -> Record:
    """Return a record that names the agent's key and is not signed by it."""
    parts = message(source="agent", signer=HmacKey(SIGNERS[TENANT, "agent"].kid, b"x" * 32))
    return record(parts, offset=offset, partition=(PARTITION + 1) % PARTITIONS)


def test_every_refused_record_keeps_its_place_and_reason(encoder: Encoder) -> None:
    """In a flood the bytes go, and then the note; the marker that keeps the order gapless stays, with the reason."""
    outputs = sealed_by(encoder, LetterBudget(2_000, 600), [misplaced("agent", n) for n in range(6)])
    assert [kept_of(one) for one in outputs] == [Kept.WHOLE, Kept.NOTED, *[Kept.MARKED] * 4]
    markers = [sealed_from_bytes(KEYRING, "", one[-1].value or b"") for one in outputs]
    assert [(one.position.offset, one.marker_reason) for one in markers] == [(n, "wrong_partition") for n in range(6)]


def test_who_only_names_a_key_uses_up_nothing_of_its_holder(encoder: Encoder) -> None:
    """Forged records count for nobody: a producer whose name is misused keeps what it may."""
    budget = LetterBudget(2_000, 600)
    flood = sealed_by(encoder, budget, [forged(n) for n in range(8)])
    assert kept_of(flood[-1]) is Kept.MARKED
    (mine,) = sealed_by(encoder, budget, [misplaced("agent", 100)])
    assert kept_of(mine) is Kept.WHOLE


def test_the_signer_of_a_refused_record_is_whose_signature_holds() -> None:
    """Not whom it names; nor a key of the gate's own, nor of what is too large to be looked at."""
    value = message(source="agent")[1]
    assert signer(value, KEYRING, REGISTRY) == SIGNERS[TENANT, "agent"].kid
    assert signer(forged(0).value, KEYRING, REGISTRY) == NOBODY
    seal = KEYRING.direct("lab-seal")
    gates = orjson.dumps(dsse.sign("application/vnd.memory.write.v1+json", b"{}", [seal]))
    odd = value.replace(b"vnd.memory", b"vnd.\\ud800", 1)
    assert odd != value
    for refused in (None, b"", b"{", gates, odd, value + b" " * 2_700_000):
        assert signer(refused, KEYRING, REGISTRY) == NOBODY
    assert signer(message(source="user")[1], KEYRING, REGISTRY) != SIGNERS[OTHER, "user"].kid


def test_what_leaves_only_its_marker_counts_as_a_dead_letter(encoder: Encoder) -> None:
    """Metrics and spans see a flood whose letters are no longer kept: by outcome, and by reason."""
    (marked,) = sealed_by(encoder, LetterBudget(0, 0), [misplaced("agent", 0)])
    assert kept_of(marked) is Kept.MARKED
    assert spans.outcome(marked) == spans.DEAD
    assert spans.of_outputs(marked)[ERROR_TYPE] == "wrong_partition"
    (sealed,) = sealed_by(encoder, LetterBudget(), [record(message(source="agent"))])
    assert spans.outcome(sealed) == spans.PASSED


def test_counts_are_safe_for_the_threads_of_seal() -> None:
    """Two batches are worked on at a time: together they keep what one would, and not a byte more."""
    budget = LetterBudget(100 * 50, 10 * 20)
    with ThreadPoolExecutor(4) as threads:
        found = Counter(threads.map(lambda n: budget.take(at(n), "a", 100, 10), range(400)))
    assert found == {Kept.WHOLE: 50, Kept.NOTED: 20, Kept.MARKED: 330}


def test_a_bound_of_records_to_remember_is_kept() -> None:
    """What is remembered for a re-delivery is bounded, and more than is ever in flight between two commits."""
    budget = LetterBudget(10**9, 0)
    for number in range(DECISIONS_MAX + 10):
        budget.take(at(number), "a", 1, 1)
    assert len(budget._decided) == DECISIONS_MAX > 2 * Tuning().in_flight


def test_a_bomb_leaves_a_note(encoder: Encoder) -> None:
    """Records that unpacked to much more than is kept of a day cost the dead-letter topic some hundred bytes each."""
    bombs = [Record(EVENTS, PARTITION, n, None, bytes(LETTER_BYTES_MAX), (), NOW_MS) for n in range(2)]
    (*first, _), (*second, _) = sealed_by(encoder, LetterBudget(), bombs)
    for letters in (first, second):
        assert [len(one.value or b"") + len(one.headers[-1][1] or b"") < 600 for one in letters] == [True]
