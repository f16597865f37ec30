"""Dead letters: what an input that could not be read or authenticated becomes, with its own bytes."""

import orjson

from memsluice.errors import InputError
from memsluice.events.names import DEAD_LETTER_HEADER
from memsluice.stages.records import Output, Record
from memsluice.topics.names import DEAD_LETTER

DETAIL_CHARS_MAX = 300


def dead_letters(record: Record, error: InputError) -> list[Output]:
    """Return the dead letter of a record: its own bytes and headers, and one last header that says why."""
    why = {
        "reason": error.code,
        "field": error.field,
        "detail": error.reason[:DETAIL_CHARS_MAX],
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "append_ms": record.timestamp_ms,
    }
    headers = (*record.headers, (DEAD_LETTER_HEADER, orjson.dumps(why)))
    return [Output(DEAD_LETTER, record.partition, record.key, record.value, headers)]
