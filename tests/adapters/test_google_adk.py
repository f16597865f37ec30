"""The service and the plugin in ADK's own runner, with a scripted model in the place of one that was talked into it."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.cli.service_registry import get_service_registry
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import load_memory
from google.adk.tools.tool_context import ToolContext
from google.genai import types
from tests.adapters.conftest import FACT, PAGE

from memsluice import Origin
from memsluice.adapters.google_adk import GatedMemoryService, GatedPlugin
from memsluice.errors import InvalidArgument, NotRemembered, WriteHeld
from memsluice.memory.embedded import EmbeddedGate

APP = "assistant"


class Scripted(BaseLlm):
    """Says what it was given, and keeps what it was shown."""

    model: str = "scripted"
    script: list[Any] = []  # noqa: RUF012 - pydantic copies it
    shown: list[Any] = []  # noqa: RUF012

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        """Answer with the next step."""
        self.shown.append([part for one in llm_request.contents for part in one.parts])
        step = self.script.pop(0) if self.script else "Done."
        if isinstance(step, LlmResponse):
            yield step
        else:
            part = types.Part(text=step) if isinstance(step, str) else types.Part(function_call=step)
            yield LlmResponse(content=types.Content(role="model", parts=[part]))


def calling(name: str, **args: str) -> types.FunctionCall:
    """Return a model's call of a tool."""
    return types.FunctionCall(name=name, args=args)


def browse(url: str) -> dict[str, str]:
    """Read a page."""
    return {"page": PAGE}


async def remember(text: str, tool_context: ToolContext) -> str:
    """Keep something for good."""
    entry = MemoryEntry(content=types.Content(parts=[types.Part(text=text)]))
    try:
        await tool_context.add_memory(memories=[entry])
    except NotRemembered as error:
        return type(error).__name__
    return "remembered"


class Desk:
    """One runner, with or without a plugin, whose sessions stay."""

    def __init__(self, service: GatedMemoryService, plugins: Sequence[BasePlugin] = ()) -> None:
        self.sessions = InMemorySessionService()
        self.model = Scripted(script=[], shown=[])
        agent = LlmAgent(name=APP, model=self.model, tools=[browse, remember, load_memory])
        app = App(name=APP, root_agent=agent, plugins=list(plugins))
        self.runner = Runner(app=app, session_service=self.sessions, memory_service=service)

    def run(self, user: str, day: str, *script: Any, parts: Sequence[types.Part] = ()) -> dict[str, Any]:
        """Return what the tools of a run answered, by name."""
        self.model.script[:] = script
        message = types.Content(role="user", parts=[types.Part(text="Rates?"), *parts])

        async def ran() -> list[Any]:
            name = f"{user}-{day}"
            if await self.sessions.get_session(app_name=APP, user_id=user, session_id=name) is None:
                await self.sessions.create_session(app_name=APP, user_id=user, session_id=name)
            return [one async for one in self.runner.run_async(user_id=user, session_id=name, new_message=message)]

        answers = [one for event in asyncio.run(ran()) for one in event.get_function_responses()]
        return {one.name: one.response for one in answers}


ATTACK = (calling("browse", url="u"), calling("remember", text=FACT))
ASK = calling("load_memory", query="Where do payments go?")


def desk(gate: EmbeddedGate, **given: Any) -> Desk:
    """Return a runner with the plugin."""
    service = GatedMemoryService(gate)
    return Desk(service, [GatedPlugin(service, **given)])


def kept(answers: dict[str, Any]) -> str:
    """Return what the tool that remembers answered."""
    return str(answers["remember"]["result"])


def test_what_a_page_says_does_not_become_guidance(shared) -> None:
    """The session saw the page before the model did, and the person's next session is told nothing of it."""
    mine = desk(shared, origins={"browse": Origin.WEB})
    answers = mine.run("adk-page", "monday", *ATTACK)
    assert answers["browse"] == {"page": PAGE}
    assert kept(answers) == "WriteHeld"
    assert not mine.run("adk-page", "tuesday", ASK)["load_memory"]["result"].memories


def test_without_the_observation_the_same_attack_is_remembered(shared) -> None:
    """So the test above can fail; what is given is a line that says what it is."""
    mine = desk(shared, trusted_tools=["browse"])
    assert kept(mine.run("adk-control", "monday", *ATTACK)) == "remembered"
    (found,) = mine.run("adk-control", "tuesday", ASK)["load_memory"]["result"].memories
    assert found.content.parts[0].text.startswith("[memory tier=3 source=agent id=adk-")
    assert FACT in found.content.parts[0].text


def test_without_the_plugin_nothing_becomes_guidance(shared) -> None:
    """Nobody vouches for what the session saw: the service alone opens none."""
    assert kept(Desk(GatedMemoryService(shared)).run("adk-alone", "monday", ATTACK[1])) == "WriteHeld"


def test_the_model_is_shown_nothing_that_is_not_observed(shared, silent) -> None:
    """Where the broker does not acknowledge, the run fails before the page reaches the model."""
    mine = desk(shared)
    with pytest.raises(RuntimeError, match="no broker"):
        mine.run("adk-silent", "monday", *ATTACK)
    assert len(mine.model.shown) == 1


class Earlier(BasePlugin):
    """Another plugin."""


def test_a_plugin_before_it_is_refused(shared) -> None:
    """What that one answers in the place of a tool would be observed by nobody."""
    service = GatedMemoryService(shared)
    mine = Desk(service, [Earlier(name="earlier"), GatedPlugin(service)])
    with pytest.raises(RuntimeError, match="must be the first"):
        mine.run("adk-second", "monday", "Hello.")
    assert mine.model.shown == []


def test_what_the_session_or_the_person_brings_was_seen_too(shared) -> None:
    """A page of an earlier run without the plugin lies in the session; a file comes with the message."""
    service = GatedMemoryService(shared)
    mine = Desk(service)
    mine.run("adk-before", "monday", ATTACK[0])
    mine.runner.plugin_manager.plugins.append(GatedPlugin(service))
    assert kept(mine.run("adk-before", "monday", ATTACK[1])) == "WriteHeld"
    file = types.Part(inline_data=types.Blob(data=b"x", mime_type="text/plain"))
    assert kept(desk(shared).run("adk-file", "monday", ATTACK[1], parts=[file])) == "WriteHeld"


def test_a_tool_of_somebody_else_that_has_adks_name_is_observed(shared) -> None:
    """A server of MCP names its tools as it likes: what such a one returns is outside content all the same."""

    def named(query: str) -> dict[str, str]:
        """Read a page."""
        return {"page": PAGE}

    named.__name__ = "load_memory"
    mine = desk(shared)
    mine.runner.agent.tools = [named, remember]
    assert kept(mine.run("adk-name", "monday", ASK, ATTACK[1])) == "WriteHeld"


def test_behind_a_run_nobodys_is_going_on(shared) -> None:
    """What code adds after a run without naming a session is not added to the run's, which is clean."""
    mine = desk(shared)
    service, sessions = mine.runner.memory_service, mine.sessions
    message = types.Content(role="user", parts=[types.Part(text="Hello.")])

    async def ran() -> str:
        await sessions.create_session(app_name=APP, user_id="adk-after", session_id="adk-after-monday")
        async for _ in mine.runner.run_async(user_id="adk-after", session_id="adk-after-monday", new_message=message):
            assert service.session(APP, "adk-after", None).session == "adk-after-monday"
        return str(service.session(APP, "adk-after", None).session)

    assert asyncio.run(ran()) != "adk-after-monday"


def test_what_the_models_provider_read_was_seen_too(shared) -> None:
    """A search that Gemini runs calls no tool here."""
    searched = LlmResponse(
        content=types.Content(role="model", parts=[types.Part(function_call=ATTACK[1])]),
        grounding_metadata=types.GroundingMetadata(web_search_queries=["rates"]),
    )
    assert kept(desk(shared).run("adk-grounded", "monday", searched)) == "WriteHeld"


def test_a_session_is_added_once_and_a_memory_can_be_deleted(shared) -> None:
    """ADK adds a session as often as it likes: each event is one write. A deleted memory is found no more."""
    mine = desk(shared)
    mine.run("adk-added", "monday", "Ada drinks tea in the morning.")
    service = mine.runner.memory_service
    found = asyncio.run(mine.sessions.get_session(app_name=APP, user_id="adk-added", session_id="adk-added-monday"))
    for _ in range(2):
        asyncio.run(service.add_session_to_memory(found))
    asked = {"app_name": APP, "user_id": "adk-added", "query": "What does Ada drink?"}
    memories = asyncio.run(service.search_memory(**asked)).memories
    assert sorted("tea" in one.content.parts[0].text for one in memories) == [False, True]
    (tea,) = [one for one in memories if "tea" in one.content.parts[0].text]

    whose = service.session(APP, "adk-added", "adk-added-desk")
    gone = {"app_name": APP, "user_id": "adk-added", "memory_id": tea.id}
    with service.acting(whose), pytest.raises(WriteHeld):  # nobody vouches for who asks that
        asyncio.run(service.delete_memory(**gone))
    service.memory(whose).open()
    with service.acting(whose):
        asyncio.run(service.delete_memory(**gone))
    assert tea.id not in [one.id for one in asyncio.run(service.search_memory(**asked)).memories]
    with pytest.raises(InvalidArgument):
        asyncio.run(service.delete_memory(app_name=APP, user_id="adk-added"))


def test_a_memory_that_is_added_again_is_there_again(shared) -> None:
    """What returns as added can be read, also where the same was there before and was replaced or deleted since."""
    service = GatedMemoryService(shared)
    whose = service.session(APP, "adk-again", "adk-again-desk")
    service.memory(whose).open()
    who = {"app_name": APP, "user_id": "adk-again"}

    async def told() -> str:
        found = await service.search_memory(**who, query="What does Ada drink?")
        return " ".join(one.content.parts[0].text for one in found.memories)

    async def added(text: str) -> str:
        entry = MemoryEntry(id="drink", content=types.Content(parts=[types.Part(text=text)]))
        await service.add_memory(**who, memories=[entry])
        return await told()

    async def all_of_it() -> None:
        for text in ("Ada drinks tea.", "Ada drinks coffee.", "Ada drinks tea."):
            assert text in await added(text)
        await service.delete_memory(**who, memory_id="drink")
        assert await told() == ""
        assert "tea" in await added("Ada drinks tea.")

    with service.acting(whose):
        asyncio.run(all_of_it())


def test_adks_commands_find_it_by_its_scheme(shared) -> None:
    """``--memory_service_uri memsluice://``."""
    service = GatedMemoryService(shared)
    service.register("memsluice")
    assert get_service_registry().create_memory_service("memsluice://here") is service
