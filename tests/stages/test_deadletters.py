"""Dead letters of records of any size: in parts that fit the broker, and whole again byte for byte."""

import random
import subprocess
import sys

import orjson
import pytest

from memsluice.errors import MalformedEvent
from memsluice.events.names import DEAD_LETTER_HEADER
from memsluice.events.records import Output, Record
from memsluice.runtimes.kafka.spec import Tuning
from memsluice.stages.dead_letter import HEAD_BYTES_MAX, PART_BYTES_MAX, dead_letters, original
from memsluice.topics.names import DEAD_LETTER, EVENTS
from memsluice.topics.spec import load_topics

ERROR = MalformedEvent("no envelope " * 1_000, field="data" * 1_000)
LIMIT = {topic.name: topic.spec.max_message for topic in load_topics()}[DEAD_LETTER]
NOISE = random.Random(7).randbytes(2 * PART_BYTES_MAX + 5)
MANY = tuple((f"h{number}", NOISE[number : number + 9_000]) for number in range(300))
RECORDS = {
    "small": Record(EVENTS, 3, 5, b"acme", b"value", (("a", b"1"), ("a", None)), 9),
    "null": Record(EVENTS, 3, 5, None, None),
    "empty": Record(EVENTS, 3, 5, b"", b""),
    "one part": Record(EVENTS, 3, 5, b"acme", NOISE[:PART_BYTES_MAX], (("a", NOISE[: HEAD_BYTES_MAX - 100]),)),
    "three parts": Record(EVENTS, 3, 5, b"acme", NOISE, (("a", b"1"),)),
    "large headers": Record(EVENTS, 3, 5, b"acme", b"value", (("a", None), ("\\xff", NOISE), *MANY)),
    "large key": Record(EVENTS, 3, 5, NOISE, NOISE, (("a", b"1"),)),
    "large header names": Record(EVENTS, 3, 5, None, None, (("ü" * HEAD_BYTES_MAX, b"1"),)),
}


def letters(record: Record) -> list[tuple]:
    """Return the dead letters as they are read."""
    return [(letter.key, letter.value, letter.headers) for letter in dead_letters(record, ERROR)]


def size(output: Output) -> int:
    """Return an upper bound of a record's bytes in its batch."""
    names = sum(len(name.encode()) + len(value or b"") + 10 for name, value in output.headers)
    return len(output.key or b"") + len(output.value or b"") + names + 200


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_a_dead_letter_is_the_original_byte_for_byte(name: str) -> None:
    """Whatever its size: from its parts in any order, repeated as after a re-delivery, the same record comes back."""
    record = RECORDS[name]
    shuffled = letters(record) * 2
    random.Random(1).shuffle(shuffled)
    assert original(shuffled) == (record.key, record.value, record.headers)


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_every_part_fits_the_topic_and_the_client(name: str) -> None:
    """A part that the broker or the client refuses would end the worker, again after each restart."""
    sizes = [size(output) for output in dead_letters(RECORDS[name], ERROR)]
    assert max(sizes) < min(LIMIT, Tuning().max_request_bytes)


def test_a_part_carries_what_it_takes_to_read_it_alone() -> None:
    """Key, headers and reason on each part; the values in order are the original's value."""
    record = RECORDS["three parts"]
    parts = dead_letters(record, ERROR)
    told = [orjson.loads(part.headers[-1][1] or b"") for part in parts]
    assert [(why["kind"], why["part"], why["parts"], why["value_bytes"]) for why in told] == [
        ("value", number, 3, len(NOISE)) for number in (1, 2, 3)
    ]
    assert {(part.topic, part.partition, part.key, part.headers[:-1]) for part in parts} == {
        (DEAD_LETTER, 3, b"acme", (("a", b"1"),))
    }
    assert b"".join(part.value or b"" for part in parts) == NOISE


@pytest.mark.parametrize(("name", "lost"), [("three parts", 0), ("three parts", 2), ("large key", 4)])
def test_a_missing_part_is_told(name: str, lost: int) -> None:
    """A record put together from less than everything would be another record."""
    found = letters(RECORDS[name])
    assert found.pop(lost)[2][-1][0] == DEAD_LETTER_HEADER
    with pytest.raises(MalformedEvent, match="missing"):
        original(found)


def test_landing_does_not_load_the_encoder() -> None:
    """*land* encodes nothing: its worker starts without the model's libraries."""
    libraries = ("torch", "tokenizers", "memsluice.encoder.loop")
    code = f"import sys, memsluice.stages.land; sys.exit(any(one in sys.modules for one in {libraries}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_record_without_the_last_header_is_no_dead_letter() -> None:
    """Whoever writes to the topic without saying why is refused, not taken apart."""
    for headers in ((), (("a", b"1"),)):
        with pytest.raises(MalformedEvent, match="last header"):
            original([(b"acme", b"value", headers)])


def test_a_long_reason_is_cut_and_says_no_more_than_that() -> None:
    """A field's name and what is wrong with it may be the attacker's own text: three hundred characters go along."""
    (letter,) = dead_letters(RECORDS["small"], MalformedEvent("r" * 1_000, field="f" * 1_000))
    told = orjson.loads(letter.headers[-1][1] or b"")
    assert (told["field"], told["detail"]) == ("f" * 300, "r" * 300)
