"""Spans, metrics, logs and dead letters: no content, nothing that acts on whatever shows them, and known words only."""

import io
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog
from prometheus_client.parser import text_string_to_metric_families
from tests.command import logging_to
from tests.hostile_text.texts import FORGED, MARK, NAMES, TEXTS, hidden_in
from tests.hostile_text.town import Town

from memsluice import errors, log
from memsluice.client import requests
from memsluice.client.requests import Session
from memsluice.errors import InputError, StateError
from memsluice.escaping import lines, visible
from memsluice.events.limits import NAME_CHARS_MAX
from memsluice.events.names import DEAD_LETTER_HEADER, REASON_HEADER
from memsluice.topics.names import DEAD_LETTER, SEALED

NOW = datetime(2026, 3, 2, tzinfo=UTC)
CODES = {kind.code for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, InputError)}


def _texts(value: Any) -> Iterator[str]:
    """Yield every text of a JSON value, keys among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from (key, *_texts(inner))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def test_spans_hold_no_content_and_nothing_that_acts(town: Town) -> None:
    """A trace is read in a browser or a terminal: names are spelled out there too, content is nowhere."""
    spans = town.told.spans()
    said = [json.loads(span.to_json()) for span in spans]
    assert {span.name.split()[0] for span in spans} == {"seal", "screen", "land"}
    assert [found for text in _texts(said) for found in hidden_in(text)] == []
    assert MARK not in json.dumps(said, ensure_ascii=False)
    told = {span.attributes.get("memsluice.principal") for span in spans if span.attributes}
    assert visible(NAMES["bidi override"]) in told  # it was there to be spelled out
    assert len({span.name for span in spans}) <= 8


def test_metrics_have_few_series_and_no_text_of_anybodys(town: Town) -> None:
    """Whatever is sent, labels are codes that the gate knows, and the exposition format stays whole."""
    text = town.told.metrics()
    assert hidden_in(text) == []
    assert MARK not in text
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    values = {value for sample in samples for name, value in sample.labels.items() if name not in ("le", "partition")}
    assert all(value.isascii() and len(value) <= 64 for value in values)
    reasons = {s.labels["reason"] for s in samples if s.name == "memsluice_dead_letters_total" and s.value}
    assert len(reasons) >= 3
    assert reasons <= CODES


def test_the_stages_logs_hold_no_content_and_nothing_that_acts(town: Town) -> None:
    """A log is read with ``tail`` on a terminal."""
    said = town.told.log.getvalue()
    assert hidden_in(said) == []
    assert MARK not in said


def test_a_dead_letters_reason_is_ours_whatever_the_record_says(town: Town) -> None:
    """Reason, field and detail name what is wrong in our words; the sender's bytes stay in their own place."""
    letters, seen = town.records(DEAD_LETTER), set()
    for letter in letters:
        name, told = letter.headers[-1]
        assert name == DEAD_LETTER_HEADER
        why = json.loads(told or b"")
        assert (told or b"").isascii()
        assert why["reason"] in CODES
        seen.add(why["field"])
    assert len(letters) > 300
    assert {"attributes", "value", "keyid", "source", "type"} <= seen
    markers = [dict(record.headers).get(REASON_HEADER) for record in town.records(SEALED)]
    assert {marker.decode() for marker in markers if marker is not None} <= CODES


@pytest.mark.parametrize("label", TEXTS)
@pytest.mark.parametrize(
    "where", ["id", "tenant", "agent", "principal", "session", "namespace", "key", "origin", "parents", "content"]
)
def test_what_the_schema_refuses_is_refused_in_clean_words(where: str, label: str) -> None:
    """A refusal names the field; it repeats nothing of what was refused, whatever place it was put into."""
    odd = TEXTS[label] + MARK
    people = {"tenant": "acme", "agent": "helper", "principal": "ana", "session": "s-1"}
    options: requests.WriteOptions = {}
    if where in people:
        people[where] = odd
    elif where in ("namespace", "key", "origin"):
        options[where] = odd  # type: ignore[literal-required]
    elif where == "parents":
        options["parents"] = [odd]
    content = odd + "\ud800" if where == "content" else "A note."
    refused = where in ("id", "tenant", "parents", "content") or label not in NAMES or len(odd) > NAME_CHARS_MAX
    with pytest.raises(InputError) if refused else nullcontext() as told:
        requests.write(odd if where == "id" else "w-1", NOW, Session(**people), content, options)
    if told is not None:
        assert hidden_in(str(told.value)) == []
        assert MARK not in str(told.value)
        assert told.value.__cause__ is None


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_log_line_stays_one_line(text: str) -> None:
    """Ours and the libraries': messages, values and tracebacks are spelled out, and forge no line of their own."""
    said = io.StringIO()
    with logging_to(said):
        structlog.get_logger("ours").warning("the store does not take the batch", why=text, many=[text])
        logging.getLogger("aiokafka.consumer").error("bad record %r of %s", text, text)
        logging.getLogger("kafka").error("bad header %s", text.encode("utf-8", "surrogatepass"))
    assert hidden_in(said.getvalue()) == []
    assert len(said.getvalue().splitlines()) == 3
    assert not any(line.startswith(FORGED) for line in said.getvalue().splitlines())


def test_an_error_that_is_not_ours_is_logged_without_its_text() -> None:
    """A library's exception may quote a record: its kind and place are enough; our own messages never quote one."""
    said = io.StringIO()
    with pytest.raises(UnicodeDecodeError) as told:
        MARK.encode("utf-16").decode()
    with logging_to(said):
        logging.getLogger("mode").error("crashed", exc_info=told.value)
        structlog.get_logger("ours").error("crashed", exc_info=told.value)
        sys.excepthook(told.type, told.value, told.tb)  # what ends the process
    assert log.said(told.value).startswith("UnicodeDecodeError at ")
    assert log.said(told.value).endswith(f"test_channels.py:{told.tb.tb_lineno}")
    assert said.getvalue().count("UnicodeDecodeError at ") == 3
    assert said.getvalue().count('test_channels.py", line') == 3
    assert "invalid" not in said.getvalue()  # the error's own text, which quotes
    assert log.said(StateError("row 7 is missing")) == "StateError: row 7 is missing"


def test_lines_keep_their_breaks_and_nothing_else() -> None:
    """A server's log is shown line by line: a carriage return or an escape in it acts on nothing."""
    assert lines("at a\tb\r\n\x1b[2Jc") == "at a    b<U+000D>\n<U+001B>[2Jc"
