"""The command line's frame: quick to answer, one broken part does not break the others, errors are one line."""

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.command import run as run_in_process

from memsluice.cli import main
from memsluice.cli.examples import EXAMPLES
from memsluice.errors import ConfigError

COMMAND = [sys.executable, "-m", "memsluice.cli.main"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=600)


def test_help_lists_every_part() -> None:
    """``--help`` names every command, those of other installed distributions among them."""
    shown = run("--help").stdout
    assert all(f"  {part} " in shown for part in main.parts())


@pytest.mark.parametrize("part", sorted(main.parts()))
def test_every_part_can_be_called(part: str) -> None:
    """Each listed part exists and says how it is used."""
    shown = run_in_process(part, "--help")
    assert shown.code == 0, shown.err
    assert "Usage" in shown.out


def leaves(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Yield every command with its whole name."""
    if not (inner := getattr(command, "commands", {})):
        yield name, command
    for part, below in inner.items():
        yield from leaves(f"{name} {part}", below)


def every_command() -> dict[str, Any]:
    """Return every command by its name."""
    context = typer.Context(main.cli)
    return dict(leaf for part in main.parts() for leaf in leaves(part, main.cli.get_command(context, part)))


def test_every_help_says_what_for_what_each_word_is_and_how_it_looks() -> None:
    """``--help`` is the reference: a sentence, every argument and option explained, an example that fits."""
    found = every_command()
    assert EXAMPLES.keys() == found.keys()
    for name, command in found.items():
        assert (command.help or "").strip().endswith((".", "RUN")), name
        for parameter in command.params:
            assert parameter.name == "help" or len((parameter.help or "").split()) >= 2, f"{name}: {parameter.name}"
        options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        for example in EXAMPLES[name]:
            words = shlex.split(example)
            assert words[: 1 + len(name.split())] == ["memsluice", *name.split()]
            unknown = [word for word in words if word.startswith("-") and word not in options]
            assert not unknown, example


def test_the_help_on_the_screen_ends_with_the_example() -> None:
    """Whoever asks a command how it is used sees it used."""
    shown = run("quarantine", "release", "--help").stdout
    assert "memsluice quarantine release w-17" in shown
    assert "--install-completion" not in run("stack", "--help").stdout


def test_an_error_is_one_line_and_debug_shows_the_rest() -> None:
    """Whoever types a command reads what is wrong and not a traceback; who asks for it gets the traceback."""
    done = run("work", "polish")
    assert done.returncode == 2
    assert "'polish' is not a stage" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Traceback" in run("--debug", "work", "polish").stderr


@pytest.mark.parametrize(
    "words",
    [("recall", "acme", "who?", "--home", "FILE"), ("demo", "--home", "FILE/home"), ("demo", "--home", "/proc/x")],
)
def test_a_home_that_cannot_be_is_one_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    """A file where a folder should be, a folder that cannot be made: a sentence that names it, and no traceback."""
    file = tmp_path / "file"
    file.touch()
    named = [word.replace("FILE", str(file)) for word in words]
    done = run(*named)
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("error: ")
    assert named[-1] in done.stderr
    assert "Traceback" not in done.stderr


def test_a_part_that_cannot_be_imported_breaks_itself_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing dependency of one part is said when that part is called; the others go on."""
    monkeypatch.setitem(main.PARTS, "broken", ("memsluice.cli.broken", "A part whose module is missing."))
    main.parts.cache_clear()
    with pytest.raises(ConfigError, match="broken"):
        main.cli(["broken"], prog_name="memsluice", standalone_mode=False)
    main.cli(["policy", "--help"], prog_name="memsluice", standalone_mode=False)


def test_the_version_is_the_packages() -> None:
    """``--version`` tells what is installed."""
    from importlib import metadata

    assert run("--version").stdout.strip() == f"memsluice {metadata.version('memsluice')}"
