"""``memsluice recall`` as a person meets it, on the embedded memory and on the real stack."""

import json
import uuid
from dataclasses import replace

import pytest
from confluent_kafka import Producer
from tests import command
from tests.patience import HANG_S
from tests.stores.build import PARTITIONS, RING, accepted, entry

from memsluice.clock import wall_ms
from memsluice.deployment.connection import FILE_VARIABLE
from memsluice.deployment.home import Home
from memsluice.envelope.codec import vector_from_bytes, vector_to_bytes
from memsluice.envelope.registry import Role
from memsluice.events.models import Visibility
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice.runtimes.embedded import LocalLog
from memsluice.stages.land import LandStage
from memsluice.stores.faiss.store import FaissStore
from memsluice.stores.weaviate.store import WeaviateStore
from memsluice.topics.names import EVENTS, USER_LAND, WEAVIATE_LAND

QUESTION = "What does Ana drink?"
TEA = "Ana drinks green tea\u202e, never [bold]coffee[/]."


@pytest.fixture
def home(tmp_path):
    """A home with the gate's keys."""
    place = Home(tmp_path)
    place.prepare()
    KeyStore(place.path).save_keyring(RING)
    KeyStore.init(place.path, 0)
    return place


@pytest.fixture
def reader(home):
    """The home, with a reader's credential for every tenant."""
    issue_credential(KeyStore(home.path), Role.READER, "agent", ["*"])
    return home


def landed(store, encoder, tenant: str):
    """Land three entries; return their store records."""
    stage = LandStage(lambda: RING, store, PARTITIONS, wall_ms)
    texts = [TEA, "Flights are booked through the travel desk.", "Ana drinks water."]
    vectors = [vector_from_bytes(vector_to_bytes(vector)) for vector in encoder.encode(texts)]
    shared = {"visibility": Visibility.SHARED, "written_ms": wall_ms() - 7_200_000}
    batch = [accepted(tenant, n, text, vectors[n], **shared) for n, text in enumerate(texts)]
    return [output for results in stage.process(batch) for output in results]


def ask(home, *arguments: str, environment=None):
    """Run the command; return (exit code, standard output, standard error)."""
    shown = command.run("recall", *arguments, environment={"MEMSLUICE_HOME": str(home.path), **(environment or {})})
    return shown.code, shown.out, shown.said


def embed(home, encoder, tenant="acme") -> None:
    """Fill the home's embedded memory."""
    store, log = FaissStore(home.store_file), LocalLog(home.log_file)
    for output in landed(store, encoder, tenant):
        log.append(output.topic, output.key, output.value, append_ms=1, partition=output.partition)
    store.close()
    log.close()


def test_entries_are_shown_with_tier_age_and_source(reader, encoder) -> None:
    """A table, text that can not act on the terminal, and the word that the recall was acknowledged."""
    embed(reader, encoder)
    code, out, err = ask(reader, "acme", QUESTION)
    assert (code, err) == (0, "")
    flat = " ".join(out.replace("│", " ").split())
    assert "Ana drinks green tea<U+202E>, never [bold]coffee[/]." in flat
    for part in ("3 observed", "2 h", "never", "event-0"):
        assert part in flat
    log = LocalLog(reader.log_file)
    offsets = [record.offset for record in log.read(EVENTS, 0)]
    log.close()
    assert offsets == [0]
    assert f"acknowledged by {EVENTS}[" in flat
    assert "\u202e" not in out


def test_json_is_for_programs(reader, encoder) -> None:
    """One object on standard output, ASCII only, with the reasons of what was withheld."""
    embed(reader, encoder)
    store = FaissStore(reader.store_file)
    forged = entry("acme", "Ana drinks mercury.", event_id="b", visibility=Visibility.SHARED)
    vector = vector_from_bytes(vector_to_bytes(encoder.encode([QUESTION])[0]))
    store.upsert([replace(forged, admission="", vector=vector)])
    store.close()
    code, out, _err = ask(reader, "acme", QUESTION, "--json", "-k", "1")
    found = json.loads(out)
    assert (code, out.isascii(), len(found["entries"])) == (0, True, 1)
    assert found["withheld"]["forged"] == 1
    assert "mercury" not in out


@pytest.mark.parametrize("left", ["nothing", "no byte"])
def test_a_store_that_is_gone_is_no_empty_memory(reader, encoder, left) -> None:
    """What landed and lies nowhere is told as lost, with what to do, and nothing is made in its place."""
    embed(reader, encoder)
    for file in reader.path.glob("store.db*"):
        file.unlink()
    if left == "no byte":
        reader.store_file.touch()
    code, out, err = ask(reader, "acme", QUESTION)
    assert (code, out) == (1, "")
    assert "memsluice store rebuild" in err
    assert reader.store_file.exists() is (left == "no byte")


@pytest.mark.parametrize("missing", ["everything", "tenant", "credential"])
def test_what_is_missing_is_one_clear_sentence(home, encoder, missing) -> None:
    """No memory, no such tenant, no key: what is wrong, what to do, no traceback, exit code 1 (5: no such tenant)."""
    if missing != "everything":
        embed(home, encoder)
    if missing == "tenant":
        issue_credential(KeyStore(home.path), Role.READER, "agent", ["*"])
    code, out, err = ask(home, "globex" if missing == "tenant" else "acme", QUESTION)
    said = {
        "everything": "start a stack with `memsluice stack up`",
        "tenant": "There is no tenant 'globex' in the embedded memory",
        "credential": "memsluice keys new reader",
    }
    assert (code, out) == (5 if missing == "tenant" else 1, "")
    assert said[missing] in err
    assert "Traceback" not in err


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_the_running_stack_answers(stack, reader, encoder, tmp_path) -> None:
    """Through the broker and the store, with a reader's credential and a reader's keys."""
    tenant = f"cli-{uuid.uuid4().hex[:10]}"
    store = WeaviateStore.of(stack.connection, WEAVIATE_LAND)
    producer = Producer({**stack.connection.confluent(USER_LAND), "acks": "all"})
    for output in landed(store, encoder, tenant):
        producer.produce(output.topic, key=output.key, value=output.value, partition=output.partition)
    assert producer.flush(HANG_S) == 0
    store.close()
    file = tmp_path / "connection.json"
    stack.connection.save(file)
    code, out, err = ask(reader, tenant, QUESTION, "--json", environment={FILE_VARIABLE: str(file)})
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert TEA in [one["content"] for one in found["entries"]]
    assert found["acknowledged"].startswith(f"{EVENTS}[")
