"""Decisions about many held writes at once: what is decided, what differs within it, and what the gate made of each.

**Nothing is decided unread.** A plan takes whole entries and what a screen said that it showed of each: the SHA-256 of
the content that stood on it. What was not shown, or was shown otherwise, is in no plan. Every entry takes a command of
its own, which says the same to the gate, so that a plan that lies is refused there.
"""

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from memsluice.clock import Clock, wall_ms
from memsluice.envelope.verdict import Decision, Verdict
from memsluice.errors import BrokerError, InvalidArgument, MemsluiceError, ProducerError
from memsluice.escaping import visible
from memsluice.events.models import Action, Command
from memsluice.gate.reasons import words
from memsluice.operations.commands.answers import Bookmark
from memsluice.operations.held.collect import HeldReview
from memsluice.operations.held.commands import Answer, answers, decision, shown
from memsluice.operations.held.desk import HeldDesk
from memsluice.operations.held.entries import CommandOutcome, HeldState, HeldWrite, Ruled, ruling_of
from memsluice.operations.verdict_words import note_words
from memsluice.topics.names import PARTITIONS

ENTRIES_MAX = 100
"""Entries of one plan: no more than a person reads before deciding."""
DECIDES = {
    Action.RELEASE: (frozenset({HeldState.PENDING}), CommandOutcome.RELEASED),
    Action.REJECT: (frozenset({HeldState.PENDING, HeldState.REFUSED}), CommandOutcome.REJECTED),
    Action.REOPEN: (frozenset({HeldState.REJECTED}), CommandOutcome.REOPENED),
}
"""The actions of a plan: of which states, and what they come to."""
AFTER = {
    Action.RELEASE: HeldState.RELEASED,
    Action.REJECT: HeldState.REJECTED,
    Action.REOPEN: HeldState.PENDING,
}
"""The state of a write in which an action leaves it."""
WANTED: Mapping[Action, CommandOutcome] = {
    **{action: outcome for action, (_, outcome) in DECIDES.items()},
    Action.NOTE: CommandOutcome.NOTED,
}
"""What a command comes to that is carried out, of the actions by which a person decides or notes."""
CONFLICTS = frozenset({"review.stale", "review.claimed", "review.decided", "reopening.not_rejected"})
"""Codes by which the gate says that somebody else came first."""
Name = tuple[str, str, int]
"""Tenant, event id and intake offset."""


def name_of(entry: HeldWrite) -> Name:
    """Return what tells an entry from every other."""
    return entry.tenant, entry.event_id, entry.offset


@dataclass(frozen=True, slots=True)
class Differences:
    """What differs within some entries: of each field that has several values the values with their counts; the
    lengths of the shortest and longest content in characters; and when the first and last were held (Unix ms)."""

    fields: Mapping[str, Counter[str]]
    chars: tuple[int, int]
    held_ms: tuple[int, int]

    @classmethod
    def within(cls, entries: Iterable[HeldReview]) -> "Differences":
        """Return what differs within entries that were read with their contents; of none, nothing."""
        those = list(entries)
        counted = {
            "reasons": Counter(" ".join(one.now.reasons) for one in those),
            "state": Counter(one.state.value for one in those),
            "taint": Counter("tainted" if one.tainted else "not tainted" for one in those),
            **{
                name: Counter(str(getattr(one.entry.held, name)) for one in those)
                for name in ("kid", "principal", "agent", "session", "channel")
            },
            "tier": Counter(str(int(one.entry.held.tier)) for one in those),
            "policy": Counter(one.now.policy for one in those),
            "key": Counter(str(getattr(one.entry.write, "key", None) or "") for one in those),
        }
        chars = [len(one.entry.write.content) for one in those if one.entry.write is not None] or [0]
        held = [one.entry.held_ms for one in those] or [0]
        several = {name: counts for name, counts in counted.items() if len(counts) > 1}
        return cls(several, (min(chars), max(chars)), (min(held), max(held)))


class Left(StrEnum):
    """Why an entry is in no plan."""

    UNREAD = "its content was not shown"
    OTHER = "what was shown is not its content"
    STATE = "it does not wait for this decision"


@dataclass(frozen=True, slots=True)
class DecisionPlan:
    """What will be decided, in the order in which it was held; what is left out, and why; what differs within."""

    action: Action
    reason: str
    todo: tuple[HeldReview, ...]
    left: tuple[tuple[HeldReview, Left], ...]
    differs: Differences


def plan(entries: Iterable[HeldReview], action: Action, read: Mapping[Name, str], reason: str = "") -> DecisionPlan:
    """Return the plan of one action for entries that were read with their contents.

    ``read`` has, for each entry whose content a person was shown, the SHA-256 of what was shown (64 hex digits). Raises
    InvalidArgument for another action, and for more than ENTRIES_MAX entries.
    """
    if action not in DECIDES:
        raise InvalidArgument(f"action: {action.value} decides no held write; it is one of {', '.join(DECIDES)}")
    those = {name_of(one.entry): one for one in entries}
    if len(those) > ENTRIES_MAX:
        raise InvalidArgument(f"entries: {len(those)} are too many for one plan, which has {ENTRIES_MAX}: narrow it")
    todo, left = [], []
    for name, one in those.items():
        if one.entry.write is None or name not in read:
            left.append((one, Left.UNREAD))
        elif read[name] != shown(one.entry.write.content):
            left.append((one, Left.OTHER))
        elif one.state not in DECIDES[action][0]:
            left.append((one, Left.STATE))
        else:
            todo.append(one)
    todo.sort(key=lambda one: (one.entry.held_ms, *name_of(one.entry)))
    return DecisionPlan(action, reason, tuple(todo), tuple(left), Differences.within(todo))


class Came(StrEnum):
    """What the command about one entry came to."""

    DONE = "done"
    CONFLICT = "conflict"
    REFUSED = "refused"
    NO_ANSWER = "no answer"
    NOT_SENT = "not sent"


@dataclass(frozen=True, slots=True)
class DecisionResult:
    """One entry and what its command came to; ``told`` says so in words. ``seen`` is the entry as it was shown."""

    seen: HeldReview
    action: Action
    command_id: str
    came: Came
    told: str
    ruled: Ruled | None = None


def came_of(verdict: Verdict | None, *, texts: bool = True) -> tuple[Came, str]:
    """Return what a command came to by the verdict on it (None: there is none yet), and that in words.

    All who sign are told by this function, on a terminal, on a command line and in a browser, and of every command.
    ``texts`` is whether what a note says is told with it. Raises SealError for a verdict of another version.
    """
    if verdict is None:
        return Came.NO_ANSWER, "the command is in the log, and is decided in its order"
    if verdict.decision is Decision.DUPLICATE:
        return Came.CONFLICT, "a command of this id was answered before: look again"
    ruled = ruling_of(verdict)
    if _carried_out(verdict, ruled):
        return Came.DONE, _done_words(verdict, ruled, texts=texts)
    told = "; ".join(f"{code}: {words(code)}" for code in verdict.reasons)
    if ruled is not None:
        told = (told or ruled.outcome.value) + (f" ({ruled.between})" if ruled.between else "")
    return Came.CONFLICT if CONFLICTS & {*verdict.reasons} else Came.REFUSED, told


def _carried_out(verdict: Verdict, ruled: Ruled | None) -> bool:
    """Whether the gate did what was ordered; of what is not about held writes alone, its decision says so."""
    wanted = None if ruled is None else WANTED.get(Action(ruled.action))
    return verdict.decision is not Decision.REJECT if ruled is None or wanted is None else ruled.outcome is wanted


def _done_words(verdict: Verdict, ruled: Ruled | None, *, texts: bool) -> str:
    if ruled is not None and ruled.outcome is CommandOutcome.NOTED:
        said = {"assignee": ruled.assignee, "claimed_by": ruled.claimed_by, "claim_until_ms": ruled.claim_until_ms}
        return note_words({**said, "note": ruled.note if texts else ""})
    if ruled is not None and Action(ruled.action) in DECIDES:
        return ruled.outcome.value
    return words(verdict.findings[-1].code) if verdict.findings else "done"


def result_of(seen: HeldReview, command: Command, answer: Answer | None) -> DecisionResult:
    """Return what a command about an entry came to, by the gate's answer (None: there is none yet)."""
    came, told = came_of(None if answer is None else answer.verdict)
    return DecisionResult(seen, command.action, command.id, came, told, None if answer is None else answer.ruled)


def decide(
    desk: HeldDesk,
    todo: DecisionPlan,
    wait_s: float,
    *,
    despite_claim: bool = False,
    clock: Clock = wall_ms,
    new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> list[DecisionResult]:
    """Sign and publish the commands of a plan, wait for their answers, and return one result an entry, in order.

    An entry whose command cannot be made (too large to be carried) is told of as not sent, and keeps no other from
    being decided. Where the broker goes away meanwhile, nobody knows what it took: those have no answer. Raises
    ConfigError where no credential signs for a tenant, and BrokerUnavailable, as long as nothing was published.
    """
    now = datetime.fromtimestamp(clock() / 1_000, UTC)
    results: dict[Name, DecisionResult] = {}
    made: list[tuple[HeldReview, Command]] = []
    for seen in todo.todo:
        try:
            command = decision(seen, todo.action, new_id(), now, todo.reason, despite_claim=despite_claim)
        except MemsluiceError as error:
            not_sent = DecisionResult(seen, todo.action, "", Came.NOT_SENT, visible(str(error)))
            results[name_of(seen.entry)] = not_sent
        else:
            made.append((seen, command))
    for tenant in dict.fromkeys(command.tenant for _, command in made):
        desk.signer(tenant)
    since = {Bookmark.at(desk.audit, tenant, PARTITIONS) for tenant in {command.tenant for _, command in made}}
    told, lost = dict[str, Answer](), ""
    try:
        commands = [command for _, command in made]
        desk.publish(commands)
        desk.settle()
        told = answers(desk.audit, desk.keys.keyring(), commands, since, wait_s, monotonic=monotonic, sleep=sleep)
    except (BrokerError, ProducerError) as error:
        lost = visible(str(error))
    for seen, command in made:
        one = result_of(seen, command, told.get(command.id))
        unheard = one.came is Came.NO_ANSWER and lost
        results[name_of(seen.entry)] = replace(one, told=f"it may be decided yet: {lost}") if unheard else one
    return [results[name_of(seen.entry)] for seen in todo.todo]


def taken_back(results: Sequence[DecisionResult], reason: str = "") -> DecisionPlan:
    """Return the plan that takes back what a run rejected, and nothing else: of no other decision is there an undo.

    Each entry is bound to the rejection of that run: where somebody decided it since, the gate refuses.
    """
    done = list(_rejected(results))
    return DecisionPlan(Action.REOPEN, reason, tuple(done), (), Differences.within(done))


def _rejected(results: Iterable[DecisionResult]) -> Iterator[HeldReview]:
    for one in results:
        if one.came is Came.DONE and one.action is Action.REJECT:
            yield replace(one.seen, state=HeldState.REJECTED, ruled=one.ruled)
