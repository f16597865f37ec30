"""Another process takes a port between its being chosen and the server's own bind. The servers are small programs."""

import contextlib
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memsluice.deployment.connection import Connection
from memsluice.deployment.layout import Layout
from memsluice.devstack import control, kafka, ports, weaviate
from memsluice.devstack.services import Service
from memsluice.devstack.stackfile import StackFile
from memsluice.errors import StackError

SERVER = """
import socket, sys, time
with socket.create_server(("127.0.0.1", int(sys.argv[1]))):
    time.sleep(1000)
"""


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((ports.LOOPBACK, port), timeout=1):
        return True
    return False


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home whose two servers bind their ports, and do nothing else."""

    def services(layout: Layout, file: StackFile, *_: Any) -> tuple[Service, ...]:
        return tuple(
            Service(
                name=name, command=(sys.executable, "-c", SERVER, str(file.ports[name])), environment={},
                directory=str(layout.home), log=str(layout.log(name)), grace_s=5.0,
            )
            for name in control.SERVICES
        )  # fmt: skip

    def kafka_there(connection: Connection) -> bool:
        return _listens(int(connection.bootstrap.rpartition(":")[2]))

    def weaviate_there(connection: Connection) -> bool:
        return _listens(connection.weaviate_http_port)

    for name in ("install_kafka", "install_weaviate"):
        monkeypatch.setattr(control.install, name, lambda *_: tmp_path)
    monkeypatch.setattr(control, "_services", services)
    monkeypatch.setattr(control, "_PROBES", {kafka.NAME: kafka_there, weaviate.NAME: weaviate_there})
    home = tmp_path / "home"
    yield home
    control.down(home, wipe=True)


@pytest.fixture
def thief(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Takes, after each choice, the port of the server that is named in this list, as long as there is one."""
    names, pick = list[str](), ports.pick
    with contextlib.ExitStack() as held:

        def picked(*arguments: Any) -> dict[str, int]:
            chosen = pick(*arguments)
            if names:
                taken = held.enter_context(socket.socket())
                taken.bind((ports.LOOPBACK, chosen[names.pop()]))  # and does not listen: nobody takes it for the server
            return chosen

        monkeypatch.setattr(ports, "pick", picked)
        yield names


@pytest.mark.parametrize("name", control.SERVICES)
def test_a_port_that_was_taken_meanwhile_is_replaced(small: Path, thief: list[str], name: str) -> None:
    """The start fails, its servers are stopped, and the next one is made on other ports: nobody has to do it again."""
    thief.append(name)
    connection = control.up(small)
    assert [one.state for one in control.status(small)] == ["running", "running"]
    assert _listens(connection.weaviate_http_port)


def test_a_port_that_is_taken_each_time_is_an_error(small: Path, thief: list[str]) -> None:
    """It is tried a few times, and not for ever; the error has the server's words, and nothing runs on."""
    thief += [control.SERVICES[0]] * 9
    with pytest.raises(StackError, match="Address already in use"):
        control.up(small)
    assert len(thief) == 9 - control.STARTS_MAX
    assert not control.is_running(Layout(small))


def test_a_server_that_fails_otherwise_is_started_once(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another port does not mend is told at once."""
    starts: list[str] = []

    def fails(*_: Any) -> None:
        starts.append("started")
        raise StackError("the data is of another version")

    monkeypatch.setattr(control, "_start", fails)
    with pytest.raises(StackError, match="another version"):
        control.up(small)
    assert starts == ["started"]
