"""``memsluice ingest-service`` as a process: on the real stack, while the broker is away, restarted, begun wrongly."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from tests import command
from tests.client.road import LOOPBACK, Road
from tests.http_service.process import running
from tests.ingest_service.place import WHO
from tests.patience import HANG_S, until

from memsluice.client import requests
from memsluice.client.build import build
from memsluice.client.requests import Session
from memsluice.clock import wall_ms
from memsluice.envelope.keys import Algorithm
from memsluice.envelope.registry import Role
from memsluice.errors import RequestRefused
from memsluice.ingest_service.opening import opened
from memsluice.keystore.files import SigningCredential
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice.recall.bearer import INGEST_AUDIENCE, mint
from memsluice.stages.quota import Quota
from memsluice.telemetry.meters import Meters

TENANT = "ingest-on-stack"
BEGINS = "ingest service: "


def ask(method: str, url: str, credential: SigningCredential, **more: Any) -> httpx.Response:
    """Send a request with a credential's token."""
    headers = {"authorization": f"Bearer {mint(credential, wall_ms(), INGEST_AUDIENCE)}", **more.pop("headers", {})}
    return httpx.request(method, url, headers=headers, trust_env=False, timeout=HANG_S, **more)


def accepted_by(url: str, path: str, credential: SigningCredential, **more: Any) -> httpx.Response:
    """Return the answer of a service that has taken what was sent: as long as it says 503 the same is sent again."""

    def sent() -> httpx.Response | None:
        answer = ask("POST", url + path, credential, **more)
        assert answer.status_code in (202, 503), answer.text
        return answer if answer.status_code == 202 else None

    return until(sent, f"{path} to be accepted")


def decided(url: str, accepted: httpx.Response, credential: SigningCredential) -> dict[str, Any]:
    """Return what became of what was accepted, once that is known."""

    def told() -> dict[str, Any] | None:
        answer = ask("GET", f"{url}{accepted.json()['url']}&wait=30", credential)
        assert answer.status_code in (200, 503), answer.text
        return dict(answer.json()) if answer.json()["status"] not in ("accepted", 503) else None

    return until(told, "an event to be decided")


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_events_over_http_on_the_real_stack(stack, workers, tmp_path) -> None:
    """A signed event and one by token land; while the broker is away nothing is accepted, and afterwards the same is;
    a service that starts later tells of them all the same."""
    keys = KeyStore.init(stack.home, wall_ms())
    ours = keys.credential(
        issue_credential(keys, Role.PRODUCER, "agent", [TENANT], algorithm=Algorithm.ED25519, now_ms=wall_ms())[0].kid
    )
    platform = keys.credential(issue_credential(keys, Role.RUNTIME, "agent", [TENANT], now_ms=wall_ms())[0].kid)
    road = Road(stack.connection.bootstrap)
    over_road = stack.connection.model_copy(update={"bootstrap": f"{LOOPBACK}:{road._port}"})
    file = tmp_path / "road.json"
    over_road.save(file)
    body = {**WHO, "content": "Ada drinks cocoa.", "key": "drink"}
    with running("ingest-service", BEGINS, stack.home, file) as url:
        accepted_by(url, "/v1/observations", platform, json={**WHO, "origin": "open"})
        session = Session(TENANT, "assistant", "ada", "t1")
        signed = requests.write("signed-1", datetime.now(UTC), session, "Ada has a cat.", {})
        _, value, headers = build(signed, [ours.signer()], source="/tests")
        named = {name.replace("ce_", "ce-"): (text or b"").decode() for name, text in headers}
        accepted = accepted_by(url, "/v1/events", ours, content=value, headers=named)
        told = decided(url, accepted, ours)
        assert (told["status"], told["place"]) == ("landed", accepted.json()["place"])
        road.cut()
        away = ask("POST", f"{url}/v1/writes", ours, json=body, headers={"idempotency-key": "k"})
        assert (away.status_code, away.headers["retry-after"]) == (503, "1")
        assert httpx.get(url + "/readyz", trust_env=False, timeout=HANG_S).status_code == 503
        road.mend()
        again = accepted_by(url, "/v1/writes", ours, json=body, headers={"idempotency-key": "k"})
        assert decided(url, again, ours)["status"] == "landed"
    road.cut()
    with opened(stack.home, Quota(50, 200), Meters()) as restarted:
        registry, name = restarted.registry(), (TENANT, "signed-1")
        later = asyncio.run(restarted.statuses.of(name, registry.get(ours.kid), HANG_S))
        assert (later.status, later.object_id) == ("landed", told["object_id"])
        with pytest.raises(RequestRefused) as caught:
            asyncio.run(restarted.statuses.of(name, registry.get(platform.kid), 0))
        assert caught.value.status == 404


def test_nothing_is_served_in_the_clear_by_a_slip(tmp_path) -> None:
    """Another interface than loopback needs TLS, or a word that it ends in front."""
    shown = command.run("ingest-service", "--host", "0.0.0.0", environment={"MEMSLUICE_HOME": str(tmp_path)})  # noqa: S104
    assert shown.code == 2
    assert "unencrypted" in shown.said


def test_without_a_stack_it_says_what_to_start(tmp_path) -> None:
    """There is nothing to publish to: one line, no traceback."""
    shown = command.run("ingest-service", environment={"MEMSLUICE_HOME": str(tmp_path)})
    assert shown.code == 1
    assert "Traceback" not in shown.err
    assert "stack" in shown.said
