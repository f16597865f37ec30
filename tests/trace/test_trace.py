"""``memsluice trace`` as a person meets it: on the log that a demo leaves, and on the real broker."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pydantic import SecretStr
from tests.gate.build import PARTITION, RING
from tests.patience import HANG_S
from tests.trace.audit import Gate
from tests.trace.command import run
from tests.trace.conftest import Played
from tests.trace.test_show import shown_lives

from memsluice.deployment.connection import FILE_VARIABLE
from memsluice.deployment.home import Home
from memsluice.errors import BrokerUnavailable
from memsluice.keystore.store import KeyStore
from memsluice.operations.trace.collect import trace
from memsluice.readers import kafka
from memsluice.readers.kafka import KafkaTopic
from memsluice.readers.local import LocalTopic
from memsluice.runtimes.embedded import LocalLog
from memsluice.topics.names import AUDIT, USER_OPERATOR, USER_READER, USER_SCREEN


def test_a_scored_write_of_the_demo_is_explained(played: Played) -> None:
    """Real vectors, real window: what MEMSAD reports of a write, and the score beside its threshold."""
    code, out, said = run("trace", played.reported("memsad.above_threshold"), "--home", str(played.home))
    assert (code, said) == (0, "")
    for part in (", above the threshold", "μ + κ σ", "●"):
        assert part in out


def test_a_tainted_write_leads_to_what_its_session_saw(played: Played) -> None:
    """From the entry to the page, as programs read it: the ancestor's own record is there."""
    event_id = played.first("monitor.rule_4_tainted")
    code, out, _ = run("trace", event_id, "--tenant", "casa-lindqvist", "--json", "--home", str(played.home))
    found = json.loads(out)
    assert (code, out.isascii(), found["unverified"], len(found["partitions"])) == (0, True, 0, 1)
    (life,) = found["lives"]
    causes = [cause.partition(":")[2] for cause in life["attempts"][0]["verdict"]["taint_causes"]]
    assert causes
    assert {one["event_id"] for one in found["ancestors"]} == set(causes)


def test_every_event_of_the_day_can_be_traced(played: Played) -> None:
    """No kind of event, no decision and no reason is left without a page."""
    log = LocalLog(Home(played.home).log_file)
    topic, keyring = LocalTopic(log, name="log"), KeyStore(played.home).keyring()
    kinds = {(v["type"], v["decision"], *v["reasons"]): v["event_id"] for v in played.verdicts}
    for event_id in kinds.values():
        found = trace(topic, keyring, event_id, None, 8)
        assert "now " in shown_lives(found.lives, found.ancestors)
    log.close()
    assert len(kinds) > 6


def test_what_is_not_there_says_where_was_looked(played: Played) -> None:
    """Exit code 1 and one line, with the place and where else it may be; a hostile id does not act on the terminal."""
    code, out, said = run("trace", "no\u202e\x1b[2Jsuch", "--home", str(played.home))
    assert (code, out) == (5, "")
    for part in ("not found", "<U+202E><U+001B>[2J", f"the {len(played.verdicts)} records of {AUDIT}", "dead-letter"):
        assert part in said
    assert str(played.home) in said
    code, out, said = run("trace", "nothing", "--tenant", "acme", "--json", "--home", str(played.home))
    assert (code, json.loads(out)["lives"]) == (5, [])
    assert "partition 4" in said


def test_an_empty_home_says_what_to_do(tmp_path: Path) -> None:
    """No stack and no log: one sentence, no traceback."""
    code, out, said = run("trace", "e1", "--home", str(tmp_path))
    assert (code, out) == (1, "")
    assert "`memsluice stack up`" in said
    assert "Traceback" not in said


def test_several_tenants_with_the_id_are_all_shown(tmp_path: Path) -> None:
    """An id is unique in a tenant only: each is shown, and that there are several is said first."""
    place, gate, event_id = Home(tmp_path), Gate(), "shared-id"
    KeyStore(tmp_path).save_keyring(RING)
    log = LocalLog(place.log_file)
    for tenant in ("acme", "globex"):
        gate.write(id=event_id, tenant=tenant)
    for one in gate.audit:
        log.append(AUDIT, one.key, one.value, one.headers, append_ms=1)
    log.close()
    code, out, _ = run("trace", event_id, "--home", str(tmp_path))
    assert code == 0
    assert out.startswith("2 tenants have an event of this id.")
    assert [line.split()[1] for line in out.splitlines() if line.startswith("tenant ")] == ["acme", "globex"]
    _, out, _ = run("trace", event_id, "--tenant", "globex", "--home", str(tmp_path))
    assert "2 tenants" not in out


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_the_running_stack_is_read_as_an_operator(stack: Any, tmp_path: Path) -> None:
    """Through SCRAM and the access rules, every partition to its end, with the operator's grants and no others."""
    gate, event_id = Gate(), f"trace-{uuid.uuid4().hex[:10]}"
    KeyStore(tmp_path).save_keyring(RING)
    gate.write(id=event_id)
    producer = Producer({**stack.connection.confluent(USER_SCREEN), "acks": "all"})
    gate.again(0)
    for one in gate.audit:
        producer.produce(AUDIT, key=one.key, value=one.value, headers=list(one.headers), partition=PARTITION)
    assert producer.flush(HANG_S) == 0
    file = tmp_path / "connection.json"
    stack.connection.save(file)
    environment = {FILE_VARIABLE: str(file), "MEMSLUICE_HOME": str(tmp_path)}
    code, out, said = run("trace", event_id, "--json", environment=environment)
    assert (code, said) == (0, "")
    found = json.loads(out)
    assert found["looked_in"] == f"the broker at {stack.connection.bootstrap}"
    assert [one["redelivered"] for one in found["lives"][0]["attempts"]] == [1]
    assert found["lives"][0]["attempts"][0]["audit"]["append_ms"] > 1_790_000_000_000
    code, _, said = run("trace", "nobody", environment=environment)
    assert code == 5
    assert stack.connection.bootstrap in said


def refused(log: KafkaTopic, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return as what a reader is refused. A broker that is busy says nothing of it for a while: it is asked longer."""
    for limit_s in (kafka.ASK_TIMEOUT_S, 60.0, HANG_S):
        monkeypatch.setattr(kafka, "ASK_TIMEOUT_S", limit_s)
        with pytest.raises(BrokerUnavailable) as told:
            list(log.read(PARTITION))
        if "this user" in str(told.value):
            break
    log.close()
    return str(told.value)


@pytest.mark.stack
def test_who_may_not_read_the_audit_is_told_so(stack: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without the grant, and a wrong password, are one clear error and no endless wait."""
    assert "this user may not read it" in refused(KafkaTopic.of(stack.connection, USER_READER), monkeypatch)
    wrong = stack.connection.model_copy(update={"users": {USER_OPERATOR: SecretStr("wrong")}})
    assert "this user or this password" in refused(KafkaTopic.of(wrong), monkeypatch)
