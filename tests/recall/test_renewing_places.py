"""Renewal on use from the question to the store and back: in one process, and on the real broker, workers and store."""

import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.held.test_stack import call
from tests.patience import HANG_S, until
from tests.provenance.shop import READER, Shop
from tests.stages import holding

from memsluice.client import requests
from memsluice.client.options import WriterOptions
from memsluice.client.requests import Session
from memsluice.client.writer import MemoryWriter, RecallChannel, RuntimeChannel
from memsluice.clock import wall_ms
from memsluice.deployment.home import Home
from memsluice.encoder import load_encoder
from memsluice.envelope.registry import Role
from memsluice.envelope.seals import Admission
from memsluice.events.models import Origin, Recall, Zone
from memsluice.gate.policy.model import parse
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice.readers.apart import ApartTopic
from memsluice.readers.local import LocalTopic
from memsluice.recall.freshness import FreshnessIndex
from memsluice.recall.recaller import Recalled, Recaller
from memsluice.recall.renewing import Renewals
from memsluice.stores.faiss.store import FaissStore
from memsluice.stores.opening import open_store
from memsluice.topics.names import PARTITIONS, STORE, USER_READER, WEAVIATE_RECALL

RULE = "renew_on_use: {enabled: true, least_elapsed: 0}\n"
NOTE = "The gate code is changed on Mondays."
BEN = {"agent": "helper", "principal": "ben", "session": "b-1"}


class OneHome:
    """An embedded home whose policy renews by use: what Ben's recalls are given at a time, and what they carry."""

    def __init__(self, path: Path) -> None:
        file = Home(path).policy_file
        file.parent.mkdir(parents=True)
        file.write_text(holding.text() + RULE)
        self.shop = Shop(path)
        self.policies = parse(file.read_text())
        self._encoder = load_encoder(threads=1)

    def asked(self, now_ms: int, *, goes_on: bool = True) -> tuple[Recalled, Recall]:
        """Ask as Ben, by a clock (Unix ms); ``goes_on`` has the gate decide the recall's event."""
        events: list[Recall] = []
        store, log = FaissStore(self.shop.home.store_file), self.shop.assembly.local_log()
        recaller = Recaller(
            store=store, encoder=self._encoder, keys=self.shop.keys.keyring, permits=lambda _: None,
            publish=events.append, now_ms=lambda: now_ms, new_id=lambda: f"ask-{uuid.uuid4()}",
            freshness=FreshnessIndex(
                LocalTopic(log, topic=STORE), self.shop.keys.keyring, PARTITIONS, lambda: now_ms
            ),
            renewals=Renewals(store, self.policies.of),
        )  # fmt: skip
        answer = recaller.recall("acme", "Which code opens the gate?", **BEN)
        recaller.close()
        store.close()
        log.close()
        if goes_on:
            self.shop.publish(READER, *events)
        return answer, events[0]


def only(answer: Recalled) -> Admission:
    """Return what was admitted of the one entry of an answer."""
    (found,) = answer.entries
    assert found.content == NOTE
    return found.admission


def test_in_one_process_it_is_read_after_its_first_end_and_outlives_its_store(tmp_path: Path) -> None:
    """Renewed once, though the recall is delivered twice; the old version is stale, and what the store loses is landed
    again as it was renewed."""
    home = OneHome(tmp_path / "home")
    shop = home.shop
    shop.write(NOTE, event_id="note")
    assert shop.command("promote", "note", "--yes").exit_code == 0
    who = Session("acme", **BEN)  # type: ignore[arg-type]
    shop.publish("runtime", requests.observation("o-ben", datetime.now(UTC), who, Origin.OPEN, None, None))
    begun_ms = wall_ms()
    answer, event = home.asked(begun_ms)
    before = only(answer)
    assert event.renews is not None
    assert before.expires_ms is not None
    after = only(home.asked(before.expires_ms + 1, goes_on=False)[0])
    assert (after.version, after.content_digest) > (before.version, "")
    assert after.expires_ms is not None
    assert after.expires_ms > before.expires_ms
    shop.publish(READER, event)
    assert only(home.asked(before.expires_ms + 1, goes_on=False)[0]) == after

    store = FaissStore(shop.home.store_file)
    lying = store.held("acme", Zone.GUIDANCE, [after.object_id])[after.object_id]
    store.drop("acme")
    store.close()
    repaired = shop.command("store", "repair", "--tenant", "acme")
    assert repaired.exit_code == 0, repaired.output
    assert only(home.asked(before.expires_ms + 1, goes_on=False)[0]) == after
    store = FaissStore(shop.home.store_file)
    again = store.held("acme", Zone.GUIDANCE, [after.object_id])[after.object_id]
    store.close()
    assert (again.admission, again.version, again.content) == (lying.admission, after.version, NOTE)
    # every later command finds the renewed version whole
    removed = shop.command("revoke", "note", "--contain", "--only", "--yes")
    assert removed.exit_code == 0, removed.output
    assert home.asked(before.expires_ms + 1, goes_on=False)[0].entries == ()


def place_shared_note(stack: Any, tenant: str, file: Path, policy: str) -> None:
    """Put a policy in force for a new tenant; have Ana's note shared, and sessions of Ana's and Ben's opened."""
    place = str(stack.home)
    keys = KeyStore.init(stack.home, 0)
    for role, channel in ((Role.USER_CHANNEL, "user"), (Role.RUNTIME, "agent"), (Role.READER, "agent"),
                          (Role.REVIEWER, "operator")):  # fmt: skip
        issue_credential(keys, role, channel, [tenant])  # type: ignore[arg-type]
    signed = [part for _ in range(2)
              for part in ("--kid", issue_credential(keys, Role.OPERATOR, "operator", [tenant])[0].kid)]  # fmt: skip
    file.write_text(policy)
    done = call(
        place, "policy", "activate", str(file), "--tenant", tenant, *signed, "--loosen", "--yes", "--wait", "240"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    options = WriterOptions(linger_ms=0)
    with (
        RuntimeChannel.open_local(tenant=tenant, home=stack.home, options=options) as runtime,
        MemoryWriter.open_local(tenant=tenant, role="user_channel", home=stack.home, options=options) as memory,
    ):
        for who in ("ana", "ben"):
            runtime.observe(Session(tenant, "helper", who, f"{who[0]}-1"), Origin.OPEN).result(HANG_S)
        note = memory.write(Session(tenant, "helper", "ana", "a-1"), NOTE).result(HANG_S).event_id
    until(lambda: call(place, "trace", note, "--tenant", tenant).returncode == 0, "the note is decided")
    shared = call(place, "promote", note, "--tenant", tenant, "--yes", "--wait", "240")
    assert shared.returncode == 0, shared.stdout + shared.stderr


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_on_the_stack_it_is_read_after_its_first_end(stack: Any, workers: None, tmp_path: Path) -> None:
    """Under a policy that was put in force for the tenant: the author's own question renews nothing, somebody else's
    does, once, also when the same event comes again; a reader whose clock is beyond the first end is given it."""
    tenant, text = f"use-{uuid.uuid4().hex[:10]}", holding.text() + RULE
    place_shared_note(stack, tenant, tmp_path / "policy.yaml", text)
    keys, options = KeyStore.init(stack.home, 0), WriterOptions(linger_ms=0)
    policies, events, late_ms = parse(text), list[Recall](), list[int]()
    channel = RecallChannel.open_local(tenant=tenant, home=stack.home, options=options)
    store, log = open_store(stack.connection, WEAVIATE_RECALL), ApartTopic(stack.connection, USER_READER, STORE)

    def publish(event: Recall) -> None:
        events.append(event)
        if not late_ms:
            channel.publish(event).result(HANG_S)

    def now_ms() -> int:
        return late_ms[0] if late_ms else wall_ms()

    recaller = Recaller(
        store=store, encoder=load_encoder(), keys=keys.keyring, permits=channel.check, publish=publish,
        now_ms=now_ms, new_id=channel.new_id, renewals=Renewals(store, policies.of),
        freshness=FreshnessIndex(log, keys.keyring, PARTITIONS, now_ms),
    )  # fmt: skip

    def asked(who: str) -> Recalled:
        return recaller.recall(
            tenant, "Which code opens the gate?", agent="helper", principal=who, session=f"{who[0]}-1"
        )

    try:
        answers: list[Recalled] = []
        until(lambda: answers.append(asked("ben")) or answers[-1].entries != (), "Ben is given what was shared")
        first = only(answers[-1])
        until(  # while it is written anew, what the store has and what the log says may differ: nothing is given then
            lambda: any(one.admission.version > first.version for one in asked("ana").entries),
            "somebody else's use renews it",
        )
        after = only(asked("ana"))
        assert first.expires_ms is not None
        assert after.expires_ms is not None
        assert first.expires_ms < after.expires_ms
        (used,) = (event for event in events if event.renews is not None)
        assert used.principal == "ben"
        channel.publish(used).result(HANG_S)  # the very event once more, as a producer that heard no answer sends it
        with MemoryWriter.open_local(tenant=tenant, role="user_channel", home=stack.home, options=options) as memory:
            memory.write(Session(tenant, "helper", "ana", "a-1"), "The bins are emptied on Fridays.").result(HANG_S)
        until(lambda: len(asked("ana").entries) == 2, "what came behind it has landed")
        late_ms.append(first.expires_ms + 1)
        assert only(asked("ben")) == after
    finally:
        recaller.close()
        channel.close()
        store.close()
        log.close()
