"""The memory tool in Anthropic's own tool runner, against an API that plays a model which was talked into it."""

import asyncio
import json
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic, AsyncAnthropic, beta_async_tool, beta_tool
from anthropic.lib.tools import ToolError
from tests.adapters.conftest import FACT, PAGE, person

from memsluice import Origin
from memsluice.adapters.anthropic import AsyncGatedMemoryTool, GatedMemoryTool
from memsluice.adapters.anthropic.files import Files
from memsluice.memory.embedded import EmbeddedGate
from memsluice.memory.memory import Memory
from memsluice.memory.shelf import Shelf

SEARCH = {"type": "web_search_20250305", "name": "web_search"}


@beta_tool
def browse(url: str) -> str:
    """Read a page."""
    return PAGE


@beta_tool(name="browse")
def broken(url: str) -> str:
    """Read a page."""
    raise ValueError(PAGE)


@beta_async_tool(name="browse")
async def abrowse(url: str) -> str:
    """Read a page."""
    return PAGE


class Api:
    """Answers with one step after the other, and keeps what it was sent."""

    def __init__(self, *script: dict[str, Any]) -> None:
        self.script = list(script)
        self.sent: list[dict[str, Any]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        """Answer with the next step."""
        self.sent.append(json.loads(request.content))
        step = self.script.pop(0) if self.script else {"type": "text", "text": "Done."}
        stop = "tool_use" if step["type"] == "tool_use" else "end_turn"
        return httpx2.Response(200, json={
            "id": "m", "type": "message", "role": "assistant", "model": "scripted", "content": [step],
            "stop_reason": stop, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        })  # fmt: skip

    async def asynchronous(self, request: httpx2.Request) -> httpx2.Response:
        """Answer with the next step."""
        return self(request)

    def results(self) -> list[tuple[bool, str]]:
        """Return the results of tools that it was sent, once each: whether it is an error, and what it says."""
        said = [one for sent in self.sent for message in sent["messages"] for one in message["content"]]
        found = {one["tool_use_id"]: one for one in said if isinstance(one, dict) and one["type"] == "tool_result"}
        return [(bool(one.get("is_error")), one["content"]) for one in found.values()]


def calling(name: str, **given: Any) -> dict[str, Any]:
    """Return a model's call of a tool."""
    return {"type": "tool_use", "id": f"t-{name}", "name": name, "input": given}


ASKED: Any = {"max_tokens": 100, "model": "scripted", "messages": [{"role": "user", "content": "Rates?"}]}
KEEP = calling("memory", command="create", path="/memories/payments.md", file_text=FACT)
LOOK = calling("memory", command="view", path="/memories/payments.md")
ATTACK = (calling("browse", url="u"), KEEP)


def run(tools: list[Any], *script: dict[str, Any]) -> Api:
    """Return the API after a run."""
    api = Api(*script)
    client = Anthropic(api_key="k", max_retries=0, http_client=httpx2.Client(transport=httpx2.MockTransport(api)))
    client.beta.messages.tool_runner(tools=tools, **ASKED).until_done()
    return api


def test_what_a_page_says_does_not_become_a_file(shared) -> None:
    """The session saw the page before the model did; the model is told, and a next session finds no file."""
    tool = GatedMemoryTool(shared, person("an-page"), origins={"browse": Origin.WEB})
    (page, kept) = run(tool.with_tools(browse), *ATTACK).results()
    assert page == (False, PAGE)
    assert kept[0]
    assert kept[1].startswith("NOT remembered")
    later = GatedMemoryTool(shared, person("an-page", "tuesday"))
    assert run(later.with_tools(), LOOK).results()[0] == (
        True,
        "The path /memories/payments.md does not exist. Please provide a valid path.",
    )


def test_without_the_observation_the_same_attack_is_a_file(shared) -> None:
    """So the test above can fail."""
    tool = GatedMemoryTool(shared, person("an-control"), trusted_tools=["browse"])
    assert run(tool.with_tools(browse), *ATTACK).results()[1] == (
        False,
        "File created successfully at: /memories/payments.md",
    )
    later = GatedMemoryTool(shared, person("an-control", "tuesday"))
    assert FACT in run(later.with_tools(), LOOK).results()[0][1]


def test_the_same_holds_for_the_asynchronous_client(shared) -> None:
    """It has a tool of its own."""
    tool = AsyncGatedMemoryTool(shared, person("an-async"))
    api = Api(*ATTACK)

    async def ran() -> None:
        http = httpx2.AsyncClient(transport=httpx2.MockTransport(api.asynchronous))
        client = AsyncAnthropic(api_key="k", max_retries=0, http_client=http)
        await client.beta.messages.tool_runner(tools=tool.with_tools(abrowse), **ASKED).until_done()

    asyncio.run(ran())
    assert [(error, text[:14]) for error, text in api.results()] == [(False, PAGE[:14]), (True, "NOT remembered")]


def test_the_model_is_shown_nothing_that_is_not_observed(shared, silent) -> None:
    """Where the broker does not acknowledge, the model is told that in the page's place."""
    tool = GatedMemoryTool(shared, person("an-silent"))
    api = run(tool.with_tools(browse), *ATTACK[:1])
    assert api.results()[0][0]
    assert "no broker" in api.results()[0][1]
    assert "Mallory" not in json.dumps(api.sent)


def test_a_tool_that_fails_was_seen_too(shared) -> None:
    """The model is told what its error says."""
    tool = GatedMemoryTool(shared, person("an-broken"))
    results = run(tool.with_tools(broken), *ATTACK).results()
    assert "Mallory" in results[0][1]
    assert results[-1][1].startswith("NOT remembered")


def test_beside_a_tool_that_anthropic_runs_nothing_becomes_guidance(shared) -> None:
    """What it returns is seen by nobody here, so nobody vouches for the session; nor without :meth:`with_tools`."""
    for name, tools in (("an-hosted", [SEARCH]), ("an-bare", None)):
        tool = GatedMemoryTool(shared, person(name))
        if tools is not None:
            Memory(shared, person(name)).open()  # by somebody who did not know of that tool
        results = run([tool] if tools is None else tool.with_tools(*tools), KEEP).results()
        assert results[0][1].startswith("NOT remembered")


@pytest.fixture
def files(shared: EmbeddedGate, request: pytest.FixtureRequest) -> Files:
    """Return a test's own files."""
    return Files(Shelf(Memory(shared, person(f"an-{request.node.name[:40]}"), namespace="anthropic")))


def test_files_are_made_shown_and_changed_as_the_documentation_says(files) -> None:
    """Claude was trained on these answers."""
    assert files.view("/memories", None).split("\n")[1:] == ["0B\t/memories"]
    assert files.create("/memories/a/tea.md", "Ada drinks tea.\nIn the morning.\n") == (
        "File created successfully at: /memories/a/tea.md"
    )
    assert files.view("/memories/a/tea.md", None) == (
        "Here's the content of /memories/a/tea.md with line numbers:\n"
        "     1\tAda drinks tea.\n     2\tIn the morning.\n     3\t"
    )
    assert files.view("/memories/a/tea.md", [2, 2]).split("\n")[1:] == ["     2\tIn the morning."]
    assert files.str_replace("/memories/a/tea.md", "morning", "evening") == (
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        "     1\tAda drinks tea.\n     2\tIn the evening.\n     3\t"
    )
    assert files.insert("/memories/a/tea.md", 1, "With milk.\n") == "The file /memories/a/tea.md has been edited."
    assert files.view("/memories", None).split("\n") == [
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:",
        "43B\t/memories", "43B\t/memories/a/", "43B\t/memories/a/tea.md",
    ]  # fmt: skip


def test_files_and_folders_are_moved_and_deleted(files) -> None:
    """A folder with all that is in it; where something lies already nothing is moved."""
    files.create("/memories/a/one.md", "Ada drinks tea.")
    files.create("/memories/a/two.md", "Ada lives in Lyon.")
    assert files.rename("/memories/a", "/memories/b") == "Successfully renamed /memories/a to /memories/b"
    assert "Lyon" in files.view("/memories/b/two.md", None)
    with pytest.raises(ToolError, match="already exists"):
        files.rename("/memories/b/one.md", "/memories/b/two.md")
    assert files.delete("/memories/b") == "Successfully deleted /memories/b"
    assert files.view("/memories", None).split("\n")[1:] == ["0B\t/memories"]


@pytest.mark.parametrize(("call", "given", "why"), [
    ("create", ("/memories/there.md", "x y"), "already exists"),
    ("create", ("/memories/there.md/x", "x y"), "is a file"),
    ("create", ("/memories", "x y"), "is a directory"),
    ("str_replace", ("/memories/there.md", "gin", "tea"), "did not appear verbatim"),
    ("str_replace", ("/memories/there.md", "tea", "gin"), "in lines: 1, 2"),
    ("str_replace", ("/memories/none.md", "tea", "gin"), "does not exist"),
    ("insert", ("/memories/there.md", 9, "x"), r"range \[0, 2\]"),
    ("delete", ("/memories",), "Cannot delete"),
    ("delete", ("/memories/none.md",), "does not exist"),
    ("rename", ("/memories/there.md", "/memories/there.md/in"), "is a file"),
    ("view", ("/memories/../etc/passwd", None), "must be below /memories"),
    ("view", ("/memories/%2e%2e/../x", None), "must be below /memories"),
    ("view", ("/memoriesx/a", None), "must be below /memories"),
    ("view", ("memories/a", None), "must be below /memories"),
    ("view", ("/etc/passwd", None), "must be below /memories"),
    ("create", ("/memories//a", "x"), "must be below /memories"),
    ("create", ("/memories/a\x00b", "x"), "must be below /memories"),
])  # fmt: skip
def test_what_cannot_be_done_is_told(shared, call, given, why) -> None:
    """A path elsewhere too: whichever way it is spelt."""
    shelf = Shelf(Memory(shared, person("an-told"), namespace="anthropic"))
    files = Files(shelf)
    if "there.md" not in files.view("/memories", None):
        files.create("/memories/there.md", "Ada drinks tea.\nBlack tea.\n")
    with pytest.raises(ToolError, match=why):
        getattr(files, call)(*given)
