"""``memsluice mcp`` as a host starts it: over its standard input and output, and over HTTP."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.client import stdio
from mcp.client.stdio import StdioServerParameters, stdio_client
from tests import command
from tests.adapters.mcp.talking import TEA, call, talk
from tests.patience import HANG_S

pytestmark = pytest.mark.usefixtures("to_its_end")
ADA = ("--tenant", "acme", "--principal", "ada")


@pytest.fixture
def to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the client wait for the server's own end: one that it kills may hold the home's lock a little longer."""
    monkeypatch.setattr(stdio, "PROCESS_TERMINATION_TIMEOUT", HANG_S)


def started(preloaded: Any, home: Path, *words: str) -> Any:
    """Return a transport to a server that is started as a process."""
    variables = {**os.environ, **preloaded.variables(f"{Path(sys.executable).parent}:{os.environ['PATH']}")}
    return stdio_client(
        StdioServerParameters(
            command=str(preloaded.folder / "memsluice"),
            args=["mcp", *words],
            env={**variables, "MEMSLUICE_HOME": str(home)},
        )
    )


def test_a_host_starts_it_talks_to_it_and_finds_it_again(preloaded, tmp_path) -> None:
    """Nothing but the protocol is on its standard output; what it kept is there when it is started again."""

    async def scene(client: Any) -> Any:
        made = await call(client, "create_entities", entities=[TEA])
        assert made["note"].startswith("kept as outside data")
        return await call(client, "read_graph")

    talk(started(preloaded, tmp_path / "home", *ADA), scene)
    again = talk(started(preloaded, tmp_path / "home", *ADA), lambda client: call(client, "read_graph"))
    assert [one["name"] for one in again["entities"]] == ["Ada"]


def test_a_host_that_reports_says_so_when_it_starts_it(preloaded, tmp_path) -> None:
    """By an option of the command line, which no model writes."""
    words = (*ADA, "--host-reports", "--session", "monday-1")

    async def scene(client: Any) -> None:
        assert [one["kept"] for one in (await call(client, "create_entities", entities=[TEA]))["entities"]] == [
            "memory"
        ]
        await call(client, "report_observation", origin="web", content="a page")
        miso = {"name": "Miso", "entityType": "cat", "observations": []}
        assert "outside data" in await call(client, "create_entities", entities=[miso])

    talk(started(preloaded, tmp_path / "home", *words), scene)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--tenant", "acme"), "--principal is missing"),
        ((*ADA, "--http", "127.0.0.1:0"), "do not go with bearer tokens"),
        ((*ADA, "--no-auth"), "goes with --http"),
        ((*ADA, "--http", "0.0.0.0:0", "--no-auth"), "is for loopback"),
        (("--tenant", "acme", "--http", "0.0.0.0:0"), "unencrypted"),
        ((*ADA, "--http", "127.0.0.1:0", "--no-auth", "--host-reports", "--session", "s"), "goes with stdio"),
        ((*ADA, "--host-reports"), "go together"),
        ((*ADA, "--session", "s"), "go together"),
        ((*ADA, "--agent", "a\nb"), "not a name"),
        (("--tenant", "acme", "--http", "8091"), "HOST:PORT"),
        (("--tenant", "acme", "--http", "localhost:99999"), "HOST:PORT"),
    ],
)
def test_options_that_do_not_go_together_are_refused(tmp_path, words, why) -> None:
    """Before a gate is opened: nobody is served as somebody else, or to everybody, by mistake."""
    shown = command.run("mcp", *words, environment={"MEMSLUICE_HOME": str(tmp_path / "home")})
    assert shown.code == 2
    assert why in shown.said
    assert not (tmp_path / "home").exists()
