"""Figures of the calibration: what it keeps of a tenant, and MEMSAD beside a plain transcription of the paper."""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memsluice.envelope.seals import Sealed, sealed_from_bytes
from memsluice.envelope.verdict import Decision, Score
from memsluice.errors import StateError
from memsluice.events.models import Recall, Write
from memsluice.gate.detectors.memsad.check import check, learned
from memsluice.gate.detectors.memsad.state import KIND as MEMSAD
from memsluice.gate.detectors.memsad.state import QUESTION, MemsadState
from memsluice.gate.policy import model as policies
from memsluice.gate.policy.model import MemsadPolicy
from memsluice.gate.state.rows import TenantRows
from memsluice_lab.figures.core import Dictionary, screened
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting

DETECT = "detect"
ROUNDS = 3
SAME = 1e-5
"""Largest difference between the scores of the two: ours are rounded to six digits."""
Vector = NDArray[np.floating]


def calibration_kib(setting: Setting) -> Measured:
    """Largest calibration state of a tenant: that of the detector which decides and of the one reported beside it."""
    window = policies.default().default.detect.window
    tenants: dict[str, dict[str, int]] = {}
    with streams(setting) as paths:
        for screen, _ in screened(paths, setting):
            for name, sizes in _sizes(screen.state, window).items():
                tenants[f"{name}, stream {len(tenants) + 1}"] = sizes
    if not tenants:
        raise StateError("no stream left a state")
    most = {kind: max(sizes[kind] for sizes in tenants.values()) for kind in (DETECT, MEMSAD)}
    whole = max(sum(sizes.values()) for sizes in tenants.values())
    table = (
        ("tenants", str(len(tenants))),
        (
            f"default detector: values of {window} landed writes, habit, level",
            f"{most[DETECT] / 1024:.1f} KiB",
        ),
        ("MEMSAD: reference vectors, scores, baseline", f"{most[MEMSAD] / 1024:.1f} KiB"),
    )
    return Measured(whole / 1024, table)


def _sizes(state: dict[bytes, bytes], window: int) -> dict[str, dict[str, int]]:
    """Return bytes of keys and values of each tenant's calibration rows, by detector. Questions are recall memory."""
    found: dict[str, dict[str, int]] = {}
    values: dict[str, list[tuple[int, int]]] = {}
    for key, value in state.items():
        tenant, kind, name = key.decode("utf-8", "replace").split("\0", 2)
        size = len(key) + len(value)
        if kind == MEMSAD and name[0] != QUESTION:
            _counted(found, tenant)[MEMSAD] += size
        elif kind == DETECT and name[0] in "hc":
            _counted(found, tenant)[DETECT] += size
        elif kind == DETECT and name[0] == "v":
            values.setdefault(tenant, []).append((int(name[1:]), size))
    for tenant, sizes in values.items():  # older values are what look back goes by, not what is usual
        _counted(found, tenant)[DETECT] += sum(size for _, size in sorted(sizes)[-window:])
    return found


def _counted(found: dict[str, dict[str, int]], tenant: str) -> dict[str, int]:
    return found.setdefault(tenant, {DETECT: 0, MEMSAD: 0})


@dataclass
class Plain:
    """Algorithm 1 and Definition 6 of seed 000, written down as they stand; the yardstick, and used for nothing else.

    mu and sigma are those of the present history: computed for every candidate, as the definition reads, or (``lazy``)
    only where a question or a reference entry came since.
    """

    policy: MemsadPolicy
    lazy: bool = False
    history: deque[Vector] = field(default_factory=deque)
    reference: list[Vector] = field(default_factory=list)
    threshold: float | None = None

    def asked(self, question: Vector) -> None:
        """Append to the FIFO history."""
        if len(self.history) >= self.policy.history_size:
            self.history.popleft()
        self.history.append(question)
        self.threshold = None

    def score(self, candidate: Vector) -> float:
        """Return s_comb (Equation 7)."""
        questions = np.array(self.history)
        cosines = questions @ candidate / (np.linalg.norm(questions, axis=1) * np.linalg.norm(candidate))
        return float(0.5 * np.max(cosines) + 0.5 * np.mean(cosines))

    def learned(self, entry: Vector) -> None:
        """Take an entry into the reference set, up to N of them."""
        if len(self.reference) < self.policy.reference_size:
            self.reference.append(entry)
            self.threshold = None

    def check(self, candidate: Vector) -> tuple[float, bool]:
        """Return the score, and whether it is above mu + kappa sigma."""
        score = self.score(candidate)
        if len(self.reference) < self.policy.reference_size:
            return score, score > self.policy.cold_threshold
        if self.threshold is None or not self.lazy:
            scores = np.array([self.score(entry) for entry in self.reference])
            self.threshold = float(np.mean(scores) + self.policy.kappa * np.std(scores, ddof=1))
        return score, score > self.threshold


def memsad_speedup(setting: Setting) -> Measured:
    """CPU time of the plain transcription over ours, on the vectors of the real streams, questions included.

    Algorithm 1 is given mu and sigma: so the transcription works them out where they changed, not for each candidate.
    """
    policy = policies.default().default.memsad
    spent, writes = np.zeros((ROUNDS, 3)), 0
    with streams(setting) as paths:
        for screen, keyring in screened(paths, setting):
            events = [sealed_from_bytes(keyring, (r.key or b"").decode(), r.value or b"") for r in screen.given]
            for number in range(ROUNDS):
                seconds, scored = side_by_side(events, policy)
                spent[number] += seconds
            writes += scored
    if not writes:
        raise StateError("no write of the streams was scored")
    each = 1e6 * np.median(spent, axis=0) / writes
    eager = spent[:, 0] / spent[:, 2]
    table = (
        ("writes scored", f"{writes:,} in each of {ROUNDS} rounds"),
        ("plain transcription, calibrating where the history or the reference changed", f"{each[1]:.0f} µs a write"),
        ("plain, calibrating for every candidate", f"{each[0]:.0f} µs, {np.median(eager):.1f} times ours"),
        ("ours, state rows included", f"{each[2]:.0f} µs"),
    )
    return Measured(float(np.median(spent[:, 1] / spent[:, 2])), table)


def side_by_side(events: Sequence[Sealed], policy: MemsadPolicy) -> tuple[list[float], int]:
    """Let each decide a stream as a whole, one after the other. Return CPU seconds of plain, lazy, ours; writes scored.

    Event by event in turn, each would find its own arrays pushed out of the processor's cache by the others'. All learn
    from what ours lets through. Raises StateError where they disagree on a score or on what is held.
    """
    given = [(sealed.payload, sealed.vector()) for sealed in events if not sealed.problem]
    began, state, rows, told = time.process_time(), MemsadState.empty(policy), TenantRows(Dictionary(), "figure", 0), []
    for payload, vector in given:
        if isinstance(payload, Recall) and vector is not None:
            state = state.asked(rows, vector, payload.id)
        elif isinstance(payload, Write) and vector is not None and len(state.history):
            score, found = check(state, vector, policy, Decision.QUARANTINE)
            told.append((score, bool(found)))
            if not found:
                state = learned(state, rows, payload.id, payload.content, vector, policy)
        rows.changes.clear()
    spent = [time.process_time() - began]
    for one in (Plain(policy, lazy=True), Plain(policy)):
        began, said = time.process_time(), list[tuple[float, bool]]()
        for payload, vector in given:
            if isinstance(payload, Recall) and vector is not None:
                one.asked(vector)
            elif isinstance(payload, Write) and vector is not None and one.history:
                held = told[len(said)][1]
                said.append(one.check(vector))
                if not held:
                    one.learned(vector)
        spent.insert(0, time.process_time() - began)
        for its, (score, held) in zip(said, told, strict=True):
            _agree(its, score, held=held)
    return spent, len(told)


def _agree(said: tuple[float, bool], score: Score, *, held: bool) -> None:
    assert score.score is not None
    assert score.threshold is not None
    near = abs(score.score - score.threshold) < SAME
    if abs(said[0] - score.score) > SAME or (said[1] != held and not near):
        raise StateError(f"the transcription says {said}, the gate {score}")
