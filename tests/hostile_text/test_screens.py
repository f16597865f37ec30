"""Whatever a producer, a file or a pasted word says: no screen is broken by it, and none says what is not so."""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console
from tests.hostile_text.conftest import WIDTH, Run, Shown
from tests.hostile_text.screens import ANA, Case, cases, commands
from tests.hostile_text.texts import FORGED, NAMES, TEXTS, hidden_in, without_colours
from tests.hostile_text.town import Town

from memsluice.cli import stack, topics
from memsluice.devstack.control import ServiceStatus
from memsluice.topics.plan import TopicChange, TopicPlan

DIFFER = {"reasons", "kid", "principal", "agent", "session", "channel", "tier", "length", "held", "state"}
MARKUP, NAMED = list(TEXTS).index("markup"), list(NAMES).index("markup")
"""Which held writes have markup in their content, and in their names."""
LINE_CHARS_MAX = 9_000
"""Longest line that is not wrapped: a log's, with what is spelled out."""


@pytest.fixture(scope="module")
def todo(town: Town, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Case]]:
    """The cases, their files written."""
    return cases(town, tmp_path_factory.mktemp("scratch"))


def test_every_command_has_a_case(todo: dict[str, list[Case]]) -> None:
    """A command that is new is looked at here before anybody looks at it at three in the morning."""
    assert sorted(todo) == sorted(commands())
    assert all(todo.values())


@pytest.mark.parametrize("command", sorted(commands()))
def test_nothing_acts_hides_or_moves(command: str, todo: dict[str, list[Case]], town: Town, run: Run) -> None:
    """Screens and errors hold no control, bidi, zero-width or tag character; tables keep their width; JSON is ASCII."""
    for case in todo[command]:
        home = ["--home", str(town.home.path)] if case.at_home else []
        shown = run(*command.split(), *case.words, *home, stdin=case.stdin)
        problems = list(_problems(case, shown))
        assert not problems, f"memsluice {command} {case.words!r}: {problems[:6]}"


def _problems(case: Case, shown: Shown) -> Iterator[str]:
    if shown.code != case.code:
        yield f"exit code {shown.code}: {shown.err[-600:]}"
    if "Traceback" in shown.err:
        yield shown.err[-600:]
    yield from hidden_in(shown.err)
    if case.data and shown.code == case.code:
        for line in shown.out.splitlines() if shown.out.startswith("{") and "\n{" in shown.out else [shown.out]:
            json.loads(line)
        if not shown.out.isascii():
            yield "JSON is not ASCII"
        return
    yield from hidden_in(shown.out)
    for line in shown.out.splitlines():
        if cell_len(line) > (LINE_CHARS_MAX if case.whole else WIDTH):
            yield f"a line of {cell_len(line)} cells: {line[:90]}"
        if line.startswith(FORGED):
            yield "a content began a line of its own"


@pytest.mark.parametrize(
    ("command", "words"),
    [("quarantine show", (f"held-{MARKUP}",)), ("quarantine list", ()), ("trace", (f"held-{NAMED}",)),
     ("recall", ("acme", TEXTS["markup"], *ANA))],
)  # fmt: skip
def test_markup_is_text_in_colour_too(command: str, words: tuple[str, ...], town: Town, run: Run) -> None:
    """On a terminal with colours nothing but our own colours is written, and markup is read by nobody."""
    shown = run(*command.split(), *words, "--home", str(town.home.path), colours=True)
    assert "\x1b[" in shown.out
    plain = without_colours(shown.out)
    assert hidden_in(plain) == []
    assert "[boldred]shout[/]" in "".join(plain.split())  # however it was wrapped


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_what_a_broker_or_a_supervisor_says_is_no_less_suspect(text: str) -> None:
    """Topics, rules and users that somebody else made on the broker, and states in a file, stay in their column."""
    odd = f"[red]{text[:200]}"
    console = Console(file=io.StringIO(), width=WIDTH)
    topics._show(console, TopicPlan((TopicChange("manual", odd, odd, odd, odd),), 1))
    row = ServiceStatus("kafka", odd, None, odd, 0, None, odd)
    console.print(stack._table([row]))
    stack._explain(console, [row])
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert hidden_in(shown) == []
    assert "[red]" in shown
    assert max(map(cell_len, shown.splitlines())) <= WIDTH


def test_an_export_is_lines_of_ascii_that_hold_every_content_as_it_was(town: Town, run: Run, tmp_path: Path) -> None:
    """What a script gets is exact, and harmless to whoever opens it in a terminal."""
    file = tmp_path / "held.jsonl"
    assert run("quarantine", "export", str(file), "--all", "--home", str(town.home.path)).code == 0
    lines = [json.loads(line) for line in file.read_bytes().decode("ascii").splitlines()]
    held = {line["event_id"]: line["write"]["content"] for line in lines}
    assert any("\u202e" in content for content in held.values())
    assert any("\x1b]52" in content for content in held.values())


def test_no_row_of_a_list_is_a_contents(town: Town, run: Run) -> None:
    """Lines that begin at the margin are ours: one for each entry or group, what differs within one, and the sum."""

    def ours(*words: str) -> list[str]:
        shown = run("quarantine", *words, "--home", str(town.home.path)).out.splitlines()
        return [line for line in shown if not line.startswith("  ")]

    listed = ours("list", "--all")
    assert all(line.startswith("held-") for line in listed[:-1])
    assert listed[-1].startswith(f"{len(listed) - 1} of {len(listed) - 1} held writes")
    grouped = ours("groups", "--all", "--limit", "200")
    assert all(line[:16].isalnum() and line[16:].startswith("  acme  ") for line in grouped[:-1])
    assert grouped[-1].startswith(f"{len(grouped) - 1} groups with {len(listed) - 1} of {len(listed) - 1} writes")
    group = town.group(MARKUP)
    first, *rest, last = ours("groups", group)
    assert first.startswith(f"{group}  acme  ")
    odd = [line for line in rest if not re.match(r"held-|\d+ in all, ", line) and line.split()[0] not in DIFFER]
    assert odd == []
    assert " held writes, from " in last
