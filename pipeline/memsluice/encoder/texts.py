"""What is done to texts before any encoder sees them."""

from collections.abc import Sequence

from memsluice.errors import ConfigError
from memsluice.events.codes import Reading, unescaped
from memsluice.events.letters import undressed

CHARACTERS_MAX = 1 << 20  # of one text; the product's own limit is 32 KiB


def encodable(texts: Sequence[str]) -> list[str]:
    """Return the texts with halves of surrogate pairs replaced by "?": a tokenizer would refuse the whole batch.

    Raises :class:`ConfigError` for a text of more than CHARACTERS_MAX characters.
    """
    if any(len(text) > CHARACTERS_MAX for text in texts):
        raise ConfigError(f"a text to encode has more than {CHARACTERS_MAX} characters")
    return [text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8") for text in texts]


def legible(text: str) -> Reading:
    """Return the text as its wording is read: its codes opened, letters in other dress in plain ones.

    Full-width, mathematical and circled letters, and Cyrillic and Greek look-alikes in words that have Latin letters,
    are nothing to the tokenizer. Where there is none of all this the reading is the text, with its own places.
    """
    read = unescaped(text)
    found = Reading(text, range(len(text)), range(1, len(text) + 1)) if read is None else read
    return found._replace(text=undressed(found.text))
