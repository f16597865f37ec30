"""``memsluice recall-service`` as a process: on the real stack, started wrongly, and stopped."""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from confluent_kafka import Producer
from tests import command
from tests.recall.test_cli import QUESTION, TEA, home, landed, reader
from tests.stores.build import T0

from memsluice.deployment.connection import FILE_VARIABLE
from memsluice.envelope.registry import Role
from memsluice.errors import NotPermitted
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice.recall.remote import RemoteRecaller
from memsluice.stores.weaviate.store import WeaviateStore
from memsluice.topics.names import USER_LAND, WEAVIATE_LAND

__all__ = ["home", "reader"]
WHO = {"agent": "helper", "principal": "ana", "session": "s-1"}


@contextmanager
def running(place, connection) -> Iterator[str]:
    """Give the address of a service that runs as a process of its own, and stop it as an operator would."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(command.PREFIX)},
        "MEMSLUICE_HOME": str(place.path),
        FILE_VARIABLE: str(connection),
    }
    words = [sys.executable, "-m", "memsluice.cli.main", "recall-service", "--port", "0"]
    process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        said = []
        for line in process.stderr:
            said.append(line)
            if line.startswith("recall service: "):
                break
        else:
            pytest.fail("".join(said))
        yield line.removeprefix("recall service: ").strip()
    finally:
        process.terminate()
        assert process.wait(30) == 0
        process.stderr.close()


@pytest.mark.stack
def test_an_agent_without_a_gate_key_asks_the_real_stack(stack, reader, encoder, tmp_path) -> None:
    """A process of its own between agent and stack: what landed is answered, what it counts is on its pages."""
    tenant = f"svc-{uuid.uuid4().hex[:10]}"
    store = WeaviateStore.of(stack.connection, WEAVIATE_LAND)
    producer = Producer({**stack.connection.confluent(USER_LAND), "acks": "all"})
    for output in landed(store, encoder, tenant):
        producer.produce(output.topic, key=output.key, value=output.value, partition=output.partition)
    assert producer.flush(30) == 0
    store.close()
    file = tmp_path / "connection.json"
    stack.connection.save(file)
    _, agents = issue_credential(KeyStore(reader.path), Role.READER, "agent", [tenant])
    with running(reader, file) as url:
        with RemoteRecaller(url, agents) as remote:
            answer = remote.recall(tenant, QUESTION, **WHO)
            assert TEA in [one.content for one in answer.entries]
            assert answer.withheld.total() == 0
            with pytest.raises(NotPermitted):
                remote.recall("somebody-elses", QUESTION, **WHO)
        assert httpx.get(url + "/readyz", trust_env=False).json() == {"ok": True, "problems": []}
        shown = httpx.get(url + "/metrics", trust_env=False).text
    assert 'memsluice_recalls_total{status="200"} 1.0' in shown
    assert 'memsluice_recalls_total{status="403"} 1.0' in shown


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--host", "0.0.0.0"), "unencrypted"),  # noqa: S104 - that it is refused
        (("--tls-certificate", __file__), "--tls-certificate and --tls-key go together"),
    ],
)
def test_memory_is_not_served_in_the_clear_by_a_slip(home, words, why) -> None:
    """Another interface than loopback needs TLS, or a word that it ends in front."""
    shown = command.run("recall-service", *words, environment={"MEMSLUICE_HOME": str(home.path)})
    assert shown.code == 2
    assert why in shown.said


def test_without_a_stack_it_says_what_to_start(home) -> None:
    """There is nothing to serve: one line, no traceback."""
    shown = command.run("recall-service", environment={"MEMSLUICE_HOME": str(home.path)})
    assert shown.code == 1
    assert "Traceback" not in shown.err
    assert "stack" in shown.said


@pytest.mark.stack
def test_without_a_credential_of_its_own_it_says_how_to_make_one(stack, home, tmp_path) -> None:
    """A reader's credential for one tenant is not enough for all."""
    file = tmp_path / "connection.json"
    stack.connection.save(file)
    issue_credential(KeyStore(home.path), Role.READER, "agent", ["acme"], now_ms=T0)
    variables = {"MEMSLUICE_HOME": str(home.path), FILE_VARIABLE: str(file)}
    shown = command.run("recall-service", environment=variables)
    assert shown.code == 1
    assert "memsluice keys new reader --tenant '*'" in shown.said


def test_known_good_questions_that_are_wrong_stop_the_start(home, tmp_path) -> None:
    """Nobody believes that questions are asked which are not: one line says where the file is wrong."""
    file = tmp_path / "known.yaml"
    file.write_text("questions: [{tenant: acme, question: x, entries: []}]")
    shown = command.run("recall-service", "--known-good", str(file), environment={"MEMSLUICE_HOME": str(home.path)})
    assert shown.code == 1
    assert "questions.0.entries" in shown.said
