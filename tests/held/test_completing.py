"""What a shell completes: what the index has, without a broker, and nothing that a shell would run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.held.desk import BAD, Office

from memsluice.operations.review.index import FILE

RUN = "import sys; sys.argv[0] = 'memsluice'; from memsluice.cli import run; run()"
ODD = ("$(reboot)", "-rf", "a b", "x;y", "pay\u202e", "`id`")


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Office:
    """A home with held writes of two tenants, of people with names that a shell would run, and with two filters."""
    made = Office(tmp_path_factory.mktemp("shell") / "home")
    made.write(BAD)
    made.write(BAD, tenant="globex")
    for name in ODD:
        made.write(BAD, principal=name)
    for name in ("mine", "$(reboot)"):
        made.run("filters", "save", name, "tenant:acme")
    made.run("list")
    made.home.log_file.rename(made.home.log_file.with_suffix(".away"))
    return made


def offered(home: Path, *words: str) -> list[str]:
    """Return what bash is offered for the last word of a command line."""
    line = ["memsluice", "quarantine", *words]
    asked = {"_MEMSLUICE_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(line), "COMP_CWORD": str(len(line) - 1)}
    environment = {**os.environ, **asked, "MEMSLUICE_HOME": str(home)}
    done = subprocess.run([sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("list", "--tenant", "g"), ["globex"]),
        (("list", "--reason", "wor"), ["wording.held", "wording"]),
        (("groups", "--state", "re"), ["refused", "released", "rejected"]),
        (("reject", "--filter", "m"), ["mine"]),
        (("list", "--query", "'sta"), ["state:"]),
        (("list", "--query", "'state:pe"), ["state:pending"]),
        (("list", "--query", "'tenant:acme principal:a"), ["tenant:acme", "principal:ana"]),
        (("list", "--query", "'cla"), ["claimed_by:"]),
        (("list", "--query", "'visibility:"), ["visibility:principal"]),
        (("list", "--query", "'taint:"), ["taint:yes", "taint:no"]),
        (("filters", "delete", "m"), ["mine"]),
    ],
)
def test_words_are_completed_from_the_index(office: Office, words: tuple[str, ...], found: list[str]) -> None:
    """Tenants, reasons, states, filters and the words of a query are offered though the log is away."""
    assert offered(office.home.path, *words) == found


def test_groups_are_completed_by_their_ids(office: Office) -> None:
    """As an argument of `groups` and as an option of a decision."""
    ids = offered(office.home.path, "groups", "''")
    assert ids
    assert all(len(one) == 16 and set(one) <= set("0123456789abcdef") for one in ids)
    assert offered(office.home.path, "release", "--group", ids[0][:8]) == [ids[0]]


def test_nothing_that_a_shell_would_run_is_offered(office: Office) -> None:
    """Whoever writes chooses a name: one that is no plain word is completed for nobody."""
    assert offered(office.home.path, "list", "--query", "principal:") == ["principal:ana"]
    assert offered(office.home.path, "list", "--filter", "''") == ["mine"]


def test_a_home_without_an_index_completes_nothing_and_gets_none(tmp_path: Path) -> None:
    """Pressing a key makes no file, and no error appears in the line that is being typed."""
    assert offered(tmp_path, "list", "--tenant", "a") == []
    assert not (tmp_path / FILE).exists()


def test_bash_completes_by_the_script_that_it_is_given(office: Office, tmp_path: Path) -> None:
    """The script that the command prints works in a real bash: a tenant's first letter becomes the tenant."""
    command = tmp_path / "memsluice"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{RUN}" "$@"\n')
    command.chmod(0o755)
    typed = (
        "source <(_MEMSLUICE_COMPLETE=source_bash memsluice); COMP_WORDS=(memsluice quarantine list --tenant g); "
        'COMP_CWORD=4; _memsluice_completion memsluice; echo "${COMPREPLY[@]}"'
    )
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "MEMSLUICE_HOME": str(office.home.path)}
    done = subprocess.run(["bash", "-c", typed], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["globex"]
