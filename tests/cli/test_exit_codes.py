"""Exit codes: one table, documented, and no command ends with a number that is not in it."""

import ast
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_main import every_command, run

import memsluice.cli
from memsluice.cli import exit_codes
from memsluice.cli.exit_codes import EVERYWHERE, MEANINGS, OF_COMMANDS, ExitCode
from memsluice.errors import (
    BrokerUnavailable,
    ConfigError,
    InvalidArgument,
    NotDelivered,
    NotFound,
    PolicyError,
    StoreUnavailable,
)
from memsluice.runtimes.kafka import worker

SOURCES = sorted(Path(memsluice.cli.__file__).parent.rglob("*.py"))


def exits(path: Path) -> list[ast.Call]:
    """Return the calls of a file that end the process."""
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    return [call for call in calls if ast.unparse(call.func) in ("typer.Exit", "sys.exit", "SystemExit", "os._exit")]


def test_the_numbers_are_these() -> None:
    """Scripts rely on the numbers: a code that changes is a decision, not an accident."""
    assert {code.name: code.value for code in ExitCode} == {
        "DONE": 0, "ERROR": 1, "USAGE": 2, "REFUSED": 3, "DIFFERENT": 4, "NOT_FOUND": 5, "UNAVAILABLE": 6,
        "NO_ANSWER": 7, "INCOMPLETE": 8, "PROBLEM": 9, "WORKER_FAILED": 70, "WORKER_HUNG": 75, "INTERRUPTED": 130,
    }  # fmt: skip


def test_every_code_has_a_meaning_and_somebody_who_uses_it() -> None:
    """The table is whole: each code is explained in a sentence, and is of all commands or of some."""
    assert set(MEANINGS) == set(ExitCode)
    assert all(meaning.endswith(".") and len(meaning.split()) > 4 for meaning in MEANINGS.values())
    used = {code for codes in OF_COMMANDS.values() for code in codes}
    assert used | set(EVERYWHERE) == set(ExitCode)
    assert not used & set(EVERYWHERE)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_commands_end_with_codes_of_the_table_alone(path: Path) -> None:
    """No number is written where a process ends, and no module keeps numbers of its own."""
    for call in exits(path):
        (given,) = call.args
        names = {node.id for node in ast.walk(given) if isinstance(node, ast.Name)}
        numbers = [node.value for node in ast.walk(given) if isinstance(node, ast.Constant) and node.value is not True]
        assert names & {"ExitCode", "exit_codes", "code"}, ast.unparse(call)
        assert not [number for number in numbers if isinstance(number, int)], ast.unparse(call)
    assert not [name for name in vars_of(path) if name.startswith("EXIT_")]


def vars_of(path: Path) -> set[str]:
    """Return the names that a module assigns at its top."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def test_a_name_that_stands_for_a_code_comes_from_the_table() -> None:
    """``code`` is what :func:`of_answers` returned, in each place where it ends a command."""
    checked = 0
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        if any(ast.unparse(call.args[0]) == "code" for call in exits(path)):
            assert "if code := exit_codes.of_answers(" in text, path
            checked += 1
    assert checked > 1


def test_every_commands_own_codes_are_in_its_help() -> None:
    """Whoever writes a script reads in the help what a command may end with."""
    found = every_command()
    assert OF_COMMANDS.keys() <= found.keys()
    for name, codes in OF_COMMANDS.items():
        assert exit_codes.listed(codes) in found[name].help, name
    shown = " ".join(run("--help").stdout.split())
    assert exit_codes.listed(ExitCode) in shown


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidArgument("x"), ExitCode.USAGE), (NotFound("x"), ExitCode.NOT_FOUND),
        (BrokerUnavailable("x"), ExitCode.UNAVAILABLE), (StoreUnavailable("x"), ExitCode.UNAVAILABLE),
        (NotDelivered("x"), ExitCode.UNAVAILABLE), (ConfigError("x"), ExitCode.ERROR),
        (PolicyError("x"), ExitCode.ERROR), (OSError("x"), ExitCode.ERROR),
    ],
)  # fmt: skip
def test_an_error_has_its_code(error: Exception, code: ExitCode) -> None:
    """A script tells a wrong command line from a broker that is away without reading the message."""
    assert exit_codes.of_error(error) is code


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("nonsense",), 2), (("trace",), 2), (("quarantine", "list", "--limit", "0"), 2),
        (("quarantine", "list", "--since", "yesterday", "--home", "HOME"), 2), (("work", "polish"), 2),
        (("stack", "logs", "zookeeper", "--home", "HOME"), 2), (("stack", "status", "--home", "HOME"), 6),
        (("recall", "acme", "who?", "--home", "HOME"), 1), (("policy", "diff", "FILE"), 4), (("--version",), 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)  # fmt: skip
def test_commands_exit_as_the_table_says(words: tuple[str, ...], code: int, tmp_path: Path) -> None:
    """The process itself ends so, a wrong option and a wrong value alike."""
    file = tmp_path / "policy.yaml"
    file.write_text("name: other\nprofile: strict\n")
    named = [word.replace("HOME", str(tmp_path / "home")).replace("FILE", str(file)) for word in words]
    done = run(*named)
    assert done.returncode == code, done.stderr


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ({"missing": True, "refused": True, "left": True}, 7), ({"missing": False, "refused": True, "left": True}, 3),
        ({"missing": False, "refused": False, "left": True}, 8), ({"missing": False, "refused": False}, 0),
    ],
)  # fmt: skip
def test_of_several_answers_what_may_yet_change_counts_first(answers: dict[str, Any], code: int) -> None:
    """A run with a missing answer is not called refused: the missing one may still be carried out."""
    assert exit_codes.of_answers(**answers) == code


def test_a_workers_own_codes_are_those_of_the_table() -> None:
    """A worker lies below the command line and ends its process itself."""
    assert (worker.EXIT_OK, worker.EXIT_FAILED, worker.EXIT_HUNG) == (
        ExitCode.DONE, ExitCode.WORKER_FAILED, ExitCode.WORKER_HUNG,
    )  # fmt: skip
