"""What is said before many are signed, and of each afterwards. Pure."""

from collections import Counter
from collections.abc import Sequence

from memsluice.escaping import visible
from memsluice.events.models import Action
from memsluice.gate.reasons import words
from memsluice.operations.held.view import name
from memsluice.operations.review import differing
from memsluice.operations.review.decide import Came, DecisionPlan, DecisionResult, Left
from memsluice.terminal.paper import Leaf
from memsluice.terminal.wrapping import Run

BEGINNING_CHARS = 60
BACK = {
    Action.RELEASE: "A release cannot be undone here; `memsluice revoke` takes an entry out of memory again.",
    Action.REJECT: "u takes a rejection back, while the write is kept.",
    Action.REOPEN: "What is taken back waits again.",
}
CAME_STYLES = {Came.DONE: "good", Came.NO_ANSWER: "warn"}


def preview(todo: DecisionPlan, now_ms: int, *, despite_claim: bool, signer: str) -> list[Run]:
    """Return what will be signed, what differs within it, what it is held for, and what is left out."""
    those = todo.todo
    tenants = ", ".join(dict.fromkeys(name(one.entry.tenant) for one in those))
    lines: list[Run] = [(f"{todo.action.value.capitalize()} {many(len(those))} of {tenants}", "bold")]
    lines += [(f"signed by {name(signer)}", "")] if signer else []
    lines.append((BACK[todo.action], ""))
    if left := counted(todo):
        lines.append((f"Not among them: {left}", "warn"))
    tainted = sum(one.tainted for one in those)
    if tainted and todo.action is Action.RELEASE:
        lines.append((f"{tainted} of them are tainted: the gate releases none of those", "warn"))
    claimed = Counter(by for one in those if (by := one.claimed_by(now_ms)) and by != signer)
    told = ", ".join(f"{count} by {name(by)}" for by, count in claimed.items())
    if told:
        aside = "their claims are set aside" if despite_claim else "the gate refuses those; ! sets claims aside"
        lines.append((f"Claimed: {told}; {aside}", "warn"))
    lines += [("", ""), *_differences(todo), ("", ""), ("Held for", "bold")]
    codes = Counter(code for one in those for code in one.now.reasons)
    lines += [(f"{count} × {code}: {words(code)}", "") for code, count in codes.most_common()]
    lines += [("", ""), ("Each of them", "bold")]
    for one in those:
        content = one.entry.write.content if one.entry.write is not None else ""
        beginning = visible(content[:BEGINNING_CHARS]) + ("…" if len(content) > BEGINNING_CHARS else "")
        lines.append((f"{name(one.entry.event_id)}  {' '.join(one.now.reasons)}  {beginning}", ""))
    return lines


def _differences(todo: DecisionPlan) -> list[Run]:
    if len(todo.todo) == 1:
        return []
    return [("What differs in them", "bold"), *((line, "") for line in differing.told(todo.differs))]


def many(count: int) -> str:
    """Return a number of held writes in words."""
    return "1 held write" if count == 1 else f"{count} held writes"


def counted(todo: DecisionPlan) -> str:
    """Return how many are left out, and why."""
    why = Counter(left for _, left in todo.left)
    told = {
        Left.UNREAD: "not read to their ends",
        Left.OTHER: "shown otherwise than they are",
        Left.STATE: "not waiting for this decision",
    }
    return ", ".join(f"{count} {told[left]}" for left, count in why.items())


def unread(leaf: Leaf, lines: int, todo: DecisionPlan) -> str:
    """Return why the current one is not decided."""
    called = name(leaf.seen.entry.event_id)
    if any(left is Left.STATE for _, left in todo.left):
        return f"{called} is {leaf.seen.state.value}, and does not wait for this decision"
    if lines:
        return f"{called} is not read to its end: {lines} of its lines were not on the screen yet; space scrolls on"
    return f"{called} is not decided: {counted(todo) or 'it does not wait'}"


def told_of(one: DecisionResult) -> Run:
    """Return what became of one, in words, and its style."""
    if one.came is Came.CONFLICT:
        return f"somebody else came first: {one.told}", "bad"
    if one.came is Came.DONE:
        return one.told, "good"
    return f"{one.came.value}: {one.told}", CAME_STYLES.get(one.came, "bad")


def results_told(results: Sequence[DecisionResult]) -> list[Run]:
    """Return what became of each of the last decision."""
    if not results:
        return [("Nothing was decided yet.", "")]
    lines: list[Run] = [(f"{results[0].action.value}: {summed(results)}", "bold")]
    for one in results:
        told, style = told_of(one)
        lines.append((f"{name(one.seen.entry.event_id)}  {told}", style))
    return lines


def summed(results: Sequence[DecisionResult]) -> str:
    """Return how many came to what."""
    words_of = {Came.DONE: "done", Came.CONFLICT: "decided by somebody else first", Came.REFUSED: "refused",
                Came.NO_ANSWER: "without an answer yet", Came.NOT_SENT: "not sent"}  # fmt: skip
    counts = Counter(one.came for one in results)
    return ", ".join(f"{count} {words_of[came]}" for came, count in counts.most_common())
