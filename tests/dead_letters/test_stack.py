"""Dead letters through the real broker and the real workers: published at the wrong place, replayed, landed."""

import json
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.held.test_stack import call
from tests.patience import until

from memsluice.client import requests
from memsluice.client.build import build
from memsluice.client.requests import Session
from memsluice.envelope.registry import Role
from memsluice.events.names import EVERYBODY
from memsluice.events.partition import partition_of
from memsluice.events.records import Output
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice.operations.dead_letters.raw import RawPublisher
from memsluice.topics.names import EVENTS, PARTITIONS, USER_PRODUCER


def letters(home: str, tenant: str, *more: str) -> list[dict[str, Any]]:
    """Return the letters that claim a tenant."""
    found = call(home, "dead-letters", "list", "--tenant", tenant, "--since", "6h", "--json", *more)
    assert found.returncode == 0, found.stderr
    told: list[dict[str, Any]] = json.loads(found.stdout)["letters"]
    return told


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_a_misplaced_write_is_replayed_and_noise_dismissed_on_the_real_stack(stack: Any, workers: None) -> None:
    """A wrong partitioner's write lands once replayed, from the broker's bytes; garbage beside it is dismissed."""
    home, tenant = str(stack.home), f"letters-{uuid.uuid4().hex[:10]}"
    keys = KeyStore.init(stack.home, 0)
    writer, _ = issue_credential(keys, Role.USER_CHANNEL, "user", [tenant])
    for role, tenants in ((Role.READER, [tenant]), (Role.REVIEWER, [EVERYBODY])):
        issue_credential(keys, role, "operator" if role is Role.REVIEWER else "agent", tenants)
    payload = requests.write(
        "w-1", datetime.now(UTC), Session(tenant, "helper", "ana", "s-1"), "The tea is upstairs.", {}
    )
    key, value, headers = build(payload, [keys.credential(writer.kid).signer()], source="urn:test:letters")
    wrong = (partition_of(tenant, PARTITIONS) + 1) % PARTITIONS
    with RawPublisher(stack.connection.confluent(USER_PRODUCER)) as raw:
        headers = (*headers, ("x-twice", b"1"), ("x-twice", None))
        raw.publish([Output(EVENTS, wrong, key, value, headers)])
        raw.publish([Output(EVENTS, wrong, tenant.encode(), b"\x1b[2J no event", ())])
    until(lambda: len(letters(home, tenant)) == 2, "both are dead letters")
    (misplaced,) = letters(home, tenant, "--reason", "wrong_partition")
    (garbage,) = letters(home, tenant, "--reason", "malformed")
    dry = call(home, "dead-letters", "replay", "--tenant", tenant, "--since", "6h", "--dry-run")
    assert f"{misplaced['letter']}  claims {tenant}  wrong_partition → authentic" in dry.stdout, dry.stderr
    done = call(
        home, "dead-letters", "replay", "--tenant", tenant, "--since", "6h", "--yes", "--wait", "240", "--go-on"
    )
    assert f"{misplaced['letter']}  claims {tenant}  wrong_partition → accept" in done.stdout, done.stderr
    assert (done.returncode, "still malformed, not published" in done.stdout) == (3, True)
    rejected = call(home, "dead-letters", "reject", garbage["letter"], "--why", "a probe", "--yes", "--wait", "240")
    assert rejected.returncode == 0, rejected.stdout + rejected.stderr
    assert letters(home, tenant) == []
    assert sorted(one["state"] for one in letters(home, tenant, "--all")) == ["decided", "dismissed"]
    shown = call(home, "dead-letters", "show", garbage["letter"])
    assert ("<U+001B>[2J no event" in shown.stdout, "\x1b" in shown.stdout) == (True, False)

    def recalled() -> list[str]:
        found = call(home, "recall", tenant, "Where is the tea?", "--principal", "ana", "--json")
        return [one["event_id"] for one in json.loads(found.stdout)["entries"]] if found.returncode == 0 else []

    until(lambda: recalled() == ["w-1"], "the replayed write is recalled")
