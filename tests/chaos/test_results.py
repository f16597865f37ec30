"""Hours of rounds are done in several runs: what was found is kept, counted once, and only for the code as it is."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memsluice.errors import StackError
from memsluice_lab.chaos import checking, results
from memsluice_lab.chaos.checker import Violation
from memsluice_lab.chaos.playing import Game
from memsluice_lab.chaos.stages import Company
from memsluice_lab.figures import chaos
from memsluice_lab.figures.registry import Setting

SETTING = Setting(None, lambda _line: None)
NAME = "zombie_violations"


class Played:
    """Plays nothing; remembers what it was asked for, and finds one violation in a scene that has round 3."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def __call__(self, _setting: Setting, numbers: Sequence[int], _run: str) -> tuple[list[str], list[Violation]]:
        """Note the numbers."""
        self.numbers += numbers
        return [f"round {one}" for one in numbers], [Violation("rows", "back")] if 3 in numbers else []


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(results.FOLDER_VARIABLE, str(tmp_path))


def test_a_later_run_goes_on_where_the_last_one_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs of two rounds are rounds 0 to 3, and a third run adds what is wanted still; the figure is of all."""
    play = Played()
    monkeypatch.setenv(results.ROUNDS_VARIABLE, "2")
    assert chaos._played(SETTING, NAME, play, 5, 10).value == 0
    assert chaos._played(SETTING, NAME, play, 5, 10).value == 1
    assert play.numbers == [0, 1, 2, 3]
    monkeypatch.delenv(results.ROUNDS_VARIABLE)
    measured = chaos._played(SETTING, NAME, play, 5, 10)
    assert play.numbers == [0, 1, 2, 3, 4]
    assert measured.value == 1
    assert measured.rows[0][1].startswith("5 of 5, on 3 stacks")


def test_what_was_found_on_other_code_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds on a tree that has changed since say nothing about this one."""
    results.add(NAME, results.Outcome.of("another", ["round 0"], 1.0, [Violation("rows", "back")]))
    monkeypatch.setenv(results.ROUNDS_VARIABLE, "1")
    play = Played()
    assert chaos._played(SETTING, NAME, play, 5, 10).value == 0
    assert play.numbers == [0]


def test_no_round_at_all_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing was played nothing is said, instead of a figure of no violations."""
    monkeypatch.setenv(results.ROUNDS_VARIABLE, "0")
    with pytest.raises(StackError, match="no round was played"):
        chaos._played(SETTING, NAME, Played(), 5, 10)


def test_a_turn_that_does_not_go_on_is_a_violation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A worker that never comes back raises in the middle of a scene: the scene counts, with all that was found."""

    def turn(_made: Company, _numbers: Sequence[int], found: list[Violation]) -> list[str]:
        found.append(Violation("lost", "one"))
        raise StackError("seal did not go on")

    @contextmanager
    def stand(*_given: Any) -> Iterator[Any]:
        yield SimpleNamespace(scene=SimpleNamespace(bed=SimpleNamespace(home=tmp_path), dismiss=lambda: {"seal-0": 1}))

    monkeypatch.setattr(checking, "begin", lambda _scene: {})
    (tmp_path / "logs").mkdir()
    done, found = Game(turn, 1, stand).play(Setting(None, lambda _: None), [0], "r")
    assert (done, [one.rule for one in found]) == ([], ["lost", "stuck", "ended"])
    assert (results._folder() / "logs-r").exists(), "the logs are kept"
