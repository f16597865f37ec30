"""Where the default detector meets a decision: a draft is screened, learned from, and looked back upon."""

from functools import partial
from typing import TYPE_CHECKING

from memsluice.envelope.seals import Admission, Sealed
from memsluice.envelope.verdict import Decision, Finding, Withdrawal
from memsluice.events.models import Recall, Tier, Write, Zone
from memsluice.gate.checks.duplicates import ENTRY
from memsluice.gate.commands import landed, protection
from memsluice.gate.detectors.calibration.conformal import count_at_least
from memsluice.gate.detectors.rarity import screen
from memsluice.gate.detectors.rarity.evidence import COLD_WRITES, G, Q
from memsluice.gate.detectors.rarity.lookback import Fate, Moved, look_back
from memsluice.gate.detectors.rarity.memory import Entry, Memory, Question, tag
from memsluice.gate.detectors.wording.classifier import Classifier
from memsluice.gate.detectors.wording.shipped import shipped
from memsluice.gate.detectors.wording.text import stems
from memsluice.gate.policy.model import Policy
from memsluice.gate.state import placement, windows
from memsluice.gate.state.rows import TenantRows

if TYPE_CHECKING:
    from memsluice.gate.decision import Draft

BUDGET = "looked"
"""Kind of the rows that count what each principal's recalls moved within a day."""
BUCKETS = 24


def on(draft: "Draft", policy: Policy) -> bool:
    """Whether the default detector decides this draft."""
    return policy.detector == "default" and draft.memory is not None and draft.vector is not None


def known(draft: "Draft") -> bool:
    """Whether enough landed to know the tenant by: until then the published patterns hold what they find."""
    return draft.memory is not None and len(draft.memory.entries) >= COLD_WRITES


def check(draft: "Draft", write: Write, policy: Policy) -> None:
    """Screen a write that would go to guidance; see :func:`memsluice.gate.detectors.rarity.screen.check`."""
    assert draft.memory is not None
    assert draft.vector is not None
    draft.seen, said, finding = screen.check(
        draft.memory,
        _model(draft),
        write,
        draft.vector,
        policy.detect,
        agent=_agent(draft.about),
        least=Decision.QUARANTINE,
    )
    draft.usual = said.usual(policy.detect)
    draft.add(finding)


def learn(draft: "Draft", rows: TenantRows, entry: Sealed, policy: Policy) -> None:
    """Remember what landed as guidance: to know what is usual, and to look back on. Released writes count too."""
    if draft.memory is None or draft.vector is None:
        return
    write, identity = entry.payload, entry.identity
    assert isinstance(write, Write)
    assert identity is not None
    reviewed, seen = draft.seen is None, draft.seen
    if seen is None:  # a reviewer let it in
        seen = screen.look(
            draft.memory, _model(draft), write.content, draft.vector, session=write.session, agent=_agent(entry)
        )
        every = len(draft.memory.entries)
        seen.values[G] = screen.weigh(seen.values, draft.memory, policy.detect, window=every).total
    vouched = identity.tier is Tier.OPERATOR or (identity.channel == "user" and identity.tier is Tier.USER_VERIFIED)
    owner = "" if reviewed or vouched else tag(write.principal)
    new = Entry(0, write.id, seen.stems, seen.exempt or reviewed or vouched, owner)
    draft.memory = draft.memory.landed(rows, new, draft.vector, seen.values)


def fed(before: Memory | None, after: Memory | None) -> Finding | None:
    """Say what an order taught: the score, and the reference before and after, in all and as high; None: nothing."""
    if before is None or after is None:
        return None
    last = [memory.entries[-1].number if memory.entries else None for memory in (before, after)]
    if last[0] == last[1]:
        return None
    score = float(after.table[-1][G])
    sizes = [len(memory.entries) for memory in (before, after)]
    as_high = [count_at_least(memory.table.column(G), score) for memory in (before, after)]
    detail = {"score": score, "reference": sizes, "reference_max": after.entries_max, "at_least_as_high": as_high}
    return Finding("detect.fed", Decision.ACCEPT, detail)


def asked(draft: "Draft", rows: TenantRows, recall: Recall, policy: Policy, now_ms: int) -> None:
    """Remember a question, and look back on what had landed; the findings and ``withdraws`` say what leaves."""
    if not on(draft, policy) or recall.zone is not Zone.GUIDANCE:
        return
    assert draft.memory is not None
    assert draft.vector is not None
    who = tag(recall.principal)
    question = Question(0, recall.id, who, (tag(recall.session),), stems(recall.question))
    taken: list[Withdrawal] = []
    if policy.detect.look_back:
        used, live = windows.count(rows, BUDGET, who, now_ms, bucket_ms=windows.HOUR_MS, buckets=BUCKETS)
        shadow = policy.mode == "shadow"
        allowed = 0 if shadow else max(policy.detect.look_back_per_day - used, 0)
        draft.memory, moved, flagged = look_back(
            draft.memory, rows, question, draft.vector, policy.detect, allowed, partial(_fate, rows)
        )
        taken = [_taken_back(rows, one.entry.event_id, recall.id) for one in moved]
        for _ in taken:
            windows.add(rows, BUDGET, who, now_ms, live, bucket_ms=windows.HOUR_MS, buckets=BUCKETS)
            _, live = windows.count(rows, BUDGET, who, now_ms, bucket_ms=windows.HOUR_MS, buckets=BUCKETS)
        for code, some in _by_code(moved, flagged, shadow=shadow).items():
            entries = [{"event": one.entry.event_id, **one.evidence.told()} for one in some]
            draft.add(Finding(code, Decision.ACCEPT, {"entries": entries}))
    draft.withdraws = tuple(taken)
    draft.memory = draft.memory.asked(rows, question, draft.vector)


def _by_code(moved: list[Moved], flagged: list[Moved], *, shadow: bool) -> dict[str, list[Moved]]:
    """Return what was moved, and what stays though the question told of it, by the code that says why."""
    found = {"detect.looked_back": moved}
    for one in flagged:
        why = "detect.look_back_quoted" if one.quoted else "detect.look_back_budget"
        why = "detect.look_back_shadow" if shadow else why
        found.setdefault("detect.look_back_protected" if one.guarded else why, []).append(one)
    return {code: some for code, some in found.items() if some}


def _fate(rows: TenantRows, event_id: str) -> Fate:
    """Return what became of an entry since it landed."""
    row = rows.get(ENTRY, event_id)
    if row is None:
        return Fate.OVER
    if not row["landed"]:
        return Fate.TAKEN
    if row.get("was") is not None:  # somebody promoted it, lifted its label or renewed it since
        return Fate.VOUCHED
    if not row.get("keyed", True):  # nobody protects or replaces what has no key
        return Fate.LIES
    if protection.guards(rows, row["object"]):
        return Fate.PROTECTED
    return Fate.OVER if landed.overtaken(rows, event_id, row) else Fate.LIES


def _taken_back(rows: TenantRows, event_id: str, recall_id: str) -> Withdrawal:
    """Keep that an entry, which lies there, is landed no more, and return what takes it out of the store.

    What names it as a parent from now on, or recalls it, is tainted. What it was is kept as ``looked``: a reviewer may
    let it in again (:mod:`memsluice.gate.commands.restoring`).
    """
    row = rows.get(ENTRY, event_id)
    gone = {"was": [row["object"], row["version"]], "ms": rows.now_ms}  # recalls of it are on their way
    looked = {"by": recall_id, **{name: row[name] for name in ("taint", "decision")}}
    after = {**row, "landed": False, "taint": True, "decision": Decision.QUARANTINE.value, "object": None}
    rows.put(ENTRY, event_id, {**after, "gone": gone, "looked": looked})
    rows.delete(placement.HOLDER, row["object"])
    return Withdrawal(row["object"], Zone(row["zone"]), event_id, row["content"])


def screened(draft: "Draft", rows: TenantRows, write: Write, policy: Policy, *, held: bool) -> None:
    """Remember whether a screened write carried a question and whether it was held, whatever became of it."""
    if draft.memory is None or draft.seen is None:
        return
    state = draft.memory.calibration.screened(
        screen.settings(policy.detect), write.id, float(draft.seen.values[G]), held=held
    )
    asking = bool(draft.seen.values[Q])
    draft.memory = draft.memory.screened(rows, asking, tag(write.principal)).calibrated(rows, state)


def _model(draft: "Draft") -> Classifier:
    return shipped() if draft.model is None else draft.model


def _agent(entry: Sealed | Admission | None) -> bool:
    return isinstance(entry, Sealed) and entry.identity is not None and entry.identity.channel == "agent"
