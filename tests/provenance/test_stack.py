"""Lineage and the commands about landed entries through the real broker, the real workers and the real store."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from tests.held.test_stack import call
from tests.patience import HANG_S, until

from memsluice.client.requests import Session
from memsluice.client.writer import MemoryWriter, RuntimeChannel
from memsluice.clock import wall_ms
from memsluice.envelope.registry import Role
from memsluice.events.models import Origin
from memsluice.keystore.store import KeyStore, issue_credential

KEYS = (
    (Role.USER_CHANNEL, "user"), (Role.PRODUCER, "web"), (Role.RUNTIME, "agent"), (Role.READER, "agent"),
    (Role.REVIEWER, "operator"), (Role.REVIEWER, "operator"),
)  # fmt: skip


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_share_lift_trace_and_revoke_on_the_real_stack(stack: Any, workers: None, tmp_path: Path) -> None:
    """Promoted to everybody, a page's label lifted by two on two occasions, the descendants found, all removed."""
    home, tenant = str(stack.home), f"prov-{uuid.uuid4().hex[:10]}"
    keys = KeyStore.init(stack.home, 0)
    for role, channel in KEYS:
        issue_credential(keys, role, channel, [tenant])  # type: ignore[arg-type]
    session, mine = Session(tenant, "helper", "ana", "s-1"), ("--tenant", tenant)

    def recalled(principal: str, *more: str) -> set[str]:
        found = call(home, "recall", tenant, "Which code opens the gate?", "--principal", principal, "--json", *more)
        return {one["event_id"] for one in json.loads(found.stdout)["entries"]} if found.returncode == 0 else set()

    with RuntimeChannel.open_local(tenant=tenant, home=stack.home) as runtime:
        runtime.observe(session, Origin.OPEN).result(HANG_S)
    with MemoryWriter.open_local(tenant=tenant, role="user_channel", home=stack.home) as memory:
        root = memory.write(session, "The gate code is changed on Mondays.").result(HANG_S).event_id
        child = memory.write(session, "The new gate code hangs in the office.", parents=[root]).result(HANG_S).event_id
    with MemoryWriter.open_local(tenant=tenant, home=stack.home) as pages:
        page = (
            pages.write(
                Session(tenant, "helper", "ana", "s-2"), "Parcels are left with the neighbour on the second floor."
            )
            .result(HANG_S)
            .event_id
        )
    until(lambda: recalled("ana") == {root, child}, "both notes are recalled")
    until(lambda: recalled("ana", "--research") == {page}, "the page is data")

    shared = call(home, "promote", root, *mine, "--yes", "--wait", "240")
    assert shared.returncode == 0, shared.stdout + shared.stderr
    until(lambda: recalled("ben") == {root}, "everybody is given the promoted note")
    assert recalled("ana") == {root, child}

    file = tmp_path / "proposal.json"
    proposed = call(home, "declassify", page, *mine, "--propose", str(file), "--yes")
    assert proposed.returncode == 0, proposed.stdout + proposed.stderr
    alone = call(home, "approve", str(file), "--yes", "--wait", "240")
    assert (alone.returncode, "is on this machine too" in alone.stderr) == (1, True), alone.stdout + alone.stderr
    (first,) = (one["keyid"] for one in json.loads(file.read_text())["signatures"])
    held = KeyStore(stack.home).find_credentials(Role.REVIEWER, wall_ms(), tenant=tenant)
    second = next(one.kid for one in held if one.kid != first)
    approved = call(home, "approve", str(file), "--kid", second, "--yes", "--wait", "240")
    assert approved.returncode == 0, approved.stdout + approved.stderr
    until(lambda: recalled("ana") == {root, child, page}, "the declassified page is guidance")
    assert recalled("ana", "--research") == set()

    tree = call(home, "lineage", child, *mine)
    assert f"declared parent {root}" in tree.stdout, tree.stdout + tree.stderr
    radius = json.loads(call(home, "blast-radius", root, *mine, "--json").stdout)
    assert {entry["event_id"] for entry in radius["tenants"][0]["entries"]} == {root, child}
    removed = call(home, "revoke", root, *mine, "--remove", "--yes", "--wait", "240")
    assert removed.returncode == 0, removed.stdout + removed.stderr
    until(lambda: (recalled("ana"), recalled("ben")) == ({page}, set()), "what was removed is given to nobody")
