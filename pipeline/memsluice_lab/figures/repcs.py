"""How well the divergence of seed 004 tells answers from memory, on causal models trained here on self-made facts."""

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from memsluice.recall.contamination.bounds import prompts_needed
from memsluice.recall.contamination.paths import LENGTH, Model, compare
from memsluice.recall.contamination.threshold import Tau, settings
from memsluice_lab.facts import influenced, learner, scored
from memsluice_lab.facts.models import Kept, Noise, Noisy, on_logits, on_probabilities
from memsluice_lab.facts.scored import Scored, Told, told
from memsluice_lab.facts.world import ANSWER, Asked, World, prompted
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.table.counting import wilson

SEED = 4
CLEAN, CONTAMINATED, PARAPHRASED = 1_000, 800, 200
"""A fifth of the paper's, in its proportions."""
CALIBRATION, ALPHA = 500, 0.05
SIGMAS = (0.0, 0.02, 0.05, 0.1)
TIMED = 40
WEIGHED, QUESTIONS, ALPHAS = 400, 100, (0.05, 0.01)
EPSILON = 0.05
Row = tuple[str, str]
Label = Callable[[Scored], bool]


def repcs_auroc(setting: Setting) -> Measured:
    """AUROC of Z for answers from memory, told by intervention: the worst of the architectures."""
    rows, areas, before = list[Row](), list[float](), Tau()
    for name in learner.ARCHITECTURES:
        world = World(SEED)
        trained = learner.trained(name, world, setting.say)
        model = Kept(learner.wrapped(trained))
        found = scored.scored(model, world, clean=CLEAN, contaminated=CONTAMINATED, paraphrased=PARAPHRASED)
        areas.append(_told(found, from_memory).auroc)
        setting.say(f"{name}: {areas[-1]:.3f}")
        here = [*_learned(found), *_table_5(found), *_overhead(trained, found)]
        tau = calibrated(model, world)
        here += _tau(found, tau, before)
        if not rows:
            here += [*_table_2(model, found), *_table_3(found), *_table_4(model, found), _asked_for(model, found)]
            setting.say(f"{name}: influences")
            here += _influence(model, world)
        rows += [(f"{name}: {what}", how) for what, how in here]
        before = tau
    return Measured(min(areas), tuple(rows), _NOTES)


def from_memory(one: Scored) -> bool:
    """Say whether an answer stays the same whatever the context says."""
    return one.memory


def known(one: Scored) -> bool:
    """Say whether a question is about a known name: the paper's label."""
    return one.known


def calibrated(model: Model, world: World) -> Tau:
    """Return tau of CALIBRATION clean prompts."""
    tau = Tau(settings(ALPHA, window=CALIBRATION))
    for at in range(CALIBRATION):
        asked = world.ask(known=False)
        compared = compare(model, prompted, asked.question, asked.entries, length=scored.LENGTH)
        tau = tau.clean(str(at), compared.score)
    return tau


def _told(found: Sequence[Scored], label: Label, scores: Sequence[float] | None = None) -> Told:
    return told(*_apart(found, label, [one.score for one in found] if scores is None else scores))


def _apart(found: Sequence[Scored], label: Label, scores: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the scores of what has a label, and of what has it not."""
    pairs = list(zip(found, scores, strict=True))
    return [nats for one, nats in pairs if label(one)], [nats for one, nats in pairs if not label(one)]


def _learned(found: Sequence[Scored]) -> Iterator[Row]:
    """Yield what the model does: from memory and from context, by the kind of question."""
    for what, chosen in (
        ("fresh names", [one for one in found if not one.known]),
        ("known names, the context agrees", [one for one in found if one.known and one.agree]),
        ("known names, it says otherwise", [one for one in found if one.known and not one.agree]),
        ("known names, in other words", [one for one in found if one.reworded]),
    ):
        memory = sum(one.memory for one in chosen)
        nats = [one.score for one in chosen]
        yield f"answers from memory, {what}", f"{memory} of {len(chosen)}; Z {np.median(nats):.2f} nats (median)"


def _table_5(found: Sequence[Scored]) -> Iterator[Row]:
    yield "Table V, memory told by intervention", str(_told(found, from_memory))
    yield "Table V, the paper's label (known or fresh)", str(_told(found, known))
    half = [one for one in found if one.agree]
    yield "the same without contexts that say otherwise", str(_told(half, known))


def _overhead(trained: Any, found: Sequence[Scored]) -> Iterator[Row]:
    """Yield what comparing costs beyond answering, side by side, for the answers as they are and for the paper's T."""
    for what, model, length in (
        (f"T = {ANSWER}", learner.wrapped(trained), scored.LENGTH),
        (f"T = {LENGTH}", learner.wrapped(trained, ends=False), LENGTH),
    ):
        shares = []
        for one in found[:TIMED]:
            asked = one.asked
            began = perf_counter()
            model.answer(prompted(asked.question, asked.entries), length)
            between = perf_counter()
            compare(model, prompted, asked.question, asked.entries, length=length)
            shares.append((perf_counter() - between) / (between - began) - 1)
        yield f"overhead over one generation, {what}", f"{100 * median(shares):.0f} % (median of {TIMED})"


def _tau(found: Sequence[Scored], tau: Tau, before: Tau) -> Iterator[Row]:
    """Yield what the threshold flags, this model's own and the one that was calibrated on another."""
    clean = [one.score for one in found if not one.known]
    memory = [one.score for one in found if one.memory]
    yield f"clean prompts flagged, tau of {CALIBRATION}, alpha {ALPHA}", _share(clean, tau)
    yield "answers from memory flagged", _share(memory, tau)
    if len(before.state.values):
        yield "clean prompts flagged by the tau of the model above, frozen", _share(clean, before)
        yield "answers from memory flagged by it", _share(memory, before)


def _share(scores: Sequence[float], tau: Tau) -> str:
    flagged = sum(tau.judge(nats).flagged for nats in scores)
    low, high = wilson(flagged, len(scores))
    return f"{flagged} of {len(scores)}, {flagged / len(scores):.3f} ({low:.3f} to {high:.3f})"


def _table_2(model: Model, found: Sequence[Scored]) -> Iterator[Row]:
    """Yield the detectors that can be had here: KL, and how often sampled answers would agree with the answer."""
    yield "Table II, RePCS (paper: AUROC .918, 1.00, .358)", str(_told(found, from_memory))
    for what, context in (
        ("sampled answers agree (SelfCheckGPT's principle; paper .792)", True),
        ("sampled answers to the bare question agree", False),
    ):
        scores = [-_agreement(model, one, context=context) for one in found]
        yield f"Table II, {what}", str(_told(found, from_memory, scores))


def _agreement(model: Model, one: Scored, *, context: bool) -> float:
    """Return the logarithm of the share of endlessly many sampled answers that are the answer."""
    logs = model.log_probabilities(prompted(one.asked.question, one.asked.entries if context else ()), one.answer)
    return float(sum(logs[at, token] for at, token in enumerate(one.answer)))


def _table_3(found: Sequence[Scored]) -> Iterator[Row]:
    reworded = sum(one.reworded for one in found)
    contaminated = sum(one.known for one in found) - reworded
    yield "Table III, clean, contaminated, paraphrased", f"{CLEAN}, {contaminated}, {reworded}"


def _table_4(model: Model, found: Sequence[Scored]) -> Iterator[Row]:
    """Yield what noise does: on the logits, as the table says, and on the softmax's outputs, as the text says."""
    kinds: tuple[tuple[str, Callable[[float], Noise]], ...] = (
        ("logits", on_logits), ("probabilities", on_probabilities),
    )  # fmt: skip
    for what, noise in kinds:
        said = []
        for sigma in SIGMAS:
            noisy = Noisy(model, noise(sigma), SEED)
            scores = [
                compare(noisy, prompted, one.asked.question, one.asked.entries, length=scored.LENGTH).score
                for one in found
            ]
            said.append(f"{sigma}: {scored.area(*_apart(found, from_memory, scores)):.3f}")
        yield f"Table IV, AUROC under noise on {what}", ", ".join(said)


def _asked_for(model: Model, found: Sequence[Scored]) -> Row:
    """Return how many clean prompts Theorem III.4 asks for here, by the largest log-ratio and the gap of the means."""
    gamma = 0.0
    for one in found:
        rag, para = (
            model.log_probabilities(prompted(one.asked.question, entries), one.answer)
            for entries in (one.asked.entries, ())
        )
        gamma = max(gamma, float(np.abs(rag - para).max(initial=0.0)))
    gap = np.mean([one.score for one in found if not one.memory]) - np.mean([one.score for one in found if one.memory])
    if gap <= 0:
        return "Theorem III.4 here", "Assumption 1 fails: clean prompts do not score higher"
    needed = prompts_needed(gamma, ANSWER, float(gap), EPSILON)
    return (
        f"Theorem III.4 here asks for (epsilon {EPSILON})",
        f"{needed:,} clean prompts: gamma {gamma:.1f}, T {ANSWER}, Delta {gap:.2f} nats",
    )


def _influence(model: Model, world: World) -> Iterator[Row]:
    """Yield how often influence evidence errs."""
    kinds: tuple[tuple[str, Callable[[], Asked]], ...] = (
        ("fresh names", lambda: world.ask(known=False)),
        ("known names, it agrees", lambda: world.ask(known=True)),
        ("known names, it says otherwise", lambda: world.ask(known=True).contradicted(world.value())),
    )
    for alpha in ALPHAS:
        tau = influenced.calibrated(model, world, WEIGHED, alpha)
        for what, ask in kinds:
            counts = influenced.each(model, world, tau, [ask() for _ in range(QUESTIONS)])
            missed = f"{counts[influenced.MISSED]} of {counts[influenced.MADE]} entries"
            kept = f"{counts[influenced.KEPT]} of {counts[influenced.NOT_MADE]} entries"
            yield f"influence, alpha {alpha}, {what}: made the answer, judged not to have", missed
            yield f"influence, alpha {alpha}, {what}: did not make it, judged to have", kept
        both = influenced.twice(model, world, tau, QUESTIONS)
        yield (
            f"influence, alpha {alpha}, two entries say the same: neither judged to have made the answer",
            f"{both.missed_each} of {both.made} answers; {both.missed_together} where both are doubted",
        )


_NOTES = (
    "Three architectures of transformers, two layers each, trained here on self-made facts: known names, which always "
    "have one value, and fresh ones, whose value stands in the context alone. What an answer was made of is told by "
    "intervention: from memory is what stays the same when every entry of the context says another value; half of the "
    "contexts of known names say another value already. The paper's models, data and baselines are others; its numbers "
    "stand beside ours where they are named. ReDeEP and the Two-Tiered encoder are not measured: one needs a model's "
    "attention heads told apart, the other a labelled corpus to train on.",
    "The paper's overhead (4.7 %) is that of a pipeline in which one generation is most of the time; ours is over the "
    "bare generation: two passes over the whole answer, where answering takes one pass a token.",
)
