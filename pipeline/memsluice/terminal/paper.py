"""What a group's page says: each held write whole, with its reasons, and which of them were on the screen whole.

Pure: the page is lines for a width, and is told which lines were painted. A write counts as read once every line that
has to be seen of it was: what it is held for, and each line of its content.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from memsluice.gate.reasons import words
from memsluice.operations.held.collect import HeldReview
from memsluice.operations.held.commands import shown
from memsluice.operations.held.entries import HeldState
from memsluice.operations.held.view import Piece, lines, marked, name
from memsluice.operations.review.decide import AFTER, Came, DecisionResult, Name, name_of
from memsluice.recall.show import duration
from memsluice.terminal.wrapping import Row, Run, indented

CONTENT_BAR: Run = ("  │ ", "dim")
LABEL_CELLS = 12
REASONS = ("held for", "refused for")
STATES = {
    HeldState.PENDING: "warn",
    HeldState.REFUSED: "bad",
    HeldState.RELEASED: "good",
    HeldState.REJECTED: "bad",
    HeldState.LAPSED: "dim",
}


@dataclass(slots=True)
class Leaf:
    """One held write of a page, with its content. ``told`` is what became of it while it stood here, and its style.

    ``painted`` are its lines that were on the screen, by their places among its own; ``read`` says that all that have
    to be seen were, at one width: a page that is laid out anew begins with those that were not read yet.
    """

    seen: HeldReview
    told: Run = ("", "")
    opened: bool = False
    read: bool = False
    painted: set[int] = field(default_factory=set)
    laid: tuple[Row, ...] = ()
    result: DecisionResult | None = None

    @property
    def name(self) -> Name:
        """What tells it from every other."""
        return name_of(self.seen.entry)

    @property
    def waits(self) -> bool:
        """Whether it waits for a decision here."""
        return self.seen.state in (HeldState.PENDING, HeldState.REFUSED)

    @property
    def came(self) -> Came | None:
        """What the last decision about it came to; None where there was none here."""
        return None if self.result is None else self.result.came

    @property
    def sent(self) -> bool:
        """Whether a decision is on its way, whose answer is not known."""
        return self.came is Came.NO_ANSWER

    def refused_for(self, code: str) -> bool:
        """Whether the last decision about it was refused for a reason."""
        ruled = None if self.result is None or self.came is Came.DONE else self.result.ruled
        return ruled is not None and code in ruled.reasons

    def decided(self, one: DecisionResult, told: Run) -> None:
        """Take what a decision about it came to."""
        self.result, self.told = one, told
        if one.came is Came.DONE:
            self.seen = replace(self.seen, state=AFTER[one.action], ruled=one.ruled)

    def replaced(self, seen: HeldReview) -> None:
        """Take what became of it since. Where it stands by other reasons than were read, it has to be read again."""
        before, self.seen = self.seen, seen
        if (before.now, before.tainted) != (seen.now, seen.tainted):
            self.read, self.painted = False, set()
            self.told = ("it stands by other reasons than were shown here: read it again", "warn")
        elif before.state is not seen.state and self.waits:
            self.result, self.told = None, ("it was taken back: it waits again", "warn")
        elif before.state is not seen.state and self.came is not Came.CONFLICT:
            by = "" if seen.ruled is None else f" by {name(seen.ruled.kid)}"
            self.result, self.told = None, (f"it is {seen.state.value} now{by}", "warn")


def content_of(leaf: Leaf) -> str:
    """Return the content of a leaf, which was read with it."""
    write = leaf.seen.entry.write
    assert write is not None
    return write.content


class Paper:
    """The page: some leaves, laid out for a width in cells."""

    def __init__(self, now_ms: int, head: Sequence[Run] = ()) -> None:
        self.leaves: list[Leaf] = []
        self.head = list(head)
        self.rows: list[Row] = []
        self._now_ms, self._width = now_ms, 0
        self._starts: list[int] = []

    @property
    def width(self) -> int:
        """The width that it is laid out for."""
        return self._width

    def add(self, seen: Iterable[HeldReview]) -> None:
        """Add held writes at the end, each once."""
        known = {leaf.name for leaf in self.leaves}
        self.leaves += [Leaf(one) for one in seen if name_of(one.entry) not in known]
        self.lay(self._width)

    def lay(self, width: int, now_ms: int | None = None) -> None:
        """Lay it out anew. A leaf whose lines that have to be seen are others than before is read from its beginning,
        unless it was read to its end."""
        self._now_ms = self._now_ms if now_ms is None else now_ms
        self._width = width
        if width <= 0:
            return
        self.rows = [Row(line) for run in self.head for line in indented([run], width, ("", ""), ("", ""))]
        self.rows += [Row(())] if self.head else []
        self._starts = []
        for number, leaf in enumerate(self.leaves):
            self._starts.append(len(self.rows))
            rows = _rows(leaf, number, width, self._now_ms)
            laid = tuple(row for row in rows if row.must)
            if laid != leaf.laid:
                leaf.laid, leaf.painted = laid, set()
            self.rows += rows

    def span(self, number: int) -> range:
        """Return the places of a leaf's lines."""
        end = self._starts[number + 1] if number + 1 < len(self._starts) else len(self.rows)
        return range(self._starts[number], end)

    def at(self, row: int) -> int:
        """Return the leaf whose line stands at a place; the first one above them all, -1 where there is none."""
        if not self.rows or not self.leaves:
            return -1
        return max(0, self.rows[max(0, min(row, len(self.rows) - 1))].item)

    def paint(self, first: int, end: int) -> bool:
        """Take that lines from ``first`` up to ``end`` were on the screen; return whether that made a leaf read."""
        grew = False
        for row in range(max(0, first), min(end, len(self.rows))):
            number = self.rows[row].item
            if number < 0 or self.leaves[number].read:
                continue
            self.leaves[number].painted.add(row - self._starts[number])
            if not self.rows[row].must or self.unseen(number):
                continue
            self.leaves[number].read = grew = True
        return grew

    def unseen(self, number: int) -> int:
        """Return how many lines of a leaf have to be seen yet."""
        leaf, span = self.leaves[number], self.span(number)
        return 0 if leaf.read else sum(self.rows[at].must and at - span.start not in leaf.painted for at in span)

    def read(self) -> dict[Name, str]:
        """Return, of each leaf that was read, the SHA-256 of the content whose lines were on the screen."""
        return {leaf.name: shown(content_of(leaf)) for leaf in self.leaves if leaf.read}

    def toggle(self, number: int) -> None:
        """Show all that is known of a leaf, or what is needed to decide."""
        leaf = self.leaves[number]
        leaf.opened = not leaf.opened
        leaf.painted.clear()
        self.lay(self._width)


def _rows(leaf: Leaf, number: int, width: int, now_ms: int) -> list[Row]:
    seen, style = leaf.seen, STATES[leaf.seen.state]
    entry = seen.entry
    head: list[Run] = [
        (f"{number + 1}  ", ""), (name(entry.event_id), "bold"), ("  ", ""), (seen.state.value, style),
        (f", held {duration(now_ms - entry.held_ms)} ago", ""), (_desk(seen, now_ms), "warn"),
        (_source(seen), "dim"),
    ]  # fmt: skip
    rows = [
        Row(line, number, at == 0, must=True) for at, line in enumerate(indented(head, width, ("", ""), ("  ", "")))
    ]
    told = _known(seen, now_ms, width) if leaf.opened else [(line, True) for line in indented(_why(seen), width)]
    rows += [Row(line, number, must=must) for line, must in told]
    content = indented(_runs(marked(content_of(leaf))), width, CONTENT_BAR, CONTENT_BAR)
    rows += [Row(line, number, must=True) for line in content]
    if leaf.told[0]:
        rows += [Row(line, number) for line in indented([leaf.told], width, ("  → ", leaf.told[1]), ("    ", ""))]
    return [*rows, Row((), number)]


def _runs(pieces: Iterable[Piece]) -> list[Run]:
    """Return pieces as runs. Brackets besides colour: what triggered is also seen by those who do not see colours."""
    return [(f"⟦{piece.text}⟧", "marked") if piece.marked else (piece.text, "") for piece in pieces]


def _source(seen: HeldReview) -> str:
    held = seen.entry.held
    said = [name(part, 40) for part in (held.agent, held.principal, held.session)]
    taint = ", tainted" if seen.tainted else ""
    return f"  {held.channel}, tier {int(held.tier)}{taint}  {' · '.join(said)}"


def _desk(seen: HeldReview, now_ms: int) -> str:
    claimed = seen.claimed_by(now_ms)
    told = [f"claimed by {name(claimed, 40)}"] if claimed else []
    told += [f"assigned to {name(seen.assignee, 40)}"] if seen.assignee else []
    told += [f"{len(seen.notes)} notes"] if seen.notes else []
    told += ["review asked for"] if seen.appeal is not None else []
    return "".join(f", {one}" for one in told)


def _why(seen: HeldReview) -> list[Run]:
    now, told = seen.now, list[Run]()
    for code in now.reasons:
        told += [(code, "bold"), (f" {words(code)}  ", "")]
    numbers = [f"{what} {value:.2f}" for what, value in (("evidence", now.evidence), ("score", now.score)) if value]
    return [*told, (", ".join(numbers), "dim")]


def _known(seen: HeldReview, now_ms: int, width: int) -> list[tuple[tuple[Run, ...], bool]]:
    """Return the lines of all that is known of a held write but for its content, and whether each has to be seen."""
    return [
        (row, line.label in REASONS)
        for line in lines(seen, now_ms, words)
        if line.label != "content"
        for row in indented(
            _runs(line.pieces),
            width,
            (f"  {line.label:<{LABEL_CELLS}} ", "bold"),
            (" " * (LABEL_CELLS + 3), ""),
        )
    ]
