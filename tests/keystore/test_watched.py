"""A file that is re-read while running: what happens when the reading fails."""

from pathlib import Path

import pytest

from memsluice.deployment.reloading import RELOAD_SECONDS, Watched
from memsluice.errors import ConfigError


def test_a_failed_re_read_is_tried_again_though_the_file_stays_as_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No file handle free at the moment of a rotation: the new key counts at the next look, and one line is logged."""
    file, clock, failing = tmp_path / "keyring.json", [0.0], [False]
    file.write_text("old")

    def load() -> str:
        if failing[0]:
            raise ConfigError("too many open files")
        return file.read_text()

    watched = Watched(load, file, lambda: clock[0])
    assert watched.get() == "old"
    file.write_text("newer")
    failing[0] = True
    for _ in range(3):
        clock[0] += RELOAD_SECONDS
        assert watched.get() == "old"
    assert len(caplog.records) == 1
    failing[0] = False
    clock[0] += RELOAD_SECONDS
    assert watched.get() == "newer"
