"""The frame around the figures: how one is asked for, printed and kept."""

import json
from pathlib import Path

import pytest

from memsluice.errors import ConfigError
from memsluice_lab.figures import FIGURES, Measured, Setting, get, number, page, provenance_page
from memsluice_lab.figures.__main__ import main
from memsluice_lab.vectors import PAPER

TOP = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("value", "text"), [(1.0, "1"), (0.0, "0"), (12_345.678, "12346"), (3.14159, "3.142")])
def test_a_value_prints_short_and_plain(value: float, text: str) -> None:
    """A figure's value is one number that any script can read: no exponent, no unit, no separators."""
    assert number(value) == text


def test_goals_can_be_missed() -> None:
    """For every figure there is a value that misses its goal: a figure that cannot come out bad says nothing."""
    for figure in FIGURES.values():
        worse = {">=": figure.goal - 1, "<=": figure.goal + 1, "==": figure.goal + 1}[figure.relation]
        assert figure.holds(figure.goal)
        assert not figure.holds(worse)


def test_an_unknown_figure_is_named_with_those_there_are() -> None:
    """A misspelt name is answered with the list, not with a stack trace."""
    with pytest.raises(ConfigError, match="core_decisions_per_s"):
        get("core_decision")


def test_absent_records_are_said(tmp_path: Path) -> None:
    """Who has no real records is told what is expected where, instead of being given a figure on nothing."""
    with pytest.raises(ConfigError, match="MEMSLUICE_DATA"):
        Setting(None, print).records()
    with pytest.raises(ConfigError, match="no data in"):
        Setting(tmp_path, print).records()


def test_the_last_line_is_name_and_value(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """``make figure NAME=x`` ends its output with ``x VALUE``, whatever else it showed, and a miss is no failure."""
    kind = type(get("kill9_lost"))
    monkeypatch.setattr(kind, "measure", lambda self, setting: Measured(3.0, (("killed", "20 times"),), ("A note.",)))
    assert main(["kill9_lost"]) == 0
    lines = capsys.readouterr().out.rstrip("\n").split("\n")
    assert lines[-1] == "kill9_lost 3"
    assert any("MISSED" in line for line in lines)


def test_what_could_not_be_measured_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A figure that could not be measured prints no value and exits with 2."""

    def refuse(self: object, setting: Setting) -> Measured:
        raise ConfigError("no broker")

    monkeypatch.setattr(type(get("kill9_lost")), "measure", refuse)
    assert main(["kill9_lost"]) == 2
    captured = capsys.readouterr()
    assert "kill9_lost" not in captured.out
    assert "no broker" in captured.err


def test_a_kept_figure_replaces_the_older_one(tmp_path: Path) -> None:
    """The page shows the newest measurement of each figure, and misses are shown as such."""
    (tmp_path / "docs").mkdir()
    for value in (0.0, 2.0):
        measured = Measured(value, (("killed", "20 times"),))
        page.write(tmp_path, page.entry("kill9_lost", measured, date="2026-11-20", commit="abc"))
    assert [item["value"] for item in json.loads((tmp_path / page.RECORD).read_text())] == [2.0]
    text = (tmp_path / page.PAGE).read_text()
    assert "| 2 events | **missed** |" in text
    assert "not measured yet" in text


def test_the_page_is_what_the_record_gives() -> None:
    """docs/figures.md is generated: an edit by hand, or a forgotten one, is found."""
    assert (TOP / page.PAGE).read_text() == page.render(page.read(TOP / page.RECORD))


def test_the_page_beside_the_paper_is_what_the_record_gives() -> None:
    """docs/provenance-results.md is generated too; every vector and every row of the paper's tables stands in it."""
    text = (TOP / provenance_page.PAGE).read_text()
    assert text == provenance_page.render(page.read(TOP / page.RECORD))
    assert all(f"| {vector}: " in text for vector in PAPER)
