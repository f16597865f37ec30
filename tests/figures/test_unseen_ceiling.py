"""The best threshold in hindsight, on cases made by hand, and what the heads are fitted on."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from memsluice.errors import StateError
from memsluice_lab.figures import unseen_ceiling as ceiling
from memsluice_lab.figures.registry import Setting
from memsluice_lab.figures.unseen import LEAST
from memsluice_lab.figures.unseen_ceiling import Pooled, best

HONEST, HOSTILE = ("honest", True), ("hostile", True)


def test_the_threshold_holds_the_share_that_is_allowed_and_no_more() -> None:
    """Of forty honest texts one may be held (.025): the hostile that score above the second highest are."""
    honest = np.arange(40.0)
    hostile = np.array([38.5] * 10 + [37.5] * 10 + [0.0] * 20)
    scores, labels = np.concatenate((honest, hostile)), np.array([0] * 40 + [1] * 40)
    assert best(scores, labels, [HONEST] * 40 + [HOSTILE] * 40) == {"hostile": 0.25}


def test_kinds_count_alike() -> None:
    """A kind of many honest texts that score low does not pay for one of few that score high."""
    scores = np.array([0.0] * 400 + [5.0] * LEAST + [1.0] * LEAST)
    labels = np.array([0] * (400 + LEAST) + [1] * LEAST)
    kinds = [("many", True)] * 400 + [("few", True)] * LEAST + [HOSTILE] * LEAST
    assert best(scores, labels, kinds) == {"hostile": 0.0}


def test_without_honest_texts_it_says_so() -> None:
    """No threshold is the best of none."""
    with pytest.raises(StateError, match="no kind of honest text"):
        best(np.ones(LEAST), np.ones(LEAST, np.int64), [HOSTILE] * LEAST)


def test_heads_beside_ours_are_fitted_on_some_texts_and_hostile_ones_of_one_unit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So the figure's note and docs/detection.md say, since it is no bound of what such heads can do."""
    units, hostile = np.tile([1, 2], 40), np.repeat([0, 1], 40)
    fitted = list[int]()

    def pooled(some: Any, chosen: Any) -> Pooled:
        fitted.extend(chosen)
        drawn = np.random.default_rng(1).standard_normal((len(chosen), 4)).astype(np.float32)
        return Pooled(drawn, np.arange(len(chosen)))

    monkeypatch.setattr(ceiling, "pooled", pooled)
    monkeypatch.setattr(ceiling, "TEXTS_MAX", 55)
    some: Any = SimpleNamespace(features=SimpleNamespace(text_units=np.cumsum(units)), labels=hostile)
    assert set(ceiling._others(some, np.arange(80))) == {"linear", "trees", "wide network", "neighbours"}
    assert len(set(fitted)) == len(fitted) == 55
    assert {(hostile[at], units[at]) for at in fitted} == {(0, 1), (0, 2), (1, 1)}


def test_the_figure_says_on_how_many_texts_each_head_is_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader sees beside the shares that ours had more texts than the heads it is compared with."""
    labels = np.repeat([0, 1], LEAST)
    models = SimpleNamespace(
        corpus=SimpleNamespace(features=None, examples=[SimpleNamespace(label=label) for label in labels]),
        kinds={at: HOSTILE if label else HONEST for at, label in enumerate(labels)},
        fitted=SimpleNamespace(head=None, logits=lambda some, left_out: labels.astype(float)),
        known=np.arange(70_321),
    )
    monkeypatch.setattr(ceiling, "trained", lambda setting: models)
    monkeypatch.setattr(ceiling.head, "logits", lambda *_: labels.astype(float))
    monkeypatch.setattr(ceiling, "pooled", lambda *_: Pooled(np.ones((1, 1), np.float32), np.zeros(1, np.int64)))
    monkeypatch.setattr(ceiling, "_others", lambda *_: {})
    found = ceiling.unseen_ceiling(Setting(None, lambda line: None))
    assert dict(found.rows)["texts fitted on"] == "ours 70,321, each of the four others at most 20,000 of them"
    assert "No bound" in found.notes[0]
