"""The files by which runs of replays are resumed."""

import os
from pathlib import Path

import pytest

from memsluice.errors import ConfigError
from memsluice.operations.held.filters import Filter
from memsluice.operations.held.replay import Run
from memsluice.operations.runs import VALID_S, begin

NOW_MS = 1_780_000_000_000


def test_a_run_that_nobody_can_resume_leaves_no_file(tmp_path: Path) -> None:
    """A new run deletes the files of those that are older than a day, and no other's."""
    folder = tmp_path / "replays"
    for run_id, age_s in (("old", VALID_S + 1), ("young", VALID_S - 60)):
        begin(folder, Run(run_id, NOW_MS - age_s * 1000, False, 10, Filter()), 0)
        os.utime(folder / f"{run_id}.json", (NOW_MS / 1000 - age_s,) * 2)
    begin(folder, Run("new", NOW_MS, False, 10, Filter()), NOW_MS)
    assert sorted(file.stem for file in folder.iterdir()) == ["new", "young"]
    assert Run.load(folder / "young.json", NOW_MS).run_id == "young"
    with pytest.raises(ConfigError, match="no run to resume"):
        Run.load(folder / "old.json", NOW_MS)
