"""Hours of rounds are done in several runs: what was found is kept, counted once, and only for the code as it is."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from confluent_kafka import KafkaException

from memsluice.errors import StackError
from memsluice_lab.chaos import checking, outage, results, rounds
from memsluice_lab.chaos.checker import Violation
from memsluice_lab.chaos.playing import Game
from memsluice_lab.chaos.stages import Company
from memsluice_lab.chaos.zombies import Scene
from memsluice_lab.figures import chaos
from memsluice_lab.figures.bed import Bed, Worker
from memsluice_lab.figures.registry import Setting

SETTING = Setting(None, lambda _line: None)
NAME = "zombie_violations"
KINDS = ("seal", "screen")
WANTED = dict.fromkeys(KINDS, 3)


class Played:
    """Plays nothing; remembers what it was asked for, and finds one violation in a scene that has round 3."""

    def __init__(self, idle: Sequence[int] = ()) -> None:
        self.numbers: list[int] = []
        self.idle = list(idle)
        """Rounds that do not count, each once."""

    def __call__(self, _setting: Setting, numbers: Sequence[int], _run: str) -> tuple[list[str], list[Violation]]:
        """Note the numbers."""
        self.numbers += numbers
        counted = [one for one in numbers if one not in self.idle]
        self.idle = [one for one in self.idle if one not in numbers]
        return [f"{KINDS[one % 2]} in round {one}" for one in counted], [Violation("rows", "back")] * (3 in numbers)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(results.FOLDER_VARIABLE, str(tmp_path))


def test_a_later_run_goes_on_where_the_last_one_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three runs of two rounds are rounds 0 to 5. The figure is of all of them, and there is none before they are
    whole."""
    play = Played()
    monkeypatch.setenv(results.ROUNDS_VARIABLE, "2")
    for still in (4, 2):
        with pytest.raises(StackError, match=f"{still} are still wanted"):
            chaos._played(SETTING, NAME, play, WANTED, 10)
    measured = chaos._played(SETTING, NAME, play, WANTED, 10)
    assert play.numbers == [0, 1, 2, 3, 4, 5]
    assert measured.value == 1
    assert measured.rows[0][1].startswith("6, on 3 stacks")


def test_a_round_that_does_not_count_is_played_again() -> None:
    """Of each kind as many rounds count as are wanted: what is missing is made up for, of that kind."""
    play = Played(idle=[2])
    chaos._played(SETTING, NAME, play, WANTED, 6)
    assert play.numbers == [0, 1, 2, 3, 4, 5, 4]


def test_rounds_that_never_count_are_no_figure() -> None:
    """Where nothing that is played counts, it ends after twice the rounds, and says what is missing."""
    played: list[int] = []

    def play(_setting: Setting, numbers: Sequence[int], _run: str) -> tuple[list[str], list[Violation]]:
        played.extend(numbers)
        return [], []

    with pytest.raises(StackError, match="6 are still wanted"):
        chaos._played(SETTING, NAME, play, WANTED, 6)
    assert len(played) == 12


def test_what_was_found_on_other_code_does_not_count() -> None:
    """Rounds on a tree that has changed since say nothing about this one."""
    results.add(NAME, results.Outcome.of("another", ["seal in round 0"], 1.0, [Violation("rows", "back")]))
    play = Played()
    chaos._played(SETTING, NAME, play, {"seal": 1}, 10)
    assert play.numbers == [0]


@pytest.mark.parametrize("error", [StackError("seal did not go on"), psutil.NoSuchProcess(7), KafkaException()])
def test_a_turn_that_does_not_go_on_is_a_violation(
    error: Exception, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A worker that never comes back, is gone when it is to be paused, or a silent broker raise in the middle of a
    scene: the scene counts, with all that was found."""

    def turn(_made: Company, _numbers: Sequence[int], found: list[Violation]) -> list[str]:
        found.append(Violation("lost", "one"))
        raise error

    @contextmanager
    def stand(*_given: Any) -> Iterator[Any]:
        yield SimpleNamespace(scene=SimpleNamespace(bed=SimpleNamespace(home=tmp_path), dismiss=lambda: {"seal-0": 1}))

    monkeypatch.setattr(checking, "begin", lambda _scene: {})
    (tmp_path / "logs").mkdir()
    done, found = Game(turn, 1, stand).play(Setting(None, lambda _: None), [0], "r")
    assert (done, [one.rule for one in found]) == ([], ["lost", "stuck", "ended"])
    assert (results._folder() / "logs-r").exists(), "the logs are kept"


def test_a_worker_that_ended_before_it_was_killed_is_noted(tmp_path: Path) -> None:
    """A worker that crashes while work piles up before it was not killed: its end is known, and is a violation."""
    (tmp_path / "log").write_text("its last words\n")
    workers = [
        Worker((stage,), "a", tmp_path / "log", subprocess.Popen([sys.executable, "-c", program]))
        for stage, program in (("seal", "raise SystemExit(70)"), ("land", "import time; time.sleep(99)"))
    ]
    bed = Bed(tmp_path, None, None, SETTING, workers=list(workers))  # type: ignore[arg-type]
    scene = Scene(bed, None, None, None, {})  # type: ignore[arg-type]
    workers[0].process.wait()
    scene.kill(*workers)
    assert scene.ended == {"seal-a": 70}
    assert bed.workers == []


def test_memory_that_piles_up_is_a_violation() -> None:
    """A stage that occupies more than twice what it did before the fault collects what it should leave on the broker;
    servers keep their own bounds."""
    occupied = {"before": {"land": 300, "weaviate": 100}, "store down": {"land": 601, "weaviate": 900}}
    assert [one.rule for one in outage.grown(occupied)] == ["memory"]
    assert outage.grown({"before": {"land": 300}, "store down": {"land": 600}}) == []


def test_a_wait_that_ran_out_is_a_violation() -> None:
    """Who has not caught up when the time is over is stuck."""
    assert [one.rule for one in outage.late("land", outage.CAUGHT_UP_S_MAX)] == ["stuck"]
    assert outage.late("land", 12.0) == []


def test_a_pause_with_nothing_but_markers_uncommitted_does_not_count() -> None:
    """What waits at a partition's end may be commit markers alone; more than these is work."""
    worker = Worker(("land",), "a", Path("log"), None)  # type: ignore[arg-type]
    assert not rounds.Pause(worker, 0.0, uncommitted=4, partitions=2, shut_out=True).counts
    assert rounds.Pause(worker, 0.0, uncommitted=5, partitions=2, shut_out=True).counts
    assert not rounds.Pause(worker, 0.0, uncommitted=5, partitions=2).counts
