"""The files by which runs of replays are resumed."""

import os
from pathlib import Path

import pytest

from memsluice.errors import ConfigError
from memsluice.operations.held.filters import HeldFilter
from memsluice.operations.held.replay import HeldRun
from memsluice.operations.runs import RESUMABLE_S, begin

NOW_MS = 1_780_000_000_000


def test_a_run_that_nobody_can_resume_leaves_no_file(tmp_path: Path) -> None:
    """A new run deletes the files of those that are older than a day, and no other's."""
    folder = tmp_path / "replays"
    for run_id, age_s in (("old", RESUMABLE_S + 1), ("young", RESUMABLE_S - 60)):
        begin(folder, HeldRun(run_id, NOW_MS - age_s * 1000, False, 10, HeldFilter()), 0)
        os.utime(folder / f"{run_id}.json", (NOW_MS / 1000 - age_s,) * 2)
    begin(folder, HeldRun("new", NOW_MS, False, 10, HeldFilter()), NOW_MS)
    assert sorted(file.stem for file in folder.iterdir()) == ["new", "young"]
    assert HeldRun.load(folder / "young.json", NOW_MS).run_id == "young"
    with pytest.raises(ConfigError, match="no run to resume"):
        HeldRun.load(folder / "old.json", NOW_MS)
