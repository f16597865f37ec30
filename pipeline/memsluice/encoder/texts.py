"""What is done to texts before any encoder sees them."""

from collections.abc import Sequence

from memsluice.errors import ConfigError
from memsluice.events.codes import Reading, in_place, unescaped
from memsluice.events.letters import undressed

CHARACTERS_MAX = 1 << 20  # of one text; the product's own limit is 32 KiB


def encodable(texts: Sequence[str]) -> list[str]:
    """Return the texts with halves of surrogate pairs replaced by "?": a tokenizer would refuse the whole batch.

    Raises :class:`ConfigError` for a text of more than CHARACTERS_MAX characters.
    """
    if any(len(text) > CHARACTERS_MAX for text in texts):
        raise ConfigError(f"a text to encode has more than {CHARACTERS_MAX} characters")
    return [text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8") for text in texts]


def legible(text: str) -> Reading | None:
    """Return the text as its wording is read: its codes opened, letters in other dress in plain ones; None if the same.

    Full-width, mathematical and circled letters, and Cyrillic and Greek look-alikes in words that have Latin letters,
    are nothing to the tokenizer.
    """
    found = unescaped(text)
    letters = undressed(text if found is None else found.text)
    if found is not None:
        return found._replace(text=letters)
    return None if letters == text else in_place(letters)
