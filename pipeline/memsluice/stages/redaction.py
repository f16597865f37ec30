"""What *seal* finds of secrets and personal data in an event's free texts, and the event without it."""

from memsluice.envelope import codec
from memsluice.envelope.keys import Keyring
from memsluice.events import limits
from memsluice.events.models import AnyPayload, Command, Observation, Recall, Write
from memsluice.gate.checks import sensitive
from memsluice.gate.sensitive.span import Span, joined

FREE_TEXT = {
    Write: {"content": limits.CONTENT_BYTES_MAX, "key": limits.NAME_CHARS_MAX, "origin": limits.NAME_CHARS_MAX},
    Recall: {"question": limits.QUESTION_BYTES_MAX},
    Observation: {"content": limits.CONTENT_BYTES_MAX},
    Command: {"reason": limits.REASON_CHARS_MAX},
}
"""What of a payload is searched for secrets and personal data, and how long it may be, in bytes. Not the names that a
platform gives: who is told by them stands in every verdict."""
KEY_TAG_CHARS = 16
"""Hexadecimal digits of the digest that tells keys apart whose secrets were taken out."""


def found_in(payload: AnyPayload) -> dict[str, tuple[Span, ...]]:
    """Return what the payload's free texts have of secrets and personal data, by field. A key says what it names."""
    texts = {name: getattr(payload, name) for name in FREE_TEXT[type(payload)]}
    found = {name: sensitive.found(text) for name, text in texts.items() if text}
    if isinstance(payload, Write) and payload.key:
        found["content"] = joined([*found.get("content", ()), *sensitive.named(payload.content, payload.key)])
    return {name: spans for name, spans in found.items() if spans}


def without(payload: AnyPayload, found: dict[str, tuple[Span, ...]], keyring: Keyring, content_max: int) -> AnyPayload:
    """Return the payload with what was found taken out of it. ``content_max``: the policy's limit, in bytes; markers
    make no content longer than that which was not.

    Of a key a digest under the tenant's own remains, by which two keys stay two. With a question goes the vector that a
    reader made of it, with what a session saw the bare hash, by which a short value could be guessed.
    """
    changed: dict[str, str | None] = {}
    for name, spans in found.items():
        text, room = getattr(payload, name), FREE_TEXT[type(payload)][name]
        if name == "key":
            tag = codec.digest(keyring, payload.tenant, "key", text.encode())[:KEY_TAG_CHARS]
            short = sensitive.redacted(text, spans)
            changed[name] = f"{short[: room - KEY_TAG_CHARS - 1]}#{tag}"
        else:
            room = (
                min(room, max(content_max, len(text.encode("utf-8", "surrogatepass"))))
                if isinstance(payload, Write)
                else room
            )
            changed[name] = sensitive.redacted(text, spans, room)
    if isinstance(payload, Recall):
        changed["vector"] = None
    if isinstance(payload, Observation):
        changed["digest"] = None
    return payload.model_copy(update=changed)
