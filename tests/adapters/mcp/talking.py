"""A client of MCP's own that talks to a server of ours, and what it is told."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx2
import uvicorn
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import MCPServer
from tests.patience import HANG_S

_T = TypeVar("_T")
TEA = {"name": "Ada", "entityType": "person", "observations": ["Drinks tea in the morning."]}


def talk(target: Any, scene: Callable[[Client], Awaitable[_T]]) -> _T:
    """Return what a scene returns that is played with a client of a server, or of a transport to one."""

    async def play() -> _T:
        async with Client(target) as client:
            return await scene(client)

    return asyncio.run(play())


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """Return what a tool gives: its structured answer, or the words of its error."""
    result = await client.call_tool(tool, arguments)
    assert result.content[0].type == "text"
    return result.content[0].text if result.is_error else result.structured_content


@contextmanager
def serving(server: MCPServer) -> Iterator[str]:
    """Serve streamable HTTP on a free port of loopback; give the address."""
    config = uvicorn.Config(
        server.streamable_http_app(), "127.0.0.1", 0, log_config=None, lifespan="on", timeout_graceful_shutdown=1
    )
    running = uvicorn.Server(config)
    started, startup = threading.Event(), running.startup

    async def start(*given: Any, **named: Any) -> None:
        await startup(*given, **named)
        started.set()

    running.startup = start  # type: ignore[method-assign]
    thread = threading.Thread(target=running.run)
    thread.start()
    try:
        assert started.wait(HANG_S)
        yield f"http://127.0.0.1:{running.servers[0].sockets[0].getsockname()[1]}/mcp"
    finally:
        running.should_exit = True
        thread.join(HANG_S)


def over_http(url: str, auth: httpx2.Auth | None = None) -> Any:
    """Return a transport to an address, whose requests are signed."""
    return streamable_http_client(url, http_client=httpx2.AsyncClient(auth=auth, trust_env=False, timeout=HANG_S))
