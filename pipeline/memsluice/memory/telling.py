"""What a model is told of its memory: that something was not remembered, and what is remembered, marked as such."""

from memsluice.errors import (
    BatchNotRemembered,
    LandedElsewhere,
    LandingUnknown,
    LimitExceeded,
    MalformedEvent,
    NotRemembered,
    WriteRefused,
)
from memsluice.memory.memory import Memory, askable
from memsluice.recall import prompt

REMEMBERED = "remembered"
NOTHING = "nothing is remembered of this"
RECALL_K = 5
NO_ENTRY = (NotRemembered, LimitExceeded, MalformedEvent)
"""What a model is told; everything else that a write raises fails the call."""


def not_remembered(error: NotRemembered | LimitExceeded | MalformedEvent) -> str:
    """Return what to tell a model whose write has no entry: what became of it, in words, and nothing of why.

    The reasons are for people (``memsluice trace``); whoever talks to the model should not learn what to avoid.
    """
    if isinstance(error, LimitExceeded | MalformedEvent):
        return f"NOT remembered: it can be no entry ({error})"
    if isinstance(error, LandingUnknown):
        return "NOT known to be remembered: no answer came in time, and it may still be kept"
    if isinstance(error, BatchNotRemembered):
        return "NOT all of it was remembered: the rest was held or refused. Do not say that it was saved"
    if isinstance(error, LandedElsewhere):
        return "Remembered, but under another name than its own: that looks like a secret. Use one that says less"
    if isinstance(error, WriteRefused):
        return "NOT remembered: it was refused. Do not try again, and do not say that it was saved"
    return "NOT remembered: it waits for a person's review. Do not try again, and do not say that it was saved"


def remember(memory: Memory, text: str) -> str:
    """Have a text remembered, and return what to tell the model. Raises ProducerError where the log took nothing."""
    try:
        memory.write(text)
    except NO_ENTRY as error:
        return not_remembered(error)
    return REMEMBERED


def recalled(memory: Memory, question: str, k: int = RECALL_K) -> str:
    """Return the k nearest entries as a block that says what each is (:mod:`memsluice.recall.prompt`), "" where none
    is found. Raises as :meth:`Memory.search`."""
    asked = askable(question)
    answer = memory.search(asked, k=k) if asked else None
    return prompt.block(answer) if answer is not None and answer.entries else ""
