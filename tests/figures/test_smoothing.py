"""The figure of the smoothed recall's certificate: it comes out bad where the draw is not what it should be."""

from pathlib import Path

import pytest

from memsluice_lab.figures import smoothing
from memsluice_lab.figures.registry import Setting

QUIET = Setting(Path(), lambda _text: None)


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few trials of few settings: what is planted is large."""
    monkeypatch.setattr(smoothing, "TRIALS", 300)
    monkeypatch.setattr(smoothing, "SETTINGS", 8)


def test_a_draw_that_favours_the_nearest_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever shows every run the nearest strata, as a recall without smoothing does, breaks the certificate."""
    assert smoothing.smsr_bound_violations(QUIET).value == 0

    def nearest(strata, plan, chance):
        return [tuple(entry for stratum in strata[: plan.shown] for entry in stratum)] * plan.runs

    monkeypatch.setattr(smoothing, "drawn", nearest)
    assert smoothing.smsr_bound_violations(QUIET).value > 0


def test_one_draw_for_all_runs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that are shown the same are one run: their majority is no protection, and the figure says so."""
    once = smoothing.drawn

    def same(strata, plan, chance):
        return [once(strata, plan, chance)[0]] * plan.runs

    monkeypatch.setattr(smoothing, "drawn", same)
    assert smoothing.smsr_bound_violations(QUIET).value > 0


def test_an_authors_flood_is_counted_as_entries_where_entries_are_drawn() -> None:
    """The settings by author hold attackers who write much, and each of them is one stratum."""
    cases = list(smoothing._stratified(smoothing.drawing(1)))
    assert any(len(case.strata) < case.plan.pool for case in cases)
    for case in cases:
        hostile = [stratum for stratum in case.strata if stratum[0].admission.principal.startswith(smoothing.HOSTILE)]
        assert len(hostile) == case.hostile
