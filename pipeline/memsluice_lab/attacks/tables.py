"""The tables of seed 000 that can be measured here, each as rows with the paper's numbers beside ours."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import mean

from scipy.stats import binomtest

from memsluice_lab.attacks import compound, defences, spreading
from memsluice_lab.attacks.defences import DEFENCES, Flags, Memsad, by_memsad, by_memsad_plus, by_probes, by_watermark
from memsluice_lab.attacks.poison import BASE, Attack
from memsluice_lab.attacks.setting import REFERENCE, SIZE, Case
from memsluice_lab.rewrites import synonyms

TPR_BASE, COMPARISONS, LEVEL = 0.05, 15, 0.05
"""Of Table 11: the null, and Bonferroni's 15."""
SIZES: Mapping[int, tuple[float, float, float]] = {
    50: (1.00, 0.70, 0.65), 100: (1.00, 0.65, 0.55), 200: (1.00, 0.65, 0.50), 300: (1.00, 0.60, 0.40),
    500: (1.00, 0.60, 0.30), 1_000: (1.00, 0.14, 0.07),
}  # fmt: skip
BASES: Mapping[int, tuple[float, float, float]] = {
    1: (0.80, 0.20, 0.10), 3: (1.00, 0.45, 0.30), 5: (1.00, 0.65, 0.50), 7: (1.00, 0.70, 0.55), 10: (1.00, 0.75, 0.60),
}  # fmt: skip
POISONED = 200
"""Entries of the corpus in Table 7: its row n_base = 5 is the row 200 of Table 6."""
FOUND: Mapping[str, str] = {
    "watermark": "1.00 · 1.00 · 1.00; .000", "validation": ".60 · .40 · .80; .100",
    "proactive": "1.00 · .07 · .60; .010", "MEMSAD": ".00 · .40 · .20; .000",
    "MEMSAD, triggered calibration": "1.00 · - · -; .000", "composite": "1.00 · 1.00 · 1.00; .000",
}  # fmt: skip
BETA, GAMMAS, EPIDEMICS = 0.3, (0.05, 0.1, 0.2, 0.4), 20
CROWD, FIRST, TOOK_OFF = 1_000, 5, 0.1
"""Agents of a simulated epidemic, first ones, and the share from which it took off."""
EXPOSED: Mapping[Attack, tuple[float, str]] = {
    Attack.AGENTPOISON: (1.00, "1 · 1 · 1 · 1.0"), Attack.MINJA: (0.14, "1 · 4 · 4 · 1.9"),
    Attack.INJECMEM: (0.07, "2 · 7 · 9 · 3.3"),
}  # fmt: skip
Rows = list[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its number in the paper (G: its appendix), what it shows, its columns, and what makes its rows."""

    number: str
    title: str
    columns: tuple[str, ...]
    rows: Callable[[Sequence[Case]], Rows]
    bare: bool = False
    """Needs no case: it is made of numbers alone, where there are none."""


def _rates(some: Sequence[Case], *, size: int = SIZE, base: int = BASE) -> list[float]:
    return [mean(case.hits(attack, size=size, base=base).rate for case in some) for attack in Attack]


def _three(values: Sequence[float]) -> str:
    return " · ".join(f"{value:.2f}" for value in values)


def attack_results(some: Sequence[Case]) -> Rows:
    """Table 2, ASR-R alone: ASR-A asks language models, and is no property of a memory."""
    paper = ("1.00", ".14 [.13, .15]", ".07 [.06, .07]")
    rows = Rows()
    for attack, theirs in zip(Attack, paper, strict=True):
        rates = [case.hits(attack).rate for case in some]
        rows.append((attack, f"{mean(rates):.2f} ({min(rates):.2f} to {max(rates):.2f})", theirs))
    return rows


def by_size(some: Sequence[Case]) -> Rows:
    """Table 6."""
    return [(f"{size:,}", _three(_rates(some, size=size)), _three(paper)) for size, paper in SIZES.items()]


def by_count(some: Sequence[Case]) -> Rows:
    """Table 7, at 200 entries."""
    return [(str(base), _three(_rates(some, size=POISONED, base=base)), _three(paper)) for base, paper in BASES.items()]


def matrix(some: Sequence[Case]) -> Rows:
    """Table 3: TPR by attack, and FPR."""
    rows = Rows()
    for name, flags in DEFENCES.items():
        false, of = defences.false_alarms(flags, some)
        rows.append((name, f"{_three(_found(flags, some))}; {false / of:.3f}", FOUND[name]))
    for triggered, paper in ((False, ".870 · .914 · .816"), (True, "1.000 · - · -")):
        areas = [mean(_area(case, attack, triggered=triggered) for case in some) for attack in Attack]
        name = "MEMSAD's AUROC" + (", triggered calibration" if triggered else "")
        rows.append((name, " · ".join(f"{area:.3f}" for area in areas), paper))
    return rows


def _found(flags: Flags, some: Sequence[Case]) -> list[float]:
    return [hits / of for hits, of in (_caught(flags, some, attack) for attack in Attack)]


def _caught(flags: Flags, some: Sequence[Case], attack: Attack) -> tuple[int, int]:
    found = [one for case in some for one in flags(case, case.texts_of(attack), case.entries(attack), False)]
    return sum(found), len(found)


def _area(case: Case, attack: Attack, *, triggered: bool) -> float:
    memsad = Memsad.of(case, triggered=triggered)
    return defences.auroc(memsad.scores(case.entries(attack)), memsad.scores(case.honest[REFERENCE:]))


def spreads(some: Sequence[Case]) -> Rows:
    """Table 10: final spread, steps to half and to nine tenths, secondary entries, quarantined ones."""
    conditions: Mapping[str, tuple[float, str]] = {
        "no defence": (float("inf"), "1.00 · 5 · 14 · 23 · -"),
        "MEMSAD, kappa 2": (2.0, "1.00 · 5 · 14 · 18 · 5"),
        "kappa 1 (the paper's composite)": (1.0, ".00 · > 30 · > 30 · 0 · 2"),
    }
    rows = Rows()
    for name, (kappa, paper) in conditions.items():
        played = [_spread(case, kappa) for case in some]
        final = mean(one.final for one in played)
        half, ninety = (mean(steps) for steps in zip(*((one.half, one.ninety) for one in played), strict=True))
        more, held = mean(one.secondary for one in played), mean(one.quarantined for one in played)
        told = f"{final:.2f} · {_steps(half)} · {_steps(ninety)} · {more:.0f} · {held:.1f}"
        rows.append((name, told, paper))
    return rows


def _spread(case: Case, kappa: float) -> spreading.Spread:
    memsad = Memsad.of(case)
    memory = spreading.Memory(
        case.honest[: spreading.CORPUS],
        case.entries(Attack.MINJA)[: spreading.INITIAL],
        case.asked[Attack.MINJA],
    )
    return spreading.spread(memory, lambda vector: memsad.flags(vector[None, :], kappa)[0], case.seed)


def _steps(value: float) -> str:
    return f"> {spreading.STEPS}" if value > spreading.STEPS else f"{value:.0f}"


def final_sizes(some: Sequence[Case]) -> Rows:
    """Appendix G: the final size by simulation and by its equation, without a detector and with one of TPR 1.

    Of several simulated epidemics those that took off count, as the equation means it; all of them where none did.
    """
    rows = Rows()
    for gamma in GAMMAS:
        ratio, caught = spreading.reproduction(BETA, gamma), spreading.reproduction(BETA, gamma, 1.0)
        sizes = [spreading.epidemic(BETA, gamma, CROWD, seed, infected=FIRST) for seed in range(EPIDEMICS)]
        large = [size for size in sizes if size > TOOK_OFF] or [mean(sizes)]
        rows.append(
            (
                f"beta {BETA}, gamma {gamma}",
                f"R_0 {ratio:.2f}; {spreading.final_size(ratio):.3f} by equation, {mean(large):.3f} by simulation",
                f"R_0 {caught:.2f} with TPR = 1, as for any gamma > 0",
            )
        )
    return rows


def hypotheses(some: Sequence[Case]) -> Rows:
    """Table 11: one-sided exact tests of TPR <= .05, at .05 / 15."""
    asked: tuple[tuple[str, Flags, Attack, str], ...] = (
        ("watermark", by_watermark, Attack.AGENTPOISON, "< 1e-6, rejected"),
        ("watermark", by_watermark, Attack.MINJA, "< 1e-6, rejected"),
        ("MEMSAD", by_memsad, Attack.MINJA, "< 1e-6, rejected"),
        ("MEMSAD", by_memsad, Attack.INJECMEM, ".001, rejected"),
        ("proactive", by_probes, Attack.AGENTPOISON, "< 1e-6, rejected"),
        ("proactive", by_probes, Attack.MINJA, ".24, not rejected"),
        *(("composite", defences.by_composite, attack, "< 1e-6, rejected") for attack in Attack),
    )
    rows = Rows()
    for name, flags, attack, paper in asked:
        hits, of = _caught(flags, some, attack)
        chance = float(binomtest(hits, of, TPR_BASE, alternative="greater").pvalue)
        verdict = "rejected" if chance < LEVEL / COMPARISONS else "not rejected"
        rows.append((f"{name}, {attack}", f"{hits} of {of}: {chance:.2g}, {verdict}", paper))
    return rows


def false_positives(some: Sequence[Case]) -> Rows:
    """Table 12: FPR with Clopper-Pearson's interval."""
    asked = (
        ("MEMSAD", by_memsad, ".000 [.000, .004]"),
        ("watermark", by_watermark, ".000 [.000, .004]"),
        ("proactive", by_probes, ".010 [.004, .023]"),
    )
    rows = Rows()
    for name, flags, paper in asked:
        false, of = defences.false_alarms(flags, some)
        low, high = binomtest(false, of).proportion_ci(0.95, method="exact")
        rows.append((name, f"{false / of:.3f} [{low:.3f}, {high:.3f}] of {of:,}", paper))
    return rows


def plus(some: Sequence[Case]) -> Rows:
    """Table 18: TPR of MEMSAD and MEMSAD+, on the entries as they are and with synonyms put in by a table."""
    paper = ("1.00 1.00 · 1.00 1.00", "1.00 .80 · 1.00 .80", ".20 .00 · .60 .40")
    rows = Rows()
    for attack, theirs in zip(Attack, paper, strict=True):
        told = list[str]()
        for flags in (by_memsad, by_memsad_plus):
            whole, of = _caught(flags, some, attack)
            reworded = sum(sum(_reworded(flags, case, attack)) for case in some)
            told.append(f"{whole / of:.2f} {reworded / of:.2f}")
        rows.append((attack, " · ".join(told), theirs))
    return rows


def _reworded(flags: Flags, case: Case, attack: Attack) -> list[bool]:
    chance = Random(case.seed)  # noqa: S311 - an experiment
    texts = [synonyms(text, chance)[0] for text in case.texts_of(attack)]
    return flags(case, texts, case.encoder.encode(texts), False)


def exposures(some: Sequence[Case]) -> Rows:
    """Table 19: the formula at the paper's ASR-R, the formula at ours, and what agents meet that ask our questions."""
    rows = Rows()
    for attack, (rate, paper) in EXPOSED.items():
        told = f"at {rate:.2f}: {compound.by_formula(rate).told()}"
        if some:
            ours = mean(case.hits(attack).rate for case in some)
            met = compound.measured([hit for case in some for hit in case.hits(attack).of], some[0].seed)
            told += f"; at ours, {ours:.2f}: {compound.by_formula(ours).told()}, met {met.told()}"
        rows.append((attack, told, paper))
    return rows


AP_MJ_IM = "AgentPoison · MINJA · InjecMEM"
TABLES = (
    Table(
        "2", "ASR-R at 1,000 entries, k = 5", ("attack", "mean, least to most of the seeds", "paper"), attack_results
    ),
    Table("3", "Found by defence, and FPR", ("defence", f"TPR {AP_MJ_IM}; FPR", "paper"), matrix),
    Table("6", "ASR-R by corpus size", ("entries", AP_MJ_IM, "paper"), by_size),
    Table("7", "ASR-R by n_base, at 200 entries", ("n_base", AP_MJ_IM, "paper"), by_count),
    Table(
        "10",
        "Spread among 20 agents",
        ("defence", "final · steps to half · to .9 · secondary · quarantined", "paper"),
        spreads,
    ),
    Table("G", "SIR's final size", ("rates", "without a detector", "with one"), final_sizes, bare=True),
    Table("11", "TPR above .05", ("defence, attack", "p-value, verdict", "paper"), hypotheses),
    Table("12", "FPR", ("defence", "with 95 % interval", "paper"), false_positives),
    Table("18", "MEMSAD+", ("attack", "MEMSAD, with synonyms · MEMSAD+, with synonyms", "paper"), plus),
    Table("19", "Sessions to compromise", ("attack", "50 % · 90 % · 95 % · expected", "paper"), exposures, bare=True),
)
