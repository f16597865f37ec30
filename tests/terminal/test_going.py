"""The terminal goes away, or somebody tells the review to end: the process ends by itself, and what was sent counts."""

import signal
import time
from pathlib import Path

import pytest
from tests.patience import until
from tests.terminal.conftest import EACH, GROUPS
from tests.terminal.desk import commands_of, states, worked
from tests.terminal.line import LIMIT_S, Line

ERROR, INTERRUPTED, NO_ANSWER = 1, 130, 7
UNDECIDED = "import memsluice.encoder, threading; memsluice.encoder.load_encoder = threading.Event().wait\n"
"""Has the gate in the review's own process never begin, however slow whoever presses keys is."""
NATIVE = """
import memsluice.encoder
def begin(*_):
    import torch
    matrix = torch.eye(2_000)
    open("begun", "w").close()
    while True:
        matrix = (matrix @ matrix).clamp(0, 1)
memsluice.encoder.load_encoder = begin
"""
"""The gate never begins either, and its thread is in native code all the while, as with an encoder that is slow."""
WAKES = 6


def opened(line: Line) -> None:
    """Open the first group, and wait until all of it was read."""
    line.shows(f"{GROUPS} groups", "as of now")
    line.press("\r")
    line.shows(f"{EACH} of {EACH} read")


def sent(home: Path) -> None:
    """Wait until a command is in the log."""
    end = time.monotonic() + LIMIT_S
    while not commands_of(home):
        assert time.monotonic() < end, "nothing was sent"
        time.sleep(0.01)


def threads(line: Line) -> int:
    """Return how many threads the process has."""
    return len(list(Path(f"/proc/{line.process.pid}/task").iterdir()))


@pytest.mark.parametrize("controlling", [True, False], ids=["with a signal", "without a signal"])
def test_a_terminal_that_is_cut_ends_it(home: Path, controlling: bool) -> None:
    """No process is left over that nobody can see, and that reads a closed terminal again and again."""
    with Line(home, size=(100, 40), controlling=controlling) as line:
        opened(line)
        line.hang_up()
        assert line.ended() == INTERRUPTED


def test_a_cut_while_the_terminal_took_nothing_any_more_ends_it(home: Path) -> None:
    """A connection that stands still first: whatever was to be written waits, and goes nowhere once it is cut."""
    with Line(home, size=(200, 60), controlling=False) as line:
        opened(line)
        line.pause()
        line.press("jk" * 100)
        line.hang_up()
        assert line.ended() == INTERRUPTED


def test_what_was_sent_before_a_cut_is_decided(home: Path) -> None:
    """The command is in the log, though nobody saw its answer; however often the process is told to end meanwhile."""
    with Line(home, size=(100, 40)) as line:
        opened(line)
        line.press("x")
        sent(home)
        line.hang_up()
        end = time.monotonic() + LIMIT_S
        while line.process.poll() is None:
            assert time.monotonic() < end, "it goes on"
            line.process.send_signal(signal.SIGHUP)
            time.sleep(0.05)
        assert line.ended() == INTERRUPTED
    worked(home)
    assert sorted(states(home).values()) == ["pending"] * (GROUPS * EACH - 1) + ["rejected"]


@pytest.mark.parametrize("told", ["signal", "key"])
def test_an_encoder_that_still_begins_does_not_change_how_it_ends(
    home: Path, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    """A thread in native code is not taken from under it, which would abort the process: its exit code says why it
    ended, and its last message was written."""
    monkeypatch.chdir(home.parent)
    with Line(home, size=(100, 40), first=NATIVE) as line:
        opened(line)
        line.press("x")
        until((home.parent / "begun").exists, "the thread is in native code")
        if told == "signal":
            line.process.send_signal(signal.SIGTERM)
        else:
            for shown in (f"{GROUPS} groups", "press q again to leave", ""):
                line.press("q")
                line.shows(shown)
        assert line.ended() == (INTERRUPTED if told == "signal" else NO_ANSWER)
        line.all_sent()
        last = line.sent.rpartition("\x1b[?1049l")[2]
        assert ("the gate has not answered every command yet" in last) is (told == "key")


def test_who_leaves_before_the_answer_is_told_so(home: Path) -> None:
    """q says that an answer is awaited, q again leaves; the exit code says that the gate has not answered."""
    with Line(home, size=(100, 40), first=UNDECIDED) as line:
        opened(line)
        line.press("x")
        sent(home)
        line.press("q")
        line.shows(f"{GROUPS} groups")
        line.press("q")
        line.shows("press q again to leave: 1 to reject, waiting for the gate's answer")
        line.press("q")
        assert line.ended() == NO_ANSWER
        line.all_sent()
        assert "the gate has not answered every command yet" in line.sent.rpartition("\x1b[?1049l")[2]
    worked(home)
    assert sorted(states(home).values()).count("rejected") == 1


def test_a_signal_ends_it_and_gives_the_terminal_back(home: Path) -> None:
    """The screen that was there before is there again, with its cursor; waking what did not sleep begins nothing."""
    with Line(home, size=(100, 40)) as line:
        opened(line)
        before = threads(line)
        for number in range(WAKES):
            line.process.send_signal(signal.SIGCONT)
            line.press("\r")
            line.until(lambda screen, number=number: ("digest" in screen) is (number % 2 == 0), "more, or less again")
        assert threads(line) < before + WAKES, "the pool may have grown, but not with each waking"
        line.process.send_signal(signal.SIGTERM)
        assert line.ended() == INTERRUPTED
        line.all_sent()
        assert line.sent.endswith("\x1b[?1049l\x1b[?25h\x1b[?1004l")


def test_a_terminal_with_wide_signs_is_refused(home: Path) -> None:
    """Where signs take two columns and are reckoned as one, ends of lines would be read unseen: it says what to set."""
    with Line(home, size=(100, 40), wide="§") as line:
        assert line.ended() == ERROR
        line.all_sent()
        assert "ambiguous-width characters to narrow" in " ".join(line.sent.split())
