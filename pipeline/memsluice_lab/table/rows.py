"""The rows of the tables, declared: a policy, a change of the streams, seeds. None of it is code of the gate.

In order of how much they tell, so that a run that is stopped has measured the best of them.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any

from memsluice.envelope.codec import canonical
from memsluice.errors import ConfigError
from memsluice.gate.policy import model as policies
from memsluice.gate.policy.model import SIGNALS, Policy
from memsluice_lab.rewrites import REWRITES

SEEDS = (7, 8, 9)
ONE = SEEDS[:1]
"""The seed of the streams as they come."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row. ``policy`` is laid over the policy that ships.

    ``focus`` are measures that this row is about, shown beside the common ones.
    """

    name: str
    section: str
    title: str
    policy: Mapping[str, Any] = field(default_factory=dict)
    change: str = "none"
    seeds: tuple[int, ...] = ONE
    focus: tuple[str, ...] = field(default=())

    def in_force(self) -> Policy:
        """Return the policy. Raises PolicyError where the row asks for one that there is not."""
        return policies.laid_over(policies.default().default, self.policy)

    def digest(self) -> str:
        """Return 16 digits that change whenever the row asks for something else; words for people do not count."""
        asked = {key: value for key, value in asdict(self).items() if key not in ("title", "section", "focus", "seeds")}
        asked["policy"] = self.in_force().model_dump(mode="json")
        return sha256(canonical(asked)).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Section:
    """A table: its heading and what to know about it."""

    name: str
    title: str
    about: str


CALIBRATIONS = ("fixed", "rolling", "ewma", "page_hinkley", "adwin", "m_star", "conformal")
ADAPTIVE = {"detect": {"calibration": {"strategy": "conformal", "gamma": 0.005, "credit": True}}}
FIXED = {"calibration": {"strategy": "fixed"}}
MEMSAD = {"detector": "memsad", "memsad": FIXED}
PROVENANCE = {"detector": "memsad", "memsad": {"enabled": False}, "instructions": {"enabled": False}}
ONLY_MEMSAD = {**MEMSAD, "instructions": {"enabled": False}}


def _memsad(name: str, title: str, **changes: Any) -> Row:
    return Row(f"memsad-{name}", "memsad", title, {**ONLY_MEMSAD, "memsad": {**FIXED, **changes}})


def _calibrated(strategy: str) -> tuple[Row, Row]:
    """Return MEMSAD with another calibration on the streams as they are, and over a change of topic."""
    adaptive = {"gamma": 0.005, "credit": True} if strategy == "conformal" else {}
    policy = {**ONLY_MEMSAD, "memsad": {"calibration": {"strategy": strategy, **adaptive}}}
    title = f"calibration {strategy}"
    return (
        Row(f"memsad-{strategy}", "memsad", title, policy),
        Row(f"other-topic-{strategy}", "drift", f"MEMSAD, {title}", policy, change="other topic", focus=_DRIFT),
    )


def _alone(signal: str) -> Row:
    return Row(f"only-{signal}", "signals", f"{signal} alone", {"detect": {"signals": [signal]}})


def _budget(alpha: float) -> Row:
    return Row(f"alpha-{alpha:g}", "budgets", f"α = {alpha:g} %", {"detect": {"alpha": alpha / 100}})


def _budget_alone(alpha: float) -> Row:
    policy = {"detect": {"alpha": alpha / 100, "threshold": 0.05}}
    return Row(f"alpha-alone-{alpha:g}", "budgets", f"α = {alpha:g} %, no threshold", policy)


def _threshold(threshold: float) -> Row:
    policy = {"detect": {"threshold": threshold}}
    return Row(f"threshold-{threshold:g}", "budgets", f"α = 2 %, threshold {threshold:g}", policy)


def _rewrite(rule: str) -> Row:
    return Row(f"rewrite-{rule}", "rewrites", REWRITES[rule][1], change=f"rewrite {rule}", focus=("WHOLE all",))


def _prepared(what: str, share: int, title: str) -> Row:
    return Row(f"{what}-{share}", "poisoning", f"{share} % {title}", change=f"{what} {share}", focus=_MOVED)


_HARD = tuple(f"HELD category added {kind}" for kind in ("preference", "cached answer", "quoted question", "e-mail"))
_MOVED = ("MOVED all",)
_DRIFT = tuple(
    f"{measure} phase {when}" for measure in ("HELD", "FPR") for when in ("before", "first 100 after", "later")
)
_COLD = ("HELD writes 1-30", "HELD writes 31-100", "HELD writes 101-300", "HELD writes 301-")

SECTIONS = (
    Section(
        "systems",
        "Systems",
        "Provenance alone contains what outside sources wrote and what was written after something outside was seen. "
        "The other rows are that and a detector.",
    ),
    Section("signals", "Signals: taken away, and alone", "A switch of the policy (`detect.signals`), the same code."),
    Section("scopes", "Provenance and look back", "How much of a session taints, and what recalls change."),
    Section(
        "rewrites",
        "Attackers who reword",
        "Every attack of the streams, through one rule each; what an honest agent launders is seen in the same words. "
        "The rules are crude and self-made (`memsluice_lab/rewrites.py`): tables of a few hundred words, no language "
        "model. Whether the reworded attack still works on its victim is not asked; many would not. An attack that is "
        "split counts write by write in KEPT and REACH; *whole* are attacks of which every part stands in guidance.",
    ),
    Section(
        "hard",
        "Hard negatives",
        "Fifteen each of four kinds of honest writes, self-made and added to every stream as a user's: preferences, "
        "answers cached without lineage, questions quoted in a note, e-mails. They come of 25 preferences, 8 e-mails, "
        "and 4 and 5 frames for the others: the intervals count writes, and are too narrow for that.",
    ),
    Section(
        "poisoning",
        "Attackers who prepare: copied recalls, slow poisoning",
        "Somebody has a share of the recalls and asks honest entries' own words, so that look back takes them away; or "
        "a share of the writes, harmless ones that shift what is usual (a fourth each: questions, repetitions, mild "
        "requests, words near past questions). Those writes are not among the attacks counted; MOVED are honest writes "
        "that look back took away.",
    ),
    Section(
        "drift",
        "A change of topic",
        "Two streams after each other as one tenant, honest writes alone: two conversations, or a conversation and a "
        "tenant of factoid notes.",
    ),
    Section("budgets", "Budgets", "A write is held where its evidence reaches the threshold (1.4) and p is below α."),
    Section("memsad", "MEMSAD, with provenance and without the patterns", "N = 50, κ = 2, 100 questions, combined."),
    Section(
        "cold",
        "Cold start",
        "The streams as they come begin with a fifth of honest writes; here every stream begins at its first attack.",
    ),
)

DECLARED = (
    Row("default", "systems", "default detector", seeds=SEEDS),
    Row("provenance", "systems", "provenance alone", PROVENANCE, seeds=SEEDS),
    Row("published", "systems", "MEMSAD as published and the patterns", MEMSAD, seeds=SEEDS),
    Row("only-memsad", "systems", "MEMSAD as published", ONLY_MEMSAD),
    Row("only-patterns", "systems", "the patterns", {"detector": "memsad", "memsad": {"enabled": False}}),
    *(
        Row(f"no-{name}", "signals", f"without {name}", {"detect": {"signals": [s for s in SIGNALS if s != name]}})
        for name in SIGNALS
    ),
    Row("no-look-back", "scopes", "without look back", {"detect": {"look_back": False}}),
    *(_rewrite(rule) for rule in REWRITES),
    Row("hard-negatives", "hard", "default detector", change="hard negatives", focus=_HARD),
    Row("hard-negatives-published", "hard", "MEMSAD and the patterns", MEMSAD, change="hard negatives", focus=_HARD),
    *(_prepared("copying", share, "of the recalls are copies of honest entries") for share in (20, 5)),
    *(_prepared("poisoning", share, "of the writes shift what is usual") for share in (20, 5)),
    Row("other-topic", "drift", "two conversations", change="other topic", focus=_DRIFT),
    Row("other-kind", "drift", "a conversation, then notes", change="other kind", focus=_DRIFT),
    Row("influence", "scopes", "taint by influence", {"taint": "influence"}, seeds=SEEDS),
    *(_budget(alpha) for alpha in (0.2, 0.5, 1, 2, 5)),
    *(_alone(name) for name in SIGNALS),
    Row("cold", "cold", "default detector", change="cold", focus=_COLD),
    Row("cold-published", "cold", "MEMSAD and the patterns", MEMSAD, change="cold", focus=_COLD),
    *(_budget_alone(alpha) for alpha in (0.2, 0.5, 1, 2, 5)),
    *(_threshold(value) for value in (0.5, 1, 2, 3)),
    Row("adaptive", "budgets", "α = 2 %, adaptive level and credit", ADAPTIVE),
    Row("adaptive-poisoning-20", "poisoning", "20 %, adaptive level, credit", ADAPTIVE, "poisoning 20", focus=_MOVED),
    _memsad("max", "score s_max", mode="max"),
    _memsad("mean", "score s_mean", mode="mean"),
    *(_memsad(f"kappa-{kappa:g}", f"κ = {kappa:g}", kappa=kappa) for kappa in (1, 1.5, 3)),
    *(_memsad(f"n-{size}", f"N = {size}", reference_size=size) for size in (25, 100, 200)),
    _memsad("history", "1,000 questions instead of 100", history_size=1_000),
    _memsad("plus", "MEMSAD+", variant="memsad_plus"),
    _memsad("composite", "composite (Appendix C), no watermark", variant="composite"),
    _memsad("weighted", "weighted sum (Section 5), no watermark", variant="weighted"),
    *(row for name in CALIBRATIONS for row in _calibrated(name) if row.name != "memsad-fixed"),  # that is only-memsad
    Row("taint-turn", "scopes", "taint of the present turn", {"taint": "turn"}),
    Row("taint-parents", "scopes", "taint of declared parents only", {"taint": "parents"}),
)

ROWS: dict[str, Row] = {row.name: row for row in DECLARED}


def chosen(names: tuple[str, ...]) -> list[Row]:
    """Return the rows of these names, or sections, in the order of the registry; all for none. Raises ConfigError."""
    known = {*ROWS, *(section.name for section in SECTIONS)}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ConfigError(f"there is no row or section {unknown[0]!r}; --list names them")
    return [row for row in ROWS.values() if not names or row.name in names or row.section in names]
