"""The attacks of seed 000: what they write, what they reach, and the equations beside their simulations."""

import math
from collections.abc import Sequence
from hashlib import sha256

import numpy as np
import pytest
from numpy.typing import NDArray

from memsluice.errors import ConfigError
from memsluice_lab.attacks import compound, corpus, defences, injecmem, minja, retrieval, spreading
from memsluice_lab.attacks.__main__ import main
from memsluice_lab.attacks.poison import TIMES, Attack, Victims, made
from memsluice_lab.attacks.routes import ROUTES, of
from memsluice_lab.attacks.setting import Case

QUESTIONS = tuple(corpus.questions(40, 3))


class Bag:
    """A vector of a text's words, each in a place of its own digest: near are texts that share words."""

    model_id, revision, dimensions = "words", "1", 256

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32 (len(texts), 256), one L2-normalised row a text."""
        found = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(found, texts, strict=True):
            for word in text.casefold().split():
                row[sha256(word.encode()).digest()[0]] += 1
        return found / np.linalg.norm(found, axis=1, keepdims=True)


VICTIMS = Victims.of(QUESTIONS, Bag())


@pytest.mark.parametrize("attack", Attack)
def test_a_seed_gives_one_attack_of_the_papers_size(attack: Attack) -> None:
    """The same seed gives the same entries, another seed others, and n_base counts as Table 1 says; fewer are a prefix:
    a row of the poison count differs from the next in the count alone."""
    one = made(attack, VICTIMS, seed=1, base=5)
    assert one == made(attack, VICTIMS, seed=1, base=5) != made(attack, VICTIMS, seed=2, base=5)
    assert len(one.texts) == len(set(one.texts)) == 5 * TIMES[attack]
    assert one.texts[: TIMES[attack]] == made(attack, VICTIMS, seed=1, base=1).texts


def test_only_agentpoison_asks_with_a_trigger() -> None:
    """AgentPoison is measured on triggered questions (Section 3), the others on questions as people ask them."""
    asked = {attack: made(attack, VICTIMS, seed=1).asked(QUESTIONS) for attack in Attack}
    poison = made(Attack.AGENTPOISON, VICTIMS, seed=1)
    assert all(text.endswith(f" {poison.trigger}") for text in asked[Attack.AGENTPOISON])
    assert all(poison.trigger in text for text in poison.texts)
    assert asked[Attack.MINJA] == asked[Attack.INJECMEM] == list(QUESTIONS)


def test_an_attack_is_aimed_at_something() -> None:
    """Without questions, or without an entry, there is no attack: it is refused and not measured as harmless."""
    with pytest.raises(ConfigError, match="victims' questions"):
        Victims.of([], Bag())
    with pytest.raises(ConfigError, match="n_base is 0"):
        made(Attack.MINJA, VICTIMS, seed=1, base=0)


def test_minjas_indication_gets_shorter() -> None:
    """From one stored interaction to the next fewer words ask for the reasoning, and the bridging steps stay."""
    texts = made(Attack.MINJA, VICTIMS, seed=1, base=10).texts
    asking = [len(text.partition("?")[2].partition("Steps:")[0].split()) for text in texts]
    assert asking == sorted(asking, reverse=True)
    assert asking[0] > 2 * asking[-1]
    assert all("Steps: " in text for text in texts)


def test_minjas_targets_cover_the_questions() -> None:
    """Targets are chosen so that every question has one near: two groups of questions get one each."""
    vectors = np.array([[1, 0], [1, 0.01], [1, 0.02], [0, 1], [0.01, 1]], np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    first, second = minja.covering(vectors, 2)
    assert (first < 3) != (second < 3)


def test_injecmems_anchors_are_words_that_stand_together() -> None:
    """An anchor has the commonest word and what stands beside it, no word of asking; the next is about other
    questions."""
    questions = ["Where is the Budget of Aiko kept?", "Who keeps the Budget of Aiko?", "What does Bruno drink?"]
    first, second = injecmem.anchors(questions, 2)
    assert {"Aiko", "Budget"} <= set(first)
    assert set(second) == {"Bruno", "drink"}
    assert not {"Where", "Who", "the"} & {*first, *second}


def test_asr_r_counts_questions_with_any_poison_returned() -> None:
    """Equation 2: one entry among the k nearest is enough, several count once, and one behind the k-th does not."""
    honest = np.eye(4, dtype=np.float32)[:3]
    poison = np.array([[1, 0, 0, 0], [1, 0, 0, 0]], np.float32)
    hits = retrieval.reached(honest, poison, np.eye(4, dtype=np.float32)[:3], k=1)
    assert hits.of[1:] == (False, False)
    assert retrieval.reached(honest, poison, np.eye(4, dtype=np.float32)[:1], k=2).rate == 1
    assert retrieval.among([["a", "b"], ["c"]], {"b"}).rate == 0.5
    assert retrieval.Hits(()).rate == 0


def test_the_corpus_has_no_text_twice() -> None:
    """Entries and questions are all different and of all kinds; what the templates cannot give is refused."""
    texts = corpus.entries(700, 1)
    assert len(set(texts)) == 700
    assert texts != corpus.entries(700, 2)
    with pytest.raises(ConfigError, match="the templates give"):
        corpus.questions(2_000, 1)


def test_table_19_comes_out() -> None:
    """The formula of Appendix S gives the paper's sessions for the paper's ASR-R, all twelve numbers."""
    told = [compound.by_formula(rate).told() for rate in (1.00, 0.14, 0.07)]
    assert told == ["1 · 1 · 1 · 1.0", "1 · 4 · 4 · 1.9", "2 · 7 · 9 · 3.3"]
    assert compound.by_formula(0.0).half == math.inf
    with pytest.raises(ConfigError, match="between 0 and 1"):
        compound.by_formula(1.1)


def test_agents_meet_what_the_formula_says_where_it_holds() -> None:
    """One question a session is an independent draw: formula and agents agree. Five different ones of a few questions
    find a hit sooner than the formula's draws with repetition do."""
    hits = [True] * 14 + [False] * 86
    assert compound.measured(hits, 1, 1).expected == pytest.approx(compound.by_formula(0.14, 1).expected, rel=0.1)
    few = [True, *[False] * 5]
    assert compound.measured(few, 1).expected < compound.by_formula(1 / 6).expected
    assert compound.measured([False], 1).half == math.inf


def test_the_final_size_solves_its_equation() -> None:
    """1 - r = exp(-R_0 r), r above 0 only where R_0 is above 1; a large simulated epidemic ends there."""
    for ratio in (1.2, 2.0, 4.0):
        size = spreading.final_size(ratio)
        assert size > 0.3
        assert 1 - size == pytest.approx(math.exp(-ratio * size), abs=1e-9)
    assert spreading.final_size(1.0) == spreading.final_size(0.3) == 0
    sizes = [spreading.epidemic(0.05, 0.025, 1_000, seed, infected=20) for seed in range(3)]
    assert sum(sizes) / 3 == pytest.approx(spreading.final_size(2.0), abs=0.06)


def test_r0_below_one_says_nothing_about_a_detector() -> None:
    """With TPR = 1 the paper's R_0 is below 1 for every rate of infection and of recovery: it holds by its formula."""
    for beta in (0.01, 0.5, 1.0, 100.0):
        assert spreading.reproduction(beta, 0.001, 1.0) < 1 <= spreading.reproduction(beta, 0.001)
    with pytest.raises(ConfigError, match="recovery"):
        spreading.reproduction(0.5, 0.0)


def test_what_is_let_in_once_reaches_all_agents() -> None:
    """In the setting of Table 10 nobody recovers: one entry that every question finds reaches everybody, whatever is
    quarantined later; none does where every first entry is quarantined."""
    honest = np.eye(8, dtype=np.float32)[:6]
    memory = spreading.Memory(honest, np.eye(8, dtype=np.float32)[7:], np.eye(8, dtype=np.float32)[7:])
    assert spreading.spread(memory, lambda _: False, 1).final == 1
    kept = spreading.spread(memory, lambda _: True, 1)
    assert (kept.final, kept.secondary, kept.quarantined) == (0, 0, 1)
    assert kept.half == spreading.STEPS + 1


def test_every_class_has_a_counted_route_in_a_tenant_of_its_own() -> None:
    """The figure can come out bad for each class, and no route tells the gate about another."""
    assert all(any(route.counted for route in of(attack)) for attack in Attack)
    assert len({route.tenant for route in ROUTES}) == len(ROUTES)


def test_the_equations_are_printed_without_an_encoder(capsys: pytest.CaptureFixture[str]) -> None:
    """``--equations`` prints what is made of numbers alone: Table 19 at the paper's rates, and the final sizes."""
    assert main(["--equations", "--table", "19"]) == 0
    assert "| MINJA | at 0.14: 1 · 4 · 4 · 1.9 | 1 · 4 · 4 · 1.9 |" in capsys.readouterr().out


def test_the_composite_flags_what_any_of_three_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    """Appendix C's pi_comp: no watermark, or MEMSAD, or near the probes; what none of them flags it does not."""
    said = {
        "by_watermark": [True, False, False, False],
        "by_memsad": [False, True, False, False],
        "by_probes": [False, False, True, False],
    }
    for name, flags in said.items():
        monkeypatch.setattr(defences, name, lambda *_case, flags=flags: flags)
    none = np.zeros((4, 2), np.float32)
    case = Case(1, (), none, {}, {}, {}, none, none, Bag())
    assert defences.by_composite(case, ["text"] * 4, none, False) == [True, True, True, False]
