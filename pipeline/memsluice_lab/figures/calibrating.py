"""Figures of the calibration: what it keeps of a tenant, and MEMSAD beside the paper's algorithm in NumPy."""

import time
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from memsluice.envelope.codec import DIMENSIONS
from memsluice.envelope.seals import Sealed, sealed_from_bytes
from memsluice.envelope.verdict import Decision, Score
from memsluice.errors import StateError
from memsluice.events.models import Recall, Write
from memsluice.gate.detectors.memsad.check import check, learned
from memsluice.gate.detectors.memsad.state import MemsadState
from memsluice.gate.policy import model as policies
from memsluice.gate.policy.model import CalibrationPolicy, MemsadPolicy
from memsluice.gate.state.kinds import ASKED, LANDED
from memsluice.gate.state.rows import TenantRows
from memsluice_lab.figures.core import Dictionary, screened
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting

DETECT, MEMSAD = LANDED.name, ASKED.name
ROUNDS = 3
SAME = 1e-5
"""Largest difference between the scores of the two: ours are rounded to six digits."""
Vector = NDArray[np.float32]


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
        if kind == MEMSAD and name[0] != ASKED.prefix:
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


class Vectorised:
    """Algorithm 1 and Definition 6 of seed 000 written well with NumPy; the yardstick, used for nothing else.

    Questions and reference entries are unit vectors in matrices, each put in once; scores are one product of matrices;
    mu and sigma are worked out again where a question or a reference entry came since, as Algorithm 1 is given them.
    """

    def __init__(self, policy: MemsadPolicy) -> None:
        self.policy = policy
        self.asked_total = 0
        self.learned_total = 0
        self._history = np.zeros((policy.history_size, DIMENSIONS), np.float32)
        self._reference = np.zeros((policy.reference_size, DIMENSIONS), np.float32)
        self._threshold: float | None = None

    def asked(self, question: Vector) -> None:
        """Take the oldest question's place in the FIFO history."""
        self._history[self.asked_total % len(self._history)] = question / np.linalg.norm(question)
        self.asked_total += 1
        self._threshold = None

    def learned(self, entry: Vector) -> None:
        """Take an entry into the reference set, up to N of them."""
        if self.learned_total < len(self._reference):
            self._reference[self.learned_total] = entry / np.linalg.norm(entry)
            self.learned_total += 1
            self._threshold = None

    def scores(self, candidates: Vector) -> Vector:
        """Return s_comb (Equation 7) of each row, or of one vector."""
        cosines = candidates @ self._history[: self.asked_total].T
        return np.asarray(0.5 * cosines.max(axis=-1) + 0.5 * cosines.mean(axis=-1), np.float32)

    def threshold(self) -> float:
        """Return mu + kappa sigma of the present history, or the prior while the reference set is not full."""
        if self.learned_total < len(self._reference):
            return self.policy.cold_threshold
        if self._threshold is None:
            scores = self.scores(self._reference)
            self._threshold = float(scores.mean() + self.policy.kappa * scores.std(ddof=1))
        return self._threshold


def as_published(policy: MemsadPolicy) -> MemsadPolicy:
    """Return the settings with Definition 6's calibration, which is what NumPy is given to do."""
    return policy.model_copy(update={"calibration": CalibrationPolicy(strategy="fixed")})


Event = tuple[bool, Vector]
"""Whether it is a write (else a recall), and its vector."""


def one_by_one(events: Sequence[Event], held: Sequence[bool], policy: MemsadPolicy) -> list[tuple[float, bool]]:
    """Score each write when it comes, as a gate must."""
    state, said = Vectorised(policy), list[tuple[float, bool]]()
    for is_write, vector in events:
        if not is_write:
            state.asked(vector)
        elif state.asked_total:
            score = float(state.scores(vector / np.linalg.norm(vector)))
            said.append((score, score > state.threshold()))
            if not held[len(said) - 1]:
                state.learned(vector)
    return said


def in_batches(events: Sequence[Event], held: Sequence[bool], policy: MemsadPolicy) -> list[tuple[float, bool]]:
    """Score all writes between two questions at once, as only one who knows them all beforehand can."""
    state, said = Vectorised(policy), list[tuple[float, bool]]()
    for is_write, some in groupby(events, key=itemgetter(0)):
        vectors = [vector for _, vector in some]
        if not is_write:
            for vector in vectors:
                state.asked(vector)
        elif state.asked_total:
            candidates = np.array(vectors)
            candidates /= np.linalg.norm(candidates, axis=1, keepdims=True)
            for vector, score in zip(vectors, state.scores(candidates).tolist(), strict=True):
                said.append((score, score > state.threshold()))
                if not held[len(said) - 1]:
                    state.learned(vector)
    return said


def memsad_speedup(setting: Setting) -> Measured:
    """CPU time of MEMSAD in vectorised NumPy, the faster of two ways, over ours, on the vectors of the real streams."""
    policy = as_published(policies.default().default.memsad)
    spent, writes = np.zeros((ROUNDS, 3)), 0
    with streams(setting) as paths:
        for screen, keyring in screened(paths, setting):
            events = [sealed_from_bytes(keyring, (r.key or b"").decode(), r.value or b"") for r in screen.given]
            for number in range(ROUNDS):
                with threadpool_limits(1):
                    seconds, scored = side_by_side(events, policy)
                spent[number] += seconds
            writes += scored
    if not writes:
        raise StateError("no write of the streams was scored")
    each = 1e6 * np.median(spent, axis=0) / writes
    table = (
        ("writes scored", f"{writes:,} in each of {ROUNDS} rounds"),
        ("NumPy, each write when it comes", f"{each[0]:.1f} µs a write"),
        ("NumPy, all writes between two questions at once", f"{each[1]:.1f} µs a write"),
        ("ours, state rows, nearest question and guarantees included", f"{each[2]:.1f} µs a write"),
    )
    return Measured(float(np.median(spent[:, :2].min(axis=1) / spent[:, 2])), table, (_SPEEDUP_NOTE,))


_SPEEDUP_NOTE = (
    "All on one thread. Both NumPy ways keep unit vectors in matrices and calibrate where the history or the reference "
    "changed; neither writes state rows, names the nearest question or says what Theorem 11 and Lemma 8 guarantee."
)


def side_by_side(events: Sequence[Sealed], policy: MemsadPolicy) -> tuple[list[float], int]:
    """Let each decide a stream as a whole, one after the other. Return CPU seconds: both NumPy ways, ours; and writes.

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
    plain = [
        (isinstance(payload, Write), vector)
        for payload, vector in given
        if isinstance(payload, Write | Recall) and vector is not None
    ]
    held = [said for _, said in told]
    for way in (in_batches, one_by_one):
        began = time.process_time()
        said = way(plain, held, policy)
        spent.insert(0, time.process_time() - began)
        for its, (score, was_held) in zip(said, told, strict=True):
            _agree(its, score, held=was_held)
    return spent, len(told)


def _agree(said: tuple[float, bool], score: Score, *, held: bool) -> None:
    assert score.score is not None
    assert score.threshold is not None
    near = abs(score.score - score.threshold) < SAME
    if abs(said[0] - score.score) > SAME or (said[1] != held and not near):
        raise StateError(f"NumPy says {said}, the gate {score}")
