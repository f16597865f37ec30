"""The pages over the real broker, the real store and the real workers: what they show, and an order that is obeyed."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.console_pages.place import ORIGIN, UNHURRIED, Browser
from tests.console_pages.test_audit import said
from tests.encoders import minilm
from tests.held.test_stack import until

from memsluice.client import requests
from memsluice.client.build import build
from memsluice.client.requests import Session
from memsluice.clock import wall_ms
from memsluice.console.app import create_app
from memsluice.console.serving import opened
from memsluice.console.visitors import Visitor
from memsluice.envelope import dsse
from memsluice.envelope.codec import canonical
from memsluice.envelope.registry import Role
from memsluice.events.names import EVERYBODY, LETTER_ORDER
from memsluice.events.partition import partition_of
from memsluice.events.records import Output
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice.operations.dead_letters.raw import RawPublisher
from memsluice.topics.names import EVENTS, PARTITIONS, USER_PRODUCER

pytestmark = pytest.mark.stack


@pytest.fixture
def operator(stack: Any, workers: None) -> Iterator[tuple[Browser, KeyStore, str, str]]:
    """An operator's browser in a console of the stack, with its keys, a tenant, and who writes for it."""
    keys, tenant = KeyStore.init(stack.home, 0), f"pages-{uuid.uuid4().hex[:10]}"
    writer, _ = issue_credential(keys, Role.USER_CHANNEL, "user", [tenant])
    issue_credential(keys, Role.READER, "agent", [tenant], kid=f"reader-{tenant}")
    signer, _ = issue_credential(keys, Role.OPERATOR, "operator", [EVERYBODY])
    with opened(stack.home, UNHURRIED) as serving:
        serving.kept["encoder"] = minilm()
        token, session = serving.sessions.begin(Visitor.of(keys.registry().get(signer.kid)))
        browser = Browser(create_app(serving), base_url=ORIGIN, headers={"Accept": "text/html"}, follow_redirects=False)
        browser.cookies.set("memsluice-console", token)
        browser.csrf = session.csrf
        yield browser, keys, tenant, writer.kid


def shown(browser: TestClient, address: str) -> str:
    """Return what a page says."""
    answer = browser.get(address)
    assert answer.status_code in (200, 404), f"{address}: {said(answer.text)}"
    return said(answer.text)


def test_a_dead_letter_is_found_published_again_and_recalled_in_the_console(
    stack: Any, operator: tuple[Browser, KeyStore, str, str]
) -> None:
    """From the list by a signed order to the verdict's trace and the entry in the playground; every page answers."""
    browser, keys, tenant, writer = operator
    session = Session(tenant, "helper", "ana", "s-1")
    payload = requests.write("w-1", datetime.now(UTC), session, "The tea is upstairs.", {})
    key, value, headers = build(payload, [keys.credential(writer).signer()], source="urn:test:pages")
    wrong = (partition_of(tenant, PARTITIONS) + 1) % PARTITIONS
    with RawPublisher(stack.connection.confluent(USER_PRODUCER)) as raw:
        raw.publish([Output(EVENTS, wrong, key, value, headers)])
    listing = f"/dead-letters?tenant={tenant}&since=1d"
    until(lambda: "wrong_partition" in shown(browser, listing), "the letter is listed")
    html = browser.get(f"/dead-letters/replay?tenant={tenant}&since=1d").text
    assert "authentic: the gate would decide it" in said(html)
    name = html.partition("/dead-letters/letter?id=")[2].partition('"')[0]
    digest = shown(browser, f"/dead-letters/letter?id={name}").split(" digest ")[1].split(" ")[0]
    order = {"id": uuid.uuid4().hex, "letters": [[name, digest]], "why": "mended", "given_ms": wall_ms()}
    kid = next(iter(browser.app.state.serving.sessions._sessions.values())).visitor.kid
    signed = canonical(dsse.sign(LETTER_ORDER, canonical(order), [keys.credential(kid).signer()]))
    answer = browser.sent("/dead-letters/replays", signed)
    assert answer.status_code == 200, answer.text
    assert answer.json()["letters"][0]["published"]

    trace = f"/audit/event?id=w-1&tenant={tenant}"
    until(lambda: "admitted to guidance" in shown(browser, trace), "it is decided")
    assert "accept" in shown(browser, f"/audit?tenant={tenant}&since=1d")
    health = shown(browser, "/health")
    assert "No partition is parked." in health or "parked since" in health
    assert "in force" in shown(browser, "/policies").lower()
    shown(browser, f"/policies/compare?before=in-force&after=shipped:default&tenant={tenant}")
    shown(browser, f"/calibration?tenant={tenant}")
    asked = {"tenant": tenant, "question": "Where is the tea?", "agent": "helper", "principal": "ana",
             "session": "s-2", "as": f"reader-{tenant}"}  # fmt: skip
    until(lambda: "The tea is upstairs." in browser.sent("/recall", asked).text, "it is recalled")
    assert browser.sent("/health/checks", {}).status_code == 303
    assert "broker" in shown(browser, "/health")
