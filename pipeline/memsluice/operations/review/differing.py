"""What differs within some held writes, in words: a terminal and a page say the same before many are signed. Pure."""

from memsluice.operations.held.view import name
from memsluice.operations.review.decide import Differences
from memsluice.recall.show import duration

VALUES_SHOWN_MAX = 8
SECOND_MS = 1_000
VALUE_CHARS_MAX = 60


def told(differs: Differences) -> list[str]:
    """Return a line for each field with several values, then lengths and times; what others chose is spelled out."""
    lines = []
    for field, values in differs.fields.items():
        most = values.most_common(VALUES_SHOWN_MAX)
        said = ", ".join(f"{count} × {name(value, VALUE_CHARS_MAX) or 'none'}" for value, count in most)
        rest = len(values) - len(most)
        lines.append(f"{field}: {said}{f', and {rest} more' if rest > 0 else ''}")
    if differs.chars[0] != differs.chars[1]:
        lines.append(f"length: {differs.chars[0]} to {differs.chars[1]} characters")
    span_ms = differs.held_ms[1] - differs.held_ms[0]
    if span_ms:
        lines.append(f"held within {'a second' if span_ms < SECOND_MS else duration(span_ms)}")
    return lines or ["nothing but their content"]
