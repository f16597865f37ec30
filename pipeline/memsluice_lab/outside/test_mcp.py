"""MCP's own conformance client against our memory server, over streamable HTTP.

It is a package of npm (``@modelcontextprotocol/conformance``, which calls itself unstable), and needs a newer Node than
many machines have, which npm brings, too.
"""

import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn

from memsluice.adapters.mcp import Person, memory_server, open_reading_gate

PACKAGES = ("@modelcontextprotocol/conformance@0.1.16", "node@22")
LIMIT_S = 300
_NAMED_TOOL = "calls a tool of the suite's own server by its name"
_NAMED_RESOURCE = "reads a resource of the suite's own server by its name"
_NAMED_PROMPT = "asks for a prompt of the suite's own server by its name"
NOT_OURS = {
    "logging-set-level": "of logging, which the protocol has deprecated and we don't declare",
    "completion-complete": "of completions, which we don't declare",
    "tools-call-simple-text": _NAMED_TOOL,
    "tools-call-image": _NAMED_TOOL,
    "tools-call-audio": _NAMED_TOOL,
    "tools-call-embedded-resource": _NAMED_TOOL,
    "tools-call-mixed-content": _NAMED_TOOL,
    "tools-call-with-logging": _NAMED_TOOL,
    "tools-call-error": f"{_NAMED_TOOL}; ours would pass, since an unknown tool is an error as well",
    "tools-call-with-progress": _NAMED_TOOL,
    "tools-call-sampling": _NAMED_TOOL,
    "tools-call-elicitation": _NAMED_TOOL,
    "json-schema-2020-12": "looks for a tool of the suite's own server by its name",
    "elicitation-sep1034-defaults": _NAMED_TOOL,
    "elicitation-sep1330-enums": _NAMED_TOOL,
    "server-sse-polling": f"{_NAMED_TOOL}, which closes its own stream",
    "resources-read-text": _NAMED_RESOURCE,
    "resources-read-binary": _NAMED_RESOURCE,
    "resources-templates-read": _NAMED_RESOURCE,
    "resources-subscribe": "of subscriptions, which we don't declare",
    "resources-unsubscribe": "of subscriptions, which we don't declare",
    "prompts-get-simple": _NAMED_PROMPT,
    "prompts-get-with-args": _NAMED_PROMPT,
    "prompts-get-embedded-resource": _NAMED_PROMPT,
    "prompts-get-with-image": _NAMED_PROMPT,
}
"""What does not apply to a memory server, and why."""
OURS = (
    "server-initialize", "ping", "tools-list", "server-sse-multiple-streams", "resources-list", "prompts-list",
    "dns-rebinding-protection",
)  # fmt: skip


def conformance(*words: str) -> str:
    """Run the suite's command and return what it says."""
    packages = [word for package in PACKAGES for word in ("--package", package)]
    command = ["npx", "--yes", *packages, "--", "conformance", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    return f"{done.stdout}\n{done.stderr}"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the address of a memory server on an embedded gate, with nobody's token, as the suite has none.

    A scenario that the suite adds fails all: it is to be looked at, and not left out by silence.
    """
    assert shutil.which("npx"), "needs npx, which Node brings"
    listed = set(re.findall(r"^ +- ([\w-]+)", conformance("list").split("Client scenarios")[0], re.MULTILINE))
    assert listed == {*OURS, *NOT_OURS}, listed ^ {*OURS, *NOT_OURS}
    gate = open_reading_gate(tenant="suite", home=tmp_path_factory.mktemp("home"), mode="embedded")
    server = uvicorn.Server(
        uvicorn.Config(
            memory_server(gate, Person("agent", "ada")).streamable_http_app(), "127.0.0.1", 0, log_config=None,
            timeout_graceful_shutdown=1,
        )
    )  # fmt: skip
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        thread.join(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
    server.should_exit = True
    thread.join()
    gate.close()


@pytest.mark.parametrize("scenario", OURS)
def test_scenario(url: str, scenario: str, tmp_path: Path) -> None:
    """All checks of one scenario succeed, and there are some; a warning is none that does."""
    said = conformance("server", "--url", url, "--scenario", scenario, "--output-dir", str(tmp_path))
    counts = re.search(r"Passed: (\d+)/(\d+), (\d+) failed, (\d+) warnings", said)
    assert counts is not None, said[-2_000:]
    passed, every, failed, warned = map(int, counts.groups())
    assert 0 < passed == every, said[-2_000:]
    assert failed == warned == 0, said[-2_000:]
