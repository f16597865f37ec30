"""The chapter of the changed topic, decided by the real gate: the window moves, and the numbers shown are counted."""

import time
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from tests.command import run
from tests.encoders import minilm

from memsluice.deployment.home import Home
from memsluice.gate.policy.model import parse, shipped
from memsluice_lab import cast
from memsluice_lab.demo import window
from memsluice_lab.demo.embedded import DayClock, EmbeddedSite, last_working_day, open_keys
from memsluice_lab.demo.ledger import Ledger
from memsluice_lab.demo.play import Player
from memsluice_lab.demo.sample.turned import LIES, MOVE
from memsluice_lab.demo.window import FIXED, ROLLING, Chapter, Stretch, show

START_MS = last_working_day(1_790_000_000_000)
Told = dict[str, list[Stretch]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """The chapter, played once."""
    home, chosen = Home(tmp_path_factory.mktemp("home")), window.tenants(set())
    keys, begins = open_keys(home, START_MS)
    signers = window.issue(keys, chosen.values(), begins)
    ledger, encoder = Ledger(keys.keyring, time.monotonic), minilm()
    site = EmbeddedSite(home, ledger, DayClock(begins), keys, encoder)
    player = Player(site, ledger, signers, encoder, "t")
    try:
        return Chapter(site, ledger, signers, player, chosen, "t", begins).play(lambda part: None)
    finally:
        site.close()


def honest_held(stretches: list[Stretch]) -> int:
    """Return how many honest notes were held after the change."""
    return sum(one.held for one in stretches[1:] if one.honest)


def test_the_line_follows_the_change_and_lets_honest_notes_through(told: Told) -> None:
    """Under the shipped profile the line rises with the topic and is reckoned over few, late notes; fixed, it stays."""
    before, after = told[ROLLING][0], [one for one in told[ROLLING] if one.honest][-1]
    assert (before.held, told[FIXED][0].held) == (0, 0)
    assert before.last.threshold is not None
    assert after.last.threshold is not None
    assert after.last.threshold > before.last.threshold + 0.1
    assert after.last.window_id > before.last.window_id
    assert {one.last.strategy for one in told[ROLLING]} == {"m_star"}
    assert max(one.last.window_size for one in told[ROLLING]) < before.written
    assert {(one.last.strategy, one.last.window_size) for one in told[FIXED][1:]} == {("fixed", 50)}
    assert honest_held(told[ROLLING]) <= len(MOVE) / 10 < len(MOVE) / 4 <= honest_held(told[FIXED])


def test_lies_near_what_was_asked_are_held_while_the_line_is_low_and_that_is_said(told: Told) -> None:
    """The chapter's lies are held soon after the change; that the line has followed them later is not hidden."""
    first, last = (one for one in told[ROLLING] if not one.honest)
    assert first.held == len(LIES)
    console = Console(file=StringIO(), width=110)
    show(console, told)
    shown = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert f"{first.held} were held soon after the change and {last.held} once the line had followed" in shown
    rolling, fixed = honest_held(told[ROLLING]), honest_held(told[FIXED])
    assert f"Of {len(MOVE)} honest notes after the change {rolling} were held; by the fixed line {fixed}." in shown


def test_the_policies_differ_in_the_calibration_alone() -> None:
    """The shipped file is what is activated, and the other is the same with the paper's calibration."""
    assert window.policy(ROLLING) == shipped(ROLLING)
    rolling, fixed = (parse(window.policy(name)).default.model_dump() for name in (ROLLING, FIXED))
    assert {name for name in rolling if rolling[name] != fixed[name]} == {"name", "memsad"}
    assert {name for name in rolling["memsad"] if rolling["memsad"][name] != fixed["memsad"][name]} == {
        "kappa",
        "calibration",
    }


def test_in_a_home_that_has_seen_it_the_households_are_new() -> None:
    """Otherwise what was learned the last time would move the line before the chapter begins."""
    taken = {cast.kid_of(name, "user") for name in window.tenants(set()).values()}
    assert not set(window.tenants(taken).values()) & set(window.tenants(set()).values())


def test_the_chapter_is_played_alone_and_names_a_command_that_draws_its_line(tmp_path: Path) -> None:
    """``memsluice demo --window`` shows the change and nothing of the day, and what it names runs on what it left."""
    home = str(tmp_path / "home")
    shown = run("demo", "--window", "--home", home)
    assert shown.code == 0, shown.err
    assert "A change of topic" in shown.out
    assert "Attacks" not in shown.out
    assert f"memsluice calibration show {window.NAMES[ROLLING]}" in shown.out
    drawn = run("calibration", "show", window.NAMES[ROLLING], "--home", home)
    assert drawn.code == 0, drawn.err
    assert "m_star" in drawn.out
