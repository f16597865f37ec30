"""Whether a smoothed recall keeps its certificate, against an attacker who wins every run that shows him."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from scipy.stats import binomtest

from memsluice.envelope.seals import Admission
from memsluice.events.models import Tier, Visibility, Zone
from memsluice.recall.reader import VerifiedEntry
from memsluice.recall.smoothing.certificate import Plan
from memsluice.recall.smoothing.drawing import Strata, by_entry, drawn
from memsluice.recall.smoothing.voting import Verdict, by_string, by_verdict
from memsluice.recall.wanted import Nearest, NearestAuthors, Wanted, by_author
from memsluice_lab.figures.registry import Measured, Setting

SETTINGS, TRIALS, SEED = 50, 10_000, 20_26
LEVEL = 0.01
"""Family-wise: of all tests together, the chance that any rejects a bound that holds."""
HOSTILE_MAX, EACH_MAX, WRITES_MAX = 6, 3, 40
PAPER = Plan(pool=20, shown=5, runs=5)
CROWDS = (1, 2, 5, 10, 40)
"""Entries that one attacker writes, for the comparison of the two draws."""
HOSTILE = "mallory"
TRUTHS = ("500 euros", "up to 500 euros", "EUR 500", "five hundred euros", "no more than 500 euros")


@dataclass(frozen=True, slots=True)
class Case:
    """One setting: a plan, what was recalled as strata, and how many of those are hostile."""

    name: str
    plan: Plan
    strata: Strata[VerifiedEntry]
    hostile: int

    @property
    def delta(self) -> float:
        """The certificate for it."""
        return self.plan.delta(self.hostile, len(self.strata))


def smsr_bound_violations(setting: Setting) -> Measured:
    """How many settings show more attacks that win than their certificate allows, by an exact one-sided test."""
    cases = [*_plain(drawing(0)), *_stratified(drawing(1))]
    broken, closest = list[str](), 1.0
    for number, case in enumerate(cases):
        wins = won(case, TRIALS, drawing(2 + number))
        chance = binomtest(wins, TRIALS, case.delta, alternative="greater").pvalue
        closest = min(closest, float(chance))
        if chance < LEVEL / len(cases):
            broken.append(f"{case.name}: {wins / TRIALS:.4f} of {case.delta:.4f} allowed")
        if number % 10 == 9:
            setting.say(f"{number + 1} of {len(cases)} settings, {len(broken)} broken")
    rows = [
        ("settings, plain and by author", f"{SETTINGS} and {SETTINGS}, {TRIALS:,} trials each"),
        ("least chance of a result as bad, if the bound holds", f"{closest:.2g}, {LEVEL / len(cases):.2g} rejects it"),
        ("certified, least to most", _spread([case.delta for case in cases])),
        *_crowds(),
        _votes(),
        *((f"broken {number}", told) for number, told in enumerate(broken, 1)),
    ]
    return Measured(float(len(broken)), tuple(rows), (_NOTE,))


def drawing(number: int) -> Random:
    """Return a sequence that can be drawn again."""
    return Random(SEED + number)  # noqa: S311 - no secret


def won(case: Case, trials: int, chance: Random) -> int:
    """Return in how many trials the attacker wins, if every run that is shown an entry of his answers as he wants."""
    return sum(
        by_verdict([verdict(shown) for shown in drawn(case.strata, case.plan, chance)]) is Verdict.MALICIOUS
        for _ in range(trials)
    )


def verdict(shown: Sequence[VerifiedEntry]) -> Verdict:
    """Return the verdict on a run: the worst that the certificate allows for."""
    bad = any(entry.admission.principal.startswith(HOSTILE) for entry in shown)
    return Verdict.MALICIOUS if bad else Verdict.CORRECT


def _plain(chance: Random) -> Iterator[Case]:
    """Yield settings in which entries are drawn: fewer than the pool at times, a hostile one or several the nearest."""
    for number in range(SETTINGS):
        plan = _plan(chance)
        hostile = chance.randint(1, min(HOSTILE_MAX, plan.pool))
        honest = chance.randint(0, 2 * plan.pool)
        entries = [entry(HOSTILE, at) for at in range(hostile)] + [entry(f"p{at % 7}", at) for at in range(honest)]
        strata = by_entry(_taken(entries, Nearest(plan.pool)))
        yield Case(f"plain {number}, {plan}, t = {hostile}", plan, strata, hostile)


def _stratified(chance: Random) -> Iterator[Case]:
    """Yield settings in which authors are drawn, hostile ones each with up to WRITES_MAX entries nearer than others."""
    for number in range(SETTINGS):
        plan, each = _plan(chance), chance.randint(1, EACH_MAX)
        hostile = chance.randint(1, min(HOSTILE_MAX, plan.pool))
        entries = [
            entry(f"{HOSTILE}{who}", at) for who in range(hostile) for at in range(chance.randint(1, WRITES_MAX))
        ]
        for who in range(chance.randint(0, 2 * plan.pool)):
            entries += [entry(f"p{who}", at) for at in range(chance.randint(1, 2 * EACH_MAX))]
        strata = by_author(_taken(entries, NearestAuthors(plan.pool, each)), each)
        yield Case(f"by author {number}, {plan}, t = {hostile}", plan, strata, hostile)


def _plan(chance: Random) -> Plan:
    pool = chance.randint(2, 100)
    return Plan(pool, chance.randint(1, min(pool, 10)), chance.randint(1, 15))


def _taken(entries: Sequence[VerifiedEntry], wanted: Wanted) -> Sequence[VerifiedEntry]:
    return wanted.of([(one.admission.object_id, one) for one in entries]).kept


def entry(principal: str, number: int) -> VerifiedEntry:
    """Return an entry that verified: a hostile one nearer to the question than any other."""
    admission = Admission(
        object_id=f"{principal}/{number}", version=1, event_id=f"{principal}/{number}", tenant="acme", agent="a",
        principal=principal, session="s", namespace="default", visibility=Visibility.SHARED, key=None,
        zone=Zone.GUIDANCE, tier=Tier.USER_OBSERVED, taint=False, parents=(), content_digest="", vector_digest="",
        model="", written_ms=0, expires_ms=None, decision="accept", policy="p",
    )  # fmt: skip
    near = 0.9 if principal.startswith(HOSTILE) else 0.8
    return VerifiedEntry(admission, "", near - number / 1_000)


def _crowds() -> Iterator[tuple[str, str]]:
    """Yield what one attacker wins by writing much, for the two draws at the same cost: the plan that ships."""
    plan = Plan()
    honest = [entry(f"p{who}", 0) for who in range(plan.pool)]
    for writes in CROWDS:
        entries = [*(entry(HOSTILE, at) for at in range(writes)), *honest]
        said = []
        for name, strata in (
            ("entries drawn", by_entry(_taken(entries, Nearest(plan.pool)))),
            ("authors drawn", by_author(_taken(entries, NearestAuthors(plan.pool)), 1)),
        ):
            hostile = sum(stratum[0].admission.principal == HOSTILE for stratum in strata)
            case = Case(name, plan, strata, hostile)
            said.append(f"{name} {won(case, TRIALS, drawing(writes)) / TRIALS:.3f}, certified {case.delta:.3f}")
        yield f"one attacker writes {writes}: wins", "; ".join(said)


def _votes() -> tuple[str, str]:
    """Return how often one entry of 20 wins, by verdict and by string: honest runs say the truth in other words."""
    strata, chance = by_entry([entry(HOSTILE, 0), *(entry(f"p{at}", 0) for at in range(PAPER.pool - 1))]), drawing(0)
    by = {"verdict": 0, "string": 0}
    for _ in range(TRIALS):
        verdicts = [verdict(shown) for shown in drawn(strata, PAPER, chance)]
        answers = [HOSTILE if one is Verdict.MALICIOUS else TRUTHS[at % len(TRUTHS)] for at, one in enumerate(verdicts)]
        by["verdict"] += by_verdict(verdicts) is Verdict.MALICIOUS
        by["string"] += by_string(answers) == HOSTILE
    said = ", ".join(f"by {name} {wins / TRIALS:.3f}" for name, wins in by.items())
    return f"one of 20 entries, k = n = 5, certified {PAPER.delta(1):.4f}: wins", said


def _spread(values: Sequence[float]) -> str:
    ordered = sorted(values)
    return f"{ordered[0]:.3g}, median {ordered[len(ordered) // 2]:.3g}, {ordered[-1]:.3g}"


_NOTE = (
    "Drawn and counted by the code that serves recalls. The attacker is the worst that the certificate allows for: a "
    "run that is shown an entry of his is his. So a bound is met closely, not by far."
)
