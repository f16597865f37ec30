"""The memory server over streamable HTTP, on a real socket: whose graph a call is about is its token's credential's."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.adapters.mcp.talking import TEA, call, over_http, serving, talk
from tests.patience import HANG_S

from memsluice.adapters.mcp import AUDIENCE, Person, RegistryTokens, SignedRequests, memory_server
from memsluice.clock import wall_ms
from memsluice.envelope.keys import KeyState
from memsluice.envelope.registry import ANY, Role
from memsluice.errors import InvalidArgument
from memsluice.events.models import Tier
from memsluice.keystore.store import KeyStore, issue_credential, load_credential
from memsluice.recall.bearer import mint

ACCEPTS = {"accept": "application/json, text/event-stream"}
HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip


@pytest.fixture(scope="module")
def keys(gate: Any, home: Path) -> KeyStore:
    """Return the gate's keys."""
    return KeyStore(home)


@pytest.fixture(scope="module")
def url(gate: Any, keys: KeyStore) -> Any:
    """Give the address of a server whose callers are known by tokens."""
    with serving(memory_server(gate, RegistryTokens("acme", keys.keyring, keys.registry))) as address:
        yield address


def issued(keys: KeyStore, role: Role = Role.PRODUCER, tenant: str = "acme", **limits: Any) -> Path:
    """Return the file of a credential for one person."""
    limits = {"agents": ["helper"], "principals": ["ana"], **limits}
    _, path = issue_credential(keys, role, limits.pop("channel", "agent"), [tenant], now_ms=wall_ms(), **limits)
    keys.refresh()
    return path


def hello(url: str, token: str | None) -> int:
    """Return the status of a first request with a token."""
    headers = ACCEPTS | ({} if token is None else {"authorization": f"Bearer {token}"})
    return httpx.post(url, json=HELLO, headers=headers, trust_env=False, timeout=HANG_S).status_code


def token(path: Path, at_ms: int | None = None, audience: str = AUDIENCE) -> str:
    """Return a token of a credential's file."""
    return mint(load_credential(path), wall_ms() if at_ms is None else at_ms, audience=audience)


def test_a_producers_token_reads_and_writes_its_persons_graph(url, keys) -> None:
    """And no other person's: who that is, its credential says; a reader of the same person changes nothing."""
    ana = SignedRequests(issued(keys))
    made = talk(over_http(url, ana), lambda client: call(client, "create_entities", entities=[TEA]))
    assert [one["name"] for one in made["entities"]] == ["Ada"]
    ben = SignedRequests(issued(keys, principals=["ben"]))
    assert talk(over_http(url, ben), lambda client: call(client, "read_graph"))["entities"] == []
    reader = SignedRequests(issued(keys, Role.READER))

    async def scene(client: Any) -> None:
        assert [one["name"] for one in (await call(client, "read_graph"))["entities"]] == ["Ada"]
        assert "a reader's credential changes nothing" in await call(client, "delete_entities", entityNames=["Ada"])
        assert [one["name"] for one in (await call(client, "read_graph"))["entities"]] == ["Ada"]

    talk(over_http(url, reader), scene)


def test_who_is_not_known_gets_nothing(url, keys, tmp_path) -> None:
    """No token, none that is one, an old one, another service's, another home's, another tenant's: 401 each."""
    path, foreign = issued(keys), issued(KeyStore.init(tmp_path / "other", wall_ms()))
    assert hello(url, token(path)) == 200
    for bad in (
        None, "x", "x.y.z", token(path, wall_ms() - 120_000), token(path, audience="memsluice-recall"), token(foreign),
        token(issued(keys, tenant="globex")),
    ):  # fmt: skip
        assert hello(url, bad) == 401, bad


def test_who_asks_without_end_does_not_fill_the_log(keys, caplog) -> None:
    """Anybody may ask without a credential: of one reason the log tells once a minute."""
    now_ms = [wall_ms()]
    tokens = RegistryTokens("acme", keys.keyring, keys.registry, lambda: now_ms[0])
    for _ in range(20):
        assert asyncio.run(tokens.verify_token("nonsense")) is None
    assert len(caplog.records) == 1
    now_ms[0] += 60_000
    assert asyncio.run(tokens.verify_token("nonsense")) is None
    assert len(caplog.records) == 2


@pytest.mark.parametrize(
    "limits",
    [
        {"principals": [ANY]}, {"agents": [ANY]}, {"principals": ["ana", "ben"]}, {"channel": "web"},
        {"tier": Tier.EXTERNAL_WEB}, {"role": Role.RUNTIME}, {"role": Role.USER_CHANNEL, "channel": "user"},
    ],
)  # fmt: skip
def test_a_credential_of_several_or_of_another_trust_is_turned_away(url, keys, limits) -> None:
    """It does not say whose graph it is about, or the gate would take what it says for more than it is."""
    assert hello(url, token(issued(keys, **limits))) == 401


def test_a_credential_that_is_revoked_ends_what_it_began(url, keys) -> None:
    """Each request is verified anew, those of a session that is open as well."""
    path = issued(keys, principals=["cem"])

    async def scene(client: Any) -> None:
        await call(client, "create_entities", entities=[TEA])
        kid = load_credential(path).kid
        keys.save_keyring(keys.load_keyring().retire(kid, KeyState.REVOKED))
        keys.refresh()
        await call(client, "read_graph")

    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever a client makes of a 401
        talk(over_http(url, SignedRequests(path)), scene)
    assert hello(url, token(path)) == 401


def test_nobody_goes_on_with_anothers_session(url, keys) -> None:
    """A session's id opens nothing to another credential: to it there is no such session."""
    headers = {**ACCEPTS, "authorization": f"Bearer {token(issued(keys))}"}
    first = httpx.post(url, json=HELLO, headers=headers, trust_env=False, timeout=HANG_S)
    session = {"mcp-session-id": first.headers["mcp-session-id"]}
    asks = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    other = {**ACCEPTS, "authorization": f"Bearer {token(issued(keys, principals=['ben']))}", **session}
    assert httpx.post(url, json=asks, headers=other, trust_env=False, timeout=HANG_S).status_code == 404
    assert httpx.post(url, json=asks, headers=headers | session, trust_env=False, timeout=HANG_S).status_code == 200


def test_no_page_in_a_browser_reaches_a_server_of_loopback(gate) -> None:
    """Another Host or Origin than loopback's is refused: a page whose name leads to this machine is another's."""
    with serving(memory_server(gate, Person("helper", "ana"))) as url:
        assert hello(url, None) == 200
        for bad in ({"host": "evil.example"}, {"origin": "http://evil.example"}):
            answer = httpx.post(url, json=HELLO, headers={**ACCEPTS, **bad}, trust_env=False, timeout=HANG_S)
            assert 400 <= answer.status_code < 500, bad


def test_no_host_that_reports_is_joined_by_others(gate, keys) -> None:
    """Over HTTP whoever has a token may come beside it, and nobody reports what that one saw."""
    with pytest.raises(InvalidArgument, match="session"):
        memory_server(gate, RegistryTokens("acme", keys.keyring, keys.registry), session="s")
