"""``memsluice recall-service`` as a process: on the real stack, started wrongly, and stopped."""

import uuid
from contextlib import suppress

import httpx
import pytest
from confluent_kafka import Producer
from tests import command
from tests.http_service.process import running
from tests.patience import HANG_S, until
from tests.recall.test_cli import QUESTION, TEA, home, landed, reader
from tests.stores.build import T0

from memsluice.deployment.connection import FILE_VARIABLE
from memsluice.envelope.registry import Role
from memsluice.errors import NotPermitted, StoreUnavailable
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice.recall.recaller import Recalled
from memsluice.recall.remote import RemoteRecaller
from memsluice.stores.weaviate.store import WeaviateStore
from memsluice.topics.names import USER_LAND, WEAVIATE_LAND

__all__ = ["home", "reader"]
WHO = {"agent": "helper", "principal": "ana", "session": "s-1"}


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_an_agent_without_a_gate_key_asks_the_real_stack(stack, reader, encoder, tmp_path) -> None:
    """A process of its own between agent and stack: what landed is answered, what it counts is on its pages."""
    tenant = f"svc-{uuid.uuid4().hex[:10]}"
    store = WeaviateStore.of(stack.connection, WEAVIATE_LAND)
    producer = Producer({**stack.connection.confluent(USER_LAND), "acks": "all"})
    for output in landed(store, encoder, tenant):
        producer.produce(output.topic, key=output.key, value=output.value, partition=output.partition)
    assert producer.flush(HANG_S) == 0
    store.close()
    file = tmp_path / "connection.json"
    stack.connection.save(file)
    _, agents = issue_credential(KeyStore(reader.path), Role.READER, "agent", [tenant])
    with running("recall-service", "recall service: ", reader.path, file) as url:
        with RemoteRecaller(url, agents, timeout_s=HANG_S) as remote:

            def asked() -> Recalled | None:
                with suppress(StoreUnavailable):  # 503 of a store or a broker that is late: an agent asks again
                    return remote.recall(tenant, QUESTION, **WHO)
                return None

            answer = until(asked, "an answer")
            assert TEA in [one.content for one in answer.entries]
            assert answer.withheld.total() == 0
            with pytest.raises(NotPermitted):
                remote.recall("somebody-elses", QUESTION, **WHO)
        sound = {"ok": True, "problems": []}
        until(lambda: httpx.get(url + "/readyz", trust_env=False, timeout=HANG_S).json() == sound, "it to be ready")
        shown = httpx.get(url + "/metrics", trust_env=False, timeout=HANG_S).text
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
@pytest.mark.usefixtures("unhurried")
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
