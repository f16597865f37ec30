"""A signed order to publish dead letters again, from somebody who does not hold the broker's password himself.

Whoever serves him publishes for him, and only what he signed: these letters, by their digests, once, within a quarter
of an hour. The gate decides what is published as it decides anything else: nothing in a letter becomes true by it.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memsluice.clock import Clock
from memsluice.deployment.paths import using
from memsluice.envelope import dsse
from memsluice.envelope.codec import canonical, from_json
from memsluice.envelope.partition_orders import REASON_CHARS_MAX, Keys, check_operator
from memsluice.errors import InputError, InvalidArgument, SealError
from memsluice.events.names import LETTER_ORDER
from memsluice.operations.dead_letters.asking import find
from memsluice.operations.dead_letters.desk import LetterDesk
from memsluice.operations.dead_letters.filters import LetterFilter
from memsluice.operations.dead_letters.letters import LetterState
from memsluice.operations.dead_letters.replay import LetterReplay, LetterRun, replay
from memsluice.topics.names import PARTITIONS

LETTERS_MAX = 100
ORDER_BYTES_MAX = 64 * 1024
VALID_MS = 15 * 60_000
SKEW_MS = 60_000
"""By how much the clock of whoever signed may be ahead."""
RATE_PER_S = 500.0
SUFFIX = ".json"
ID_CHARS_MAX = 64
UNREADABLE = "it is no order: canonical JSON with id, letters (each a name and a digest), why and given_ms"


@dataclass(frozen=True, slots=True)
class LetterOrder:
    """Which letters, by name and digest, are to be published again, and why. ``id`` is new for each order."""

    id: str
    letters: tuple[tuple[str, str], ...]
    why: str
    given_ms: int


def order_from_bytes(keys: Keys, data: bytes, now_ms: int) -> tuple[LetterOrder, str]:
    """Return a verified order and the key id that signed it; ``now_ms`` is Unix ms.

    Raises SealError for one that does not verify, InvalidArgument for one that is no order, or whose time is over.
    """
    if len(data) > ORDER_BYTES_MAX:
        raise InvalidArgument(f"the order has {len(data)} bytes, and at most {ORDER_BYTES_MAX} are taken")
    try:
        envelope = dsse.parse(from_json(data))
        kid = envelope.signatures[0].kid if len(envelope.signatures) == 1 else ""
        check_operator(kid, keys, now_ms, "have dead letters published again")
        payload = dsse.verify(envelope, LETTER_ORDER, keys.keyring().direct)
    except InputError as error:
        raise SealError(f"an order about dead letters does not verify: {error}") from None
    order = _read(payload)
    if not order.given_ms - SKEW_MS <= now_ms < order.given_ms + VALID_MS:
        raise InvalidArgument("the order was signed too long ago, or by a clock that is ahead: sign it once more")
    return order, kid


def _read(payload: bytes) -> LetterOrder:
    """Read what was signed: the canonical bytes of an order, which can be read in one way alone."""
    try:
        value = from_json(payload)
        named = [(name, digest) for name, digest in value["letters"]]
        order = LetterOrder(value["id"], tuple(named), value["why"], value["given_ms"])
        texts = [order.id, order.why, *(part for letter in named for part in letter)]
        known = set(value) == {"id", "letters", "why", "given_ms"} and canonical(value) == payload
    except (InputError, KeyError, TypeError, ValueError):
        known, texts = False, []
    if not known or not all(isinstance(text, str) for text in texts) or type(order.given_ms) is not int:
        raise InvalidArgument(f"order: {UNREADABLE}")
    if not (order.id.isascii() and order.id.isalnum() and len(order.id) <= ID_CHARS_MAX):
        raise InvalidArgument(f"id: it is 1 to {ID_CHARS_MAX} letters and digits")
    if len(order.why) > REASON_CHARS_MAX or not order.why.strip():
        raise InvalidArgument(f"why: say why, in at most {REASON_CHARS_MAX} characters")
    if not 0 < len({name for name, _ in named}) == len(named) <= LETTERS_MAX:
        raise InvalidArgument(f"letters: an order names 1 to {LETTERS_MAX} letters, each once")
    return order


def keep(folder: Path, order: LetterOrder, data: bytes) -> None:
    """Keep an order as it was signed, so that it is carried out once. Raises InvalidArgument where it is kept already.

    The folder is that of the runs, whose files are deleted after a day, when the order's time is long over.
    """
    with using(folder):
        folder.mkdir(mode=0o700, exist_ok=True)
    try:
        descriptor = os.open(folder / f"{order.id}{SUFFIX}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InvalidArgument("the order was carried out already: look at the letters again, and sign anew") from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def carried_out(desk: LetterDesk, order: LetterOrder, wait_s: float, now_ms: Clock) -> Iterator[list[LetterReplay]]:
    """Publish the letters of an order again, and yield what became of each.

    Raises NotFound for a letter that is not there, InvalidArgument, before any is published, for one that is other than
    what was signed, or is not open any more; BrokerUnavailable.
    """
    found = find(desk, [name for name, _ in order.letters])
    for seen, (name, digest) in zip(found, order.letters, strict=True):
        if seen.letter.digest != digest:
            raise InvalidArgument(f"letters: {name} is another letter than the one that was signed: look at it again")
        if seen.state is not LetterState.OPEN:
            raise InvalidArgument(f"letters: {name} is {seen.state.value} by now: leave it out, and sign anew")
    run = LetterRun(order.id, now_ms(), False, LETTERS_MAX, LetterFilter())
    yield from replay(
        desk, run, found, rate=RATE_PER_S, batch=LETTERS_MAX, wait_s=wait_s, partitions=PARTITIONS, now_ms=now_ms
    )


def checked(desk: LetterDesk, names: list[str], now_ms: Clock) -> Iterator[list[LetterReplay]]:
    """Yield what a replay of letters would come to now; nothing is published. Raises NotFound, BrokerUnavailable."""
    run = LetterRun("", now_ms(), True, LETTERS_MAX, LetterFilter())
    yield from replay(
        desk, run, find(desk, names), rate=RATE_PER_S, batch=LETTERS_MAX, wait_s=0.0, partitions=PARTITIONS,
        now_ms=now_ms,
    )  # fmt: skip
