"""Long runs go on where they ended, and a failing seed says how it is played again."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

from memsluice_lab.chaos import checker
from memsluice_lab.simulation import __main__ as command
from memsluice_lab.simulation import campaign
from memsluice_lab.simulation.campaign import Tally, resumed, saved


def test_how_far_a_run_came_is_kept(tmp_path) -> None:
    """What was counted comes back as it was; a place that holds nothing is a run that has not begun."""
    tally = Tally(3, 660, 12, 3, 999, 1, 4, Counter(pool=600), Counter({"fault: crash": 2}), [(2, "lost: x")])
    saved(tmp_path / "deep" / "soak.json", tally)
    assert resumed(tmp_path / "deep" / "soak.json") == tally
    assert resumed(tmp_path / "nothing.json") == Tally()


def test_a_soak_plays_only_what_was_not_played(tmp_path, monkeypatch, capsys) -> None:
    """Started again, it goes on behind the last part, and says so of the whole."""
    asked = []

    def tallies(first: int, histories: int, jobs: int):
        asked.append((first, histories))
        yield Tally(histories, 220 * histories, 5 * histories, 3)

    monkeypatch.setattr(campaign, "tallies", tallies)
    monkeypatch.setattr(campaign, "FOLDER", tmp_path)
    assert command.main(["--soak", "--histories", "40"]) == 0
    assert command.main(["--soak", "--histories=100"]) == 0
    assert asked == [(0, 40), (40, 60)]
    assert "100 of 100 histories, 22,000 events" in capsys.readouterr().out
    monkeypatch.setattr(campaign, "code", lambda: "another")
    assert command.main(["--soak", "--histories=40"]) == 0
    assert asked[2:] == [(0, 40)], "what other code played does not count"


def test_what_plays_a_history_and_what_judges_it_is_in_the_digest() -> None:
    """Whatever of the lab a campaign loads is, but for the figures, whose beds the judge takes no rule from."""
    script = "import sys, memsluice_lab.simulation.campaign\nfor one in sys.modules.values():\n"
    script += "    if one.__name__.startswith('memsluice_lab.') and one.__file__: print(one.__name__, one.__file__)"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    loaded = dict(line.split(" ", 1) for line in told.splitlines())
    judging = {Path(file) for name, file in loaded.items() if not name.startswith("memsluice_lab.figures")}
    assert judging <= set(campaign.code_files())
    assert Path(checker.__file__) in judging


def test_what_the_gate_decides_by_is_in_the_digest_and_what_a_run_leaves_is_not() -> None:
    """A policy or a model that changed makes other histories; a cache that a run writes would end its own soak."""
    files = {file.name for file in campaign.code_files()}
    assert {"default.yaml", "probes.npy", "classifier.npz"} <= files
    assert not any(file.parent.name == "__pycache__" for file in campaign.code_files())


def test_a_broken_history_is_told_with_the_command_that_plays_it_again(monkeypatch, capsys) -> None:
    """The seed is all that is needed; the exit code says that something is wrong."""
    broken = Tally(1, 220, 3, 3, failing=[(41, "lost: an event")])
    monkeypatch.setattr(campaign, "tallies", lambda *_: iter([broken]))
    assert command.main(["--histories", "1"]) == 1
    told = capsys.readouterr().out
    assert "BROKEN history 41: lost: an event" in told
    assert "python -m memsluice_lab.simulation --seed 41" in told
