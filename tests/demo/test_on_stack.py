"""The same demo on the real broker, the real workers and the real store."""

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.command import run

from memsluice_lab.demo import on_stack
from memsluice_lab.demo.on_stack import REPLICA, WORKERS

COMMAND = [sys.executable, "-m", "memsluice.cli.main"]


@pytest.mark.stack
def test_the_demo_plays_on_a_running_stack(stack: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A running stack in the home is used; every event gets a fate, break-ins stay out, and no worker is left."""
    for name in ("ACKNOWLEDGED_S", "SETTLED_S_MAX", "STOPPED_S_MAX"):  # beside the other tests all takes longer
        monkeypatch.setattr(on_stack, name, 600.0)
    home = str(stack.home)
    shown = run("demo", "--home", home, "--tenant", "casa-lindqvist")
    assert shown.code == 0, shown.err + shown.out
    assert stack.connection.bootstrap in shown.out
    assert "have no verdict" not in shown.out
    assert "withheld: 1 content, 1 forged, 1 stale" in shown.out
    assert "could not be tried" not in shown.out
    assert workers(home) == []


def workers(home: str) -> list[psutil.Process]:
    """Return the demo's workers on a home that are alive."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline()
            if "work" in words and REPLICA in words and home in words and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@pytest.mark.stack
def test_a_killed_demo_takes_its_workers_along(stack: Any, tmp_path: Path) -> None:
    """After kill -9 no worker runs on under the demo's name: the next demo finds its own name free."""
    with (tmp_path / "shown").open("wb") as shown:
        demo = subprocess.Popen([*COMMAND, "demo", "--home", str(stack.home)], stdout=shown, stderr=shown)
    deadline = time.monotonic() + 240
    try:
        while len(running := workers(str(stack.home))) < len(WORKERS):
            assert demo.poll() is None, (tmp_path / "shown").read_text()
            assert time.monotonic() < deadline, "no workers were started"
            time.sleep(0.1)
    finally:
        demo.kill()
        demo.wait()
    assert psutil.wait_procs(running, timeout=240)[1] == []
