"""What a service tells of its recalls over time: flags, sudden changes, and known-good questions."""

import threading
from collections import Counter
from dataclasses import replace

import httpx
import pytest
from structlog.testing import capture_logs
from tests.patience import HANG_S, until
from tests.recall.instructions.test_instructions import ORDER
from tests.recall.test_recaller import NOTES, Told, recaller
from tests.recall_service.serving import serving
from tests.recall_service.test_service import BODY, QUESTION, post, token
from tests.recall_service.test_service import home as home
from tests.recall_service.test_service import store as store
from tests.stores.build import T0, axis, entry

from memsluice.envelope.codec import vector_from_bytes, vector_to_bytes
from memsluice.errors import ConfigError, StoreUnavailable
from memsluice.events.models import Tier, Visibility, Zone
from memsluice.recall.instructions.detectors import DetectorCheck
from memsluice.recall.recaller import Question, Recalled
from memsluice.recall.signals.entries import EntryPolicy
from memsluice.recall.signals.holdout import parse
from memsluice.recall.signals.sweeps import SweepPolicy
from memsluice.recall.signals.watch import RecallWatch
from memsluice.recall_service.known_good import FILE_BYTES_MAX, ask_all, asking, read
from memsluice.recall_service.watching import Watching
from memsluice.stores.base import Scope
from memsluice.stores.faiss.store import FaissStore
from memsluice.telemetry.meters import Meters

KNOWN = """
questions:
  - {tenant: acme, question: "Where is the weekly report sent?", principal: ana, k: 1, entries: [event-reports]}
  - {tenant: acme, question: "What does Ana drink?", principal: ana, k: 1, entries: [event-tea]}
"""


def counted(meters: Meters, name: str, **labels: str) -> float:
    """Return a metric's value."""
    value = meters.collectors.get_sample_value(f"memsluice_{name}_total", labels)
    assert value is not None
    return value


def land(store, encoder, text: str, name: str, **fields) -> None:
    """Write an entry as *land* does."""
    vector = vector_from_bytes(vector_to_bytes(encoder.encode([text])[0]))
    store.upsert([entry("acme", text, vector, event_id=f"event-{name}", **fields)])


def test_a_flag_is_in_the_answer_and_in_the_metric(store, encoder, home) -> None:
    """What a trusted tier says is handed over, and whoever reads the answer is told what it reads like."""
    key_store, path = home
    land(store, encoder, ORDER, "order", tier=Tier.OPERATOR)
    land(store, encoder, f"{ORDER} Always.", "stranger", tier=Tier.USER_OBSERVED)
    with serving(store, encoder, key_store, instructions=DetectorCheck(encoder)) as service:
        said = post(service, token(path), {**BODY, "question": "Who pays invoices, and where?", "k": 5}).json()
        assert [one["flags"] for one in said["entries"] if one["content"] == ORDER] == [["wording"]]
        assert said["withheld"] == {"wording": 1}
        assert service.counted("recall_flagged_total", flag="wording") == 1
        assert service.counted("recall_withheld_total", reason="wording") == 1


def test_an_entry_that_suddenly_answers_everybody_is_counted(encoder) -> None:
    """The signal is a metric and a line of log that names the tenant and the object, and quotes nothing."""
    meters, now_ms = Meters(), [T0]
    watching = Watching(meters, lambda: now_ms[0], RecallWatch(EntryPolicy(learn_ms=0)))
    store = FaissStore(":memory:")
    land(store, encoder, NOTES["reports"], "reports", visibility=Visibility.SHARED, principal="eve")
    asks = recaller(store, encoder, Told())
    with capture_logs() as lines:
        for number in range(8):
            asked = Question("acme", QUESTION, "helper", f"person-{number}", "s-1")
            watching.answered(asked, asks.ask(asked))
    assert counted(meters, "recall_signals", signal="popular") == 1
    assert counted(meters, "recall_unwatched") == 0
    (line,) = lines
    (object_id,) = store.nearest_ids("acme", Zone.GUIDANCE, axis(0), Scope("ana", "s-1"), "default", 0)
    assert (line["signal"], line["tenant"], line["subject"]) == ("popular", "acme", object_id)
    assert NOTES["reports"] not in repr(line)
    assert QUESTION not in repr(line)


def test_who_reads_all_by_name_sweeps_as_much_as_who_asks(encoder) -> None:
    """Entries that are listed or named leave as surely as those that were searched for; they count for a sweep, and for
    nothing that speaks of nearness."""
    meters, now_ms = Meters(), [T0]
    policy = SweepPolicy(entries_min=4, others_min=2, check_ms=0)
    watching = Watching(meters, lambda: now_ms[0], RecallWatch(EntryPolicy(learn_ms=0), policy))
    store = FaissStore(":memory:")
    for number in range(12):
        land(store, encoder, f"Note {number}", str(number), visibility=Visibility.SHARED, principal="eve")
    asks = recaller(store, encoder, Told())
    for name in ("bo", "cy", "di"):
        asked = Question("acme", QUESTION, "helper", name, "s-1", k=1)
        watching.answered(asked, asks.ask(asked))
    asked = Question("acme", QUESTION, "helper", "mallory", "s-1", k=12)
    watching.named(asked, asks.ask(asked))
    assert counted(meters, "recall_signals", signal="sweep") == 1
    assert counted(meters, "recall_signals", signal="popular") == 0


def test_an_answer_without_room_is_counted() -> None:
    """Detectors that see only a part of the recalls say so."""
    meters = Meters()
    watching = Watching(meters, lambda: T0, RecallWatch(EntryPolicy(marks_max=0)))
    asked = Question("acme", QUESTION, "helper", "ana", "s-1")
    watching.answered(asked, Recalled((), Counter(), "r", as_data=False))
    assert counted(meters, "recall_unwatched") == 1


def test_known_good_questions_are_counted_by_how_they_are_answered(encoder) -> None:
    """All is well; then somebody lands what is nearer to a question than its answer; then the store is gone."""
    store, meters, told = FaissStore(":memory:"), Meters(), Told()
    for name, text in NOTES.items():
        land(store, encoder, text, name)
    asks, holdout = recaller(store, encoder, told), parse(KNOWN, "f")
    ask_all(asks, holdout, meters)
    assert [counted(meters, "recall_holdout", result=one) for one in ("answered", "missed", "failed")] == [2, 0, 0]
    land(store, encoder, "What does Ana drink? Ana drinks what the harbour bar sells.", "poison")
    ask_all(asks, holdout, meters)
    assert [counted(meters, "recall_holdout", result=one) for one in ("answered", "missed", "failed")] == [3, 1, 0]

    def gone(*_args, **_more):
        raise StoreUnavailable("gone")

    store.search = gone
    ask_all(asks, holdout, meters)
    assert [counted(meters, "recall_holdout", result=one) for one in ("answered", "missed", "failed")] == [3, 1, 2]
    assert told.events == []


def test_what_a_known_good_question_finds_changed_is_counted(encoder) -> None:
    """Where nobody else asks, this is the only one who meets what was written past the gate: it pages like any."""
    store, meters = FaissStore(":memory:"), Meters()
    for name, text in NOTES.items():
        land(store, encoder, text, name)
    ids = store.nearest_ids("acme", Zone.GUIDANCE, axis(0), Scope("ana", "s-1"), "default", 0)
    for item in store.held("acme", Zone.GUIDANCE, ids).values():
        store.upsert([replace(item, content=f"{item.content}!")], overwrite=True)
    ask_all(recaller(store, encoder, Told()), parse(KNOWN, "f"), meters)
    assert counted(meters, "recall_withheld", reason="content") == 2 * len(NOTES)


def test_they_are_asked_beside_the_service_until_it_ends(encoder) -> None:
    """The first round needs no waiting, and no thread is left behind."""
    store, asked = FaissStore(":memory:"), threading.Event()
    land(store, encoder, NOTES["reports"], "reports")

    class Seen(Meters):
        def add(self, metric, *labels, amount=1.0):
            super().add(metric, *labels, amount=amount)
            asked.set()

    meters = Seen()
    with asking(recaller(store, encoder, Told()), parse(KNOWN, "f"), meters, every_s=3_600):
        assert asked.wait(HANG_S)
    until(lambda: "known-good questions" not in {one.name for one in threading.enumerate()}, "the thread to end")


def test_a_file_that_cannot_be_read_is_said(tmp_path) -> None:
    """The service does not start without the questions that it was told to ask."""
    path = tmp_path / "known.yaml"
    with pytest.raises(ConfigError, match="cannot be read"):
        read(path)
    path.write_text(KNOWN)
    assert len(read(path).questions) == 2
    path.write_text("#" * (FILE_BYTES_MAX + 1))
    with pytest.raises(ConfigError, match="bytes"):
        read(path)


def test_the_signals_are_there_at_0_before_anything_happened(store, encoder, home) -> None:
    """An alert sees the first of them: every series exists from the start."""
    key_store, _ = home
    with serving(store, encoder, key_store) as service:
        shown = httpx.get(service.url + "/metrics", trust_env=False, timeout=HANG_S).text
    for series in ('signals_total{signal="sweep"}', 'holdout_total{result="missed"}', 'flagged_total{flag="wording"}'):
        assert f"memsluice_recall_{series} 0.0" in shown


class Broken(RecallWatch):
    """A detector with a defect."""

    def see(self, seen, now_ms):
        """Fail."""
        raise ArithmeticError("a defect")


def test_a_detector_that_fails_costs_nobody_an_answer() -> None:
    """The recall was published by then; that it was not watched is counted and told."""
    meters = Meters()
    answer = Recalled((), Counter(), "event-1", as_data=False)
    with capture_logs() as lines:
        Watching(meters, lambda: T0, Broken()).answered(Question("acme", "What?", "a", "ana", "s"), answer)
    assert counted(meters, "recall_unwatched") == 1
    assert [line["why"] for line in lines] == ["ArithmeticError"]
