"""How often the production core and the reference model of seed 001's rules disagree, over random sequences."""

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context

from memsluice.errors import StateError
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.model.walk import play

SEQUENCES = 100_000
STAGED_EVERY = 5
"""One sequence in so many goes through the whole *screen* stage, crashes and re-deliveries included."""
JOBS = 2
PART = 500
BREAKABLE = ("rule_1", "rule_3", "rule_4", "rule_5", "rule_6", "rule_7", "rule_8", "rule_9")
FOUND_WITHIN = 2_000
"""A model without one of these rules must be told from the core within so many sequences."""
SHOWN_MAX = 5


@dataclass(slots=True)
class Tally:
    """What a range of seeds came to."""

    actions: int = 0
    staged: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    decisions: Counter[str] = field(default_factory=Counter)
    disagreements: list[tuple[int, str]] = field(default_factory=list)


def model_disagreements(setting: Setting, sequences: int = SEQUENCES) -> Measured:
    """Return in how many of the sequences of seeds 0 to ``sequences`` - 1 both sides differ at any step.

    Raises StateError where a model with a rule left out is not told from the core: such a comparison is worth nothing.
    """
    ranges = [range(start, min(start + PART, sequences)) for start in range(0, sequences, PART)]
    total = Tally()
    with ProcessPoolExecutor(JOBS, mp_context=get_context("spawn")) as pool:
        found = dict(zip(BREAKABLE, pool.map(first_difference, BREAKABLE), strict=True))
        if None in found.values():
            raise StateError(f"a model without a rule is not told from the core: {found}")
        setting.say("left out on purpose, every rule is missed")
        for number, tally in enumerate(pool.map(played, ranges), 1):
            _add(total, tally)
            if number % 20 == 0:
                setting.say(f"{number * PART:,} sequences, {len(total.disagreements)} disagreements")
    rows = [
        ("sequences", f"{sequences:,}, of the seeds 0 to {sequences - 1:,}"),
        ("actions", f"{total.actions:,}: {_counts(total.kinds)}"),
        ("decisions compared", _counts(total.decisions)),
        ("through the whole screen stage", f"{total.staged:,} sequences, with crashes and re-deliveries"),
        (
            "first seed that tells a model without the rule",
            ", ".join(f"{rule}: {seed}" for rule, seed in found.items()),
        ),
    ]
    rows += [(f"seed {seed}", what) for seed, what in total.disagreements[:SHOWN_MAX]]
    return Measured(float(len(total.disagreements)), tuple(rows), (_NOTE,))


_NOTE = (
    "Compared after every action: decision, zone, taint, tier, visibility and expiry; after every recall and at the "
    "end, all that each session may be given; and Theorem 1, Parts I to III, of what landed. Scores, rates and caps "
    "are off: the model does not judge them."
)


def played(seeds: Iterable[int]) -> Tally:
    """Play the sequences of some seeds."""
    tally = Tally()
    for seed in seeds:
        staged = seed % STAGED_EVERY == 0
        done = play(seed, staged=staged)
        tally.actions += len(done.actions)
        tally.staged += staged
        tally.kinds.update(type(action).__name__.lower() for action in done.actions)
        tally.decisions.update(done.decisions)
        if done.differs:
            tally.disagreements.append((seed, done.differs))
    return tally


def first_difference(rule: str) -> int | None:
    """Return the first seed at which a model without this rule differs from the core, None where none does."""
    left_out = frozenset({rule})
    return next((seed for seed in range(FOUND_WITHIN) if play(seed, broken=left_out).differs), None)


def _add(total: Tally, more: Tally) -> None:
    total.actions += more.actions
    total.staged += more.staged
    total.kinds.update(more.kinds)
    total.decisions.update(more.decisions)
    total.disagreements += more.disagreements


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counter.most_common())
