"""``memsluice ingest-service`` as a process: on the real stack, while the broker is away, restarted, begun wrongly."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests import command
from tests.client.road import LOOPBACK, Road
from tests.ingest_service.place import WHO

from memsluice.client import requests
from memsluice.client.build import build
from memsluice.client.requests import Session
from memsluice.clock import wall_ms
from memsluice.deployment.connection import FILE_VARIABLE
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


@contextmanager
def running(home: Path, connection: Path) -> Iterator[str]:
    """Give the address of a service that runs as a process of its own, and stop it as an operator would."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(command.PREFIX)},
        "MEMSLUICE_HOME": str(home),
        FILE_VARIABLE: str(connection),
    }
    words = [sys.executable, "-m", "memsluice.cli.main", "ingest-service", "--port", "0"]
    process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        said = []
        for line in process.stderr:
            said.append(line)
            if line.startswith(BEGINS):
                break
        else:
            pytest.fail("".join(said))
        yield line.removeprefix(BEGINS).strip()
    finally:
        process.terminate()
        assert process.wait(30) == 0
        process.stderr.close()


def ask(method: str, url: str, credential: SigningCredential, **more: Any) -> httpx.Response:
    """Send a request with a credential's token."""
    headers = {"authorization": f"Bearer {mint(credential, wall_ms(), INGEST_AUDIENCE)}", **more.pop("headers", {})}
    return httpx.request(method, url, headers=headers, trust_env=False, timeout=60, **more)


@pytest.mark.stack
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
    with running(stack.home, file) as url:
        began = ask("POST", f"{url}/v1/observations", platform, json={**WHO, "origin": "open"})
        assert began.status_code == 202, began.text
        session = Session(TENANT, "assistant", "ada", "t1")
        signed = requests.write("signed-1", datetime.now(UTC), session, "Ada has a cat.", {})
        _, value, headers = build(signed, [ours.signer()], source="/tests")
        named = {name.replace("ce_", "ce-"): (text or b"").decode() for name, text in headers}
        accepted = ask("POST", f"{url}/v1/events", ours, content=value, headers=named)
        assert accepted.status_code == 202, accepted.text
        told = ask("GET", f"{url}{accepted.json()['url']}&wait=30", ours).json()
        assert (told["status"], told["place"]) == ("landed", accepted.json()["place"])
        road.cut()
        away = ask("POST", f"{url}/v1/writes", ours, json=body, headers={"idempotency-key": "k"})
        assert (away.status_code, away.headers["retry-after"]) == (503, "1")
        assert httpx.get(url + "/readyz", trust_env=False, timeout=30).status_code == 503
        road.mend()
        while (again := ask("POST", f"{url}/v1/writes", ours, json=body, headers={"idempotency-key": "k"})).is_error:
            assert again.status_code == 503
        assert ask("GET", f"{url}{again.json()['url']}&wait=30", ours).json()["status"] == "landed"
    road.cut()
    with opened(stack.home, Quota(50, 200), Meters()) as restarted:
        registry, name = restarted.registry(), (TENANT, "signed-1")
        later = asyncio.run(restarted.statuses.of(name, registry.get(ours.kid), 30))
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
