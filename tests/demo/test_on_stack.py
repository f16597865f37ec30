"""The same demo on the real broker, the real workers and the real store."""

import subprocess
import sys
from typing import Any

import psutil
import pytest

COMMAND = [sys.executable, "-m", "memsluice.cli.main"]


@pytest.mark.stack
def test_the_demo_plays_on_a_running_stack(stack: Any) -> None:
    """A running stack in the home is used; every event gets a fate, break-ins stay out, and no worker is left."""
    home = str(stack.home)
    shown = subprocess.run(
        [*COMMAND, "demo", "--home", home, "--tenant", "casa-lindqvist"], capture_output=True, text=True, timeout=500
    )
    assert shown.returncode == 0, shown.stderr + shown.stdout
    assert stack.connection.bootstrap in shown.stdout
    assert "have no verdict" not in shown.stdout
    assert "withheld: 1 content, 1 forged, 1 stale" in shown.stdout
    assert "could not be tried" not in shown.stdout
    left = [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if "work" in (process.info["cmdline"] or [])
        and "demo" in (process.info["cmdline"] or [])
        and home in str(process.info)
    ]
    assert left == []
