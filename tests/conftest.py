"""Fixtures shared by all tests: the real broker and the real store."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from memsluice.deployment.connection import Connection
from memsluice.deployment.layout import Layout
from memsluice.devstack import control
from memsluice.devstack.bringup import bring_up

TEST_HOME_VARIABLE = "MEMSLUICE_TEST_HOME"
"""Home of a stack to use, and to leave running; without it the session starts its own and wipes it."""


@dataclass(frozen=True)
class Stack:
    home: Path
    connection: Connection


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """A running Kafka and Weaviate with topics, access rules and roles in force."""
    if given := os.environ.get(TEST_HOME_VARIABLE):
        home = Path(given).expanduser().resolve()
        was_running = control.is_running(Layout(home))
        yield Stack(home, bring_up(home))
        if not was_running:
            control.down(home)
        return
    home = Path(tempfile.mkdtemp(prefix="memsluice-test-"))  # not tmp_path: pytest would keep the data of three runs
    try:
        yield Stack(home, bring_up(home))
    finally:
        control.down(home, wipe=True)
        shutil.rmtree(home, ignore_errors=True)
