"""The frame around the figures: how one is asked for, printed and kept."""

import argparse
import importlib
import inspect
import re
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from memsluice.errors import ConfigError
from memsluice_lab.figures import FIGURES, Figure, Measured, Setting, get, number, page, provenance_page
from memsluice_lab.figures.__main__ import _each_by_itself, main
from memsluice_lab.figures.dependencies import here
from memsluice_lab.figures.machines import AMX, AVX2, AVX512, OTHER, class_of
from memsluice_lab.figures.measurements import (
    RECORD,
    Measurement,
    Record,
    commit_of,
    commits_since,
    measurement,
    read,
)
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


def test_whatever_fails_the_next_figure_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A figure that ends in an error nobody foresaw is named, and the one after it is measured all the same."""

    def measure(self: Figure, setting: Setting) -> Measured:
        if self.name == "kill9_lost":
            raise ZeroDivisionError
        return Measured(0.0)

    monkeypatch.setattr(Figure, "measure", measure)
    assert main(["kill9_lost", "kill9_doubled"]) == 2
    captured = capsys.readouterr()
    assert captured.out.rstrip("\n").split("\n")[-1] == "kill9_doubled 0"
    assert "kill9_lost: not measured" in captured.err


def test_a_run_of_many_goes_on_after_one_that_failed(capfd: pytest.CaptureFixture[str]) -> None:
    """Each figure of a long run has a process of its own; the exit code and the last line tell that one is missing."""
    options = argparse.Namespace(data="", record=None)
    assert _each_by_itself([get("encoder_ratio"), get("block_escapes")], options) == 2
    captured = capfd.readouterr()
    assert re.search(r"^block_escapes \d+$", captured.out, re.MULTILINE)
    assert captured.err.rstrip("\n").endswith("encoder_ratio")


@pytest.mark.parametrize("figure", FIGURES.values(), ids=lambda figure: figure.name)
def test_every_figure_can_be_measured_by_its_name(figure: Figure) -> None:
    """The module that the registry names imports, its function takes the setting, and the code it reaches is known."""
    module, _, function = figure.where.partition(":")
    found = getattr(importlib.import_module(f"memsluice_lab.figures.{module}"), function)
    assert next(iter(inspect.signature(found).parameters)) == "setting"
    assert here().digest(figure)


def test_a_kept_figure_replaces_the_older_one_and_says_where_it_is_from(tmp_path: Path) -> None:
    """The page shows the newest measurement of a class, whether it holds, of what it is, and whether it is stale."""
    (tmp_path / "docs").mkdir()
    figure = get("kill9_lost")
    for value in (0.0, 2.0):
        measured = Measured(value, (("killed", "20 times"),))
        digest = here().digest(figure)
        page.keep(tmp_path, measurement(figure.name, measured, commit="abc", took_s=61.2, digest=digest))
    page.keep(tmp_path, Measurement("ingest_ratio", AVX2, 1.53, machine="2 cores"))
    record = read(tmp_path)
    assert [(one.name, one.value) for one in record.measurements] == [("kill9_lost", 2.0), ("ingest_ratio", 1.53)]
    text = (tmp_path / page.PAGE).read_text()
    assert "| 2 events, **missed** |" in text
    assert "| 1.53 x, **missed**, stale |" in text
    assert re.search(r"commit abc \(of another history, [01] days? old\)", text)
    assert "61 s." in text
    assert "On AVX2: reported at an unrecorded commit, 2 cores; **stale**" in text
    assert "not measured yet" in text
    assert page.untrue(tmp_path) == []


def test_figures_that_come_of_one_run_share_it_whoever_is_told() -> None:
    """Each figure tells of itself on a line of its own; that makes no other setting, and no second run."""
    settings = [Setting(TOP, lambda line, to=to: to.append(line)) for to in ([], [])]
    assert settings[0] == settings[1]
    assert len(set(settings)) == 1
    assert Setting(TOP.parent, settings[0].say) != settings[0]


def test_figures_that_end_together_are_both_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever keeps a figure waits for whoever does at that moment: neither's measurement is written over."""
    (tmp_path / "docs").mkdir()
    looked_up, both = page.measurements.looked_up, threading.Barrier(2)

    def slow(*given: Any) -> Record:
        with suppress(threading.BrokenBarrierError):  # the other one is here, too, if nothing keeps it out
            both.wait(0.5)
        return looked_up(*given)

    monkeypatch.setattr(page.measurements, "looked_up", slow)
    kept = [Measurement(name, AVX2, 1.0, machine="2 cores") for name in ("ingest_ratio", "kill9_lost")]
    threads = [threading.Thread(target=page.keep, args=(tmp_path, one)) for one in kept]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert {one.name for one in read(tmp_path).measurements} == {"ingest_ratio", "kill9_lost"}


def test_a_page_that_calls_stale_what_is_current_is_found(tmp_path: Path) -> None:
    """``--check`` holds the page against the code as it is: it names what the page says and what is not so."""
    (tmp_path / "docs").mkdir()
    said = Measurement("decision_us", AVX2, 250.0, digest="0" * 16, stale=False)
    page.write(Record("2026-11-22", "abc", (said,)), tmp_path)
    assert page.untrue(tmp_path) == ["decision_us on AVX2 is stale, and the page says otherwise"]
    assert main(["--check", str(tmp_path)]) == 1
    assert main(["--page", str(tmp_path)]) == 0
    assert main(["--check", str(tmp_path)]) == 0


def test_the_page_is_what_the_record_gives() -> None:
    """docs/figures.md is generated: an edit by hand, or a forgotten one, is found."""
    assert (TOP / page.PAGE).read_text() == page.render(read(TOP))


def test_the_page_beside_the_paper_is_what_the_record_gives() -> None:
    """docs/provenance-results.md is generated too; every vector and every row of the paper's tables stands in it."""
    text = (TOP / provenance_page.PAGE).read_text()
    assert text == provenance_page.render(read(TOP).newest(provenance_page.NAME))
    assert all(f"| {vector}: " in text for vector in PAPER)


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ("fpu avx avx2 avx512f amx_tile amx_bf16", AMX),
        ("fpu avx avx2 avx512f amx_tile", AVX512),
        ("fpu avx avx2", AVX2),
        ("fpu avx", OTHER),
    ],
)
def test_a_machine_has_the_class_of_its_widest_arithmetic(flags: str, found: str) -> None:
    """The class comes from the processor's flags, and only from these: a model's name says nothing."""
    text = f"processor\t: 0\nmodel name\t: avx512f amx_tile amx_bf16\nflags\t\t: {flags}\n\nprocessor\t: 1\n"
    assert class_of(text) == found
    assert class_of("") == OTHER


def test_the_age_of_a_commit_is_counted_in_its_own_history(tmp_path: Path) -> None:
    """Commits are counted where the history has that one; a tree that only keeping a figure changed is clean."""

    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
        subprocess.run(["git", "-C", str(tmp_path), *identity, *arguments], check=True, capture_output=True)

    git("init", "--quiet")
    (tmp_path / "docs").mkdir()
    (tmp_path / RECORD).write_text("{}")
    (tmp_path / "code.py").write_text("1")
    git("add", ".")
    git("commit", "--quiet", "-m", "one")
    first = commit_of(tmp_path)
    git("commit", "--quiet", "--allow-empty", "-m", "two")
    (tmp_path / RECORD).write_text("{ }")
    assert commits_since(tmp_path, first) == 1
    assert commits_since(tmp_path, f"{first}+") == 1
    assert commits_since(tmp_path, "f" * 12) is None
    assert not commit_of(tmp_path).endswith("+")
    (tmp_path / "code.py").write_text("2")
    assert commit_of(tmp_path).endswith("+")
    assert commit_of(tmp_path / "docs").endswith("+")
