"""What the default detector costs: the time of a whole decision, and the bytes of a remembered question."""

import time
from collections.abc import Iterable, Sequence
from copy import deepcopy
from itertools import cycle, islice

import numpy as np
from numpy.typing import NDArray

from memsluice.envelope.codec import Vector
from memsluice.envelope.seals import Sealed, sealed_from_bytes
from memsluice.envelope.verdict import Decision
from memsluice.errors import StateError
from memsluice.events.models import Recall, Tier, Write
from memsluice.gate.checks import placing
from memsluice.gate.decide import Context, decide
from memsluice.gate.decision import TenantState
from memsluice.gate.detectors.memsad.state import MemsadState
from memsluice.gate.detectors.rarity.evidence import G
from memsluice.gate.detectors.rarity.memory import KeptEntry, KeptQuestion, Memory
from memsluice.gate.detectors.rarity.screen import look, weigh
from memsluice.gate.detectors.wording.shipped import shipped
from memsluice.gate.detectors.wording.text import stems, words
from memsluice.gate.policy import model as policies
from memsluice.gate.policy.model import Policy
from memsluice.gate.state.kinds import QUESTION
from memsluice.gate.state.lineage import Label, keep_lineage
from memsluice.gate.state.rows import TenantRows, encode_changes
from memsluice.gate.state.tags import tag
from memsluice_lab.figures.core import Dictionary, screened
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting

KEPT = (1_000, 10_000)
ENTRIES = 1_000
GOAL_US = {1_000: 300, 10_000: 600}
QUANTILES = {0.5: "median", 0.99: "p99", 1.0: "most"}
PASSES = 15
WEAVES_MAX = 200_000
Times = dict[str, NDArray[np.float64]]


def decision_us(setting: Setting) -> Measured:
    """CPU µs of a decision and of its rows' bytes, at 1,000 kept questions: the median pass of the dearer kind."""
    every = _sealed(setting)
    value, table, loop_ms = 0.0, list[tuple[str, str]](), list[float]()
    for kept in KEPT:
        times = _timed(every, kept, setting, loop_ms)
        for kind, took in times.items():
            table.append((f"{kind} at {kept:,} questions", _told(took)))
        dearest = max(map(_usual, times.values()))
        table.append((f"goal at {kept:,}", f"{GOAL_US[kept]} µs: {'met' if dearest <= GOAL_US[kept] else 'missed'}"))
        value = dearest if kept == KEPT[0] else value
    for kind, took in _timed(every, KEPT[0], setting, loop_ms, unread=True).items():
        table.append((f"{kind} of which no check reads text or vector: the rest of a decision", _told(took)))
    spread = f"{min(loop_ms):.0f} ms least, {np.median(loop_ms):.0f} median, {max(loop_ms):.0f} most"
    table.append(("this machine: a million additions in a Python loop, after each pass", spread))
    return Measured(value, tuple(table))


def _usual(took: NDArray[np.float64]) -> float:
    """Return the mean of the median pass."""
    return float(np.median(took.mean(axis=1)))


def _told(took: NDArray[np.float64]) -> str:
    middle = took[np.argsort(took.mean(axis=1))[len(took) // 2]]
    shares = ", ".join(f"{np.quantile(middle, share):.0f} {name}" for share, name in QUANTILES.items())
    least = took.min(axis=0).mean()
    return f"{_usual(took):.0f} µs mean, {shares}, of {len(middle):,}; {least:.0f} were each at its fastest"


def _loop_ms() -> float:
    """Return what tells this machine, at this hour, from another: the CPU ms of a loop of a million additions."""
    began, total = time.process_time_ns(), 0
    for number in range(1_000_000):
        total += number
    return (time.process_time_ns() - began) / 1e6


def recall_row_bytes(setting: Setting) -> Measured:
    """Bytes of the largest row, key included, that a remembered question takes, of all questions of the streams."""
    sizes = list[int]()
    policy = policies.default().default
    for events in _sealed(setting):
        rows, memsad, memory = Dictionary(), MemsadState.empty(policy.memsad), _empty(policy)
        for offset, sealed in enumerate(events):
            outcome = decide(TenantState(rows, memsad, memory), sealed, policy, _context(sealed, offset))
            memory = outcome.memory or memory
            some = {
                name: row
                for name, row in outcome.changes.items()
                if name[0] == QUESTION.name and name[1].startswith(QUESTION.prefix)
            }
            changed = encode_changes(sealed.tenant, some)
            sizes += [len(key) + len(value) for key, value in changed if value is not None]
            _apply(rows, sealed.tenant, outcome.changes)
    if not sizes:
        raise StateError("no stream asked a question")
    spread = np.array(sizes)
    table = (("questions", f"{len(sizes):,}"), ("mean, median", f"{spread.mean():.0f}, {np.median(spread):.0f}"))
    return Measured(float(spread.max()), table)


def _sealed(setting: Setting) -> list[list[Sealed]]:
    with streams(setting) as paths:
        return [
            [sealed_from_bytes(keyring, (record.key or b"").decode(), record.value or b"") for record in screen.given]
            for screen, keyring in screened(paths, setting)
        ]


def _timed(
    every: Sequence[Sequence[Sealed]], kept: int, setting: Setting, loop_ms: list[float], *, unread: bool = False
) -> Times:
    """Decide each stream on top of what all the others left. Return µs by kind of event, shape (PASSES, events).

    All streams are decided before any is decided again, because a shared machine is busy for minutes. ``loop_ms`` is
    told how fast it was after each pass. With ``unread`` all that reads a text or a vector is off: what is left is
    identity, provenance, sessions, lineage, rates, rows and the verdict, and of a recall what MEMSAD remembers of it.
    """
    shipping = policies.default().default
    detect = shipping.detect.model_copy(update={"questions": kept, "entries": ENTRIES})
    policy = shipping if detect == shipping.detect else shipping.model_copy(update={"detect": detect})
    filled = list[tuple[Dictionary, MemsadState, Memory | None]]()
    for number, events in enumerate(every):
        others = [sealed for at, some in enumerate(every) if at != number for sealed in some]
        rows = Dictionary()
        memsad, memory = _filled(others, policy, rows, events[0].tenant)
        filled.append((rows, memsad, None if unread else memory))
    policy = policy.model_copy(update=reads_nothing(policy)) if unread else policy
    passes = list[Times]()
    for number in range(PASSES):
        took = [_pass(events, policy, *deepcopy(state)) for events, state in zip(every, filled, strict=True)]
        passes.append({kind: np.concatenate([one[kind] for one in took]) for kind in took[0]})
        loop_ms.append(_loop_ms())
        setting.say(f"{kept:,} questions: pass {number + 1} of {PASSES}")
    return {kind: np.array([one[kind] for one in passes]) for kind in passes[0]}


def reads_nothing(policy: Policy) -> dict[str, object]:
    """Return what a policy is changed to for no check to read a text or a vector, where there is no ``memory``."""
    off = {"enabled": False}
    return {
        "detector": "memsad",
        "memsad": policy.memsad.model_copy(update={**off, "frozen": True}),
        "instructions": policy.instructions.model_copy(update=off),
        "graph": policy.graph.model_copy(update={"action": "ignore"}),
        "drift": policy.drift.model_copy(update={"action": "ignore"}),
    }


def _pass(
    events: Sequence[Sealed], policy: Policy, rows: Dictionary, memsad: MemsadState, memory: Memory | None
) -> Times:
    """Decide a stream once, each event on what the ones before it left. Return CPU µs, of all threads, by kind."""
    took = dict[str, list[float]](writes=[], recalls=[])
    for offset, sealed in enumerate(events):
        state, context = TenantState(rows, memsad, memory), _context(sealed, offset)
        began = time.process_time_ns()
        outcome = decide(state, sealed, policy, context)
        changed = encode_changes(sealed.tenant, outcome.changes)
        spent = (time.process_time_ns() - began) / 1_000
        if isinstance(sealed.payload, Write | Recall):
            took["writes" if isinstance(sealed.payload, Write) else "recalls"].append(spent)
        memsad, memory = outcome.memsad, outcome.memory or memory
        _put(rows, changed)
    return {kind: np.array(some) for kind, some in took.items()}


def _filled(others: Sequence[Sealed], policy: Policy, kept: Dictionary, tenant: str) -> tuple[MemsadState, Memory]:
    """Return full memories: the others' questions, between any two of them where there are too few, and their writes.

    What lies between two questions has the direction of both and the words of both by turns. The rows, which look back
    asks for, are those that the events would have left for the tenant.
    """
    rows, memsad, memory = TenantRows(kept, tenant, 0), MemsadState.empty(policy.memsad), _empty(policy)
    asked = [(sealed.payload, sealed.vector()) for sealed in others if isinstance(sealed.payload, Recall)]
    written = [sealed for sealed in others if isinstance(sealed.payload, Write)]
    if not asked or not written:
        raise StateError("the streams have no questions or no writes")
    step = 0
    while len(memory.questions) < policy.detect.questions:
        first, second = asked[step % len(asked)], asked[(step + step // len(asked)) % len(asked)]
        step += 1
        if step > WEAVES_MAX:
            raise StateError(f"the streams' questions are too few or too alike to make {policy.detect.questions:,}")
        if first[1] is None or second[1] is None:
            continue
        both = first[0].question if first is second else _woven(first[0].question, second[0].question)
        question = KeptQuestion(0, f"r{step}", tag(first[0].principal), (tag(first[0].session),), stems(both))
        between = _unit(first[1] + second[1])
        memory = memory.asked(rows, question, between)
        memsad = memsad.asked(rows, between, question.event_id)
    clean = Label(False, (), Tier.USER_OBSERVED)
    for sealed in islice(cycle(written), ENTRIES):
        write, vector = sealed.payload, sealed.vector()
        assert isinstance(write, Write)
        if vector is None:
            continue
        wording = shipped().judge(write.content, sealed.wording).score
        seen = look(memory, wording, write.content, vector, session=write.session, agent=False)
        seen.values[G] = weigh(seen.values, memory, policy.detect).total
        memory = memory.landed(
            rows, KeptEntry(0, write.id, seen.stems, False, tag(write.principal)), vector, seen.values
        )
        memsad = memsad.learned(rows, vector)
        where = placing.place(write, clean, Decision.ACCEPT, policy, sealed.position.append_ms)
        keep_lineage(rows, sealed, clean, Decision.ACCEPT, where, 0, None)
    _apply(kept, tenant, rows.changes)
    return memsad, memory


def _woven(first: str, second: str) -> str:
    return " ".join(word for pair in zip(words(first), words(second), strict=False) for word in pair)


def _unit(vector: Vector) -> Vector:
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def _empty(policy: Policy) -> Memory:
    return Memory.empty(policy.detect.questions, policy.detect.entries)


def _context(sealed: Sealed, offset: int) -> Context:
    return Context(sealed.position.append_ms, offset, seal_kid="seal", admission_kid="admission")


def _apply(rows: Dictionary, tenant: str, changes: dict[tuple[str, str], object]) -> None:
    _put(rows, encode_changes(tenant, changes))


def _put(rows: Dictionary, changed: Iterable[tuple[bytes, bytes | None]]) -> None:
    for key, value in changed:
        if value is None:
            rows.values.pop(key, None)
        else:
            rows.values[key] = value
