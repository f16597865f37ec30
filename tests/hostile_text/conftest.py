"""The home that was played once, and the command line as somebody at a terminal runs it."""

from collections.abc import Callable

import pytest
from tests import command
from tests.command import Shown
from tests.hostile_text.town import Town

WIDTH = 110
"""Columns; the demo takes as many where it writes to no terminal."""
ODD_FOLDER = "ho\x1b[2Jme \u202e[red]x\u2066"


Run = Callable[..., Shown]


@pytest.fixture(scope="session")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """A home, whose very folder is named to attack, after everybody has published."""
    town = Town(tmp_path_factory.mktemp("town") / ODD_FOLDER)
    town.live()
    return town


@pytest.fixture
def run() -> Run:
    """Run ``memsluice`` at a terminal of the demo's width, with no home but what is named."""

    def run(*words: str, stdin: str = "n\n", colours: bool = False) -> Shown:
        return command.run(
            *words,
            stdin=stdin,
            columns=WIDTH,
            colours=colours,
            environment={"MEMSLUICE_HOME": "/nonexistent/memsluice"},
        )

    return run
