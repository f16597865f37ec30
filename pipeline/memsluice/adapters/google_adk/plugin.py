"""The plugin of a runner of ADK: what a session sees is observed before its model does.

ADK ends a callback's round at the first plugin that returns something, so this one has to be the first: what another
one answers in its place would be observed by nobody.
"""

import asyncio
import json
from collections.abc import Collection, Mapping
from typing import Any

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.load_memory_tool import LoadMemoryTool
from google.adk.tools.tool_context import ToolContext
from google.adk.tools.transfer_to_agent_tool import TransferToAgentTool
from google.genai.types import Content, Part

from memsluice.adapters.google_adk.service import RUNNING, GatedMemoryService
from memsluice.client.requests import Session
from memsluice.errors import ConfigError
from memsluice.events.models import Origin
from memsluice.memory.observing import Observing, Recent, name_of

NAME = "memsluice"
OWN = ("load_memory", "transfer_to_agent")
"""ADK's own tools that return nothing from outside. Another one of that name is observed when it returns; of what a
session brings along its name says whose it is, so give no other tool these names."""
FOREIGN = "a tool that is not ADK's"
SAID = frozenset({
    "text", "thought", "thought_signature", "function_call", "executable_code", "tool_call", "video_metadata",
    "media_resolution", "part_metadata",
})  # fmt: skip
"""The fields of a part that a person said, or the model: any other field, a new one too, is outside content."""


class GatedPlugin(BasePlugin):
    """Give it to ``Runner(plugins=[...])``, or an ``App``, before all others, beside its :class:`GatedMemoryService`.

    It opens each session at its first run, and observes what its model is about to see: what tools returned, files,
    what an earlier run left in the session, and what the model's provider read (a search, code that it ran). Every
    tool's result is outside content unless its name is in ``trusted_tools``; ``origins`` as in
    :class:`~memsluice.memory.observing.Observing`. Where an observation is not acknowledged the run fails, and the
    model is not called.
    """

    def __init__(
        self,
        service: GatedMemoryService,
        *,
        trusted_tools: Collection[str] = (),
        origins: Mapping[str, Origin] | None = None,
    ) -> None:
        super().__init__(name=NAME)
        self._service = service
        self._observing = Observing(
            [*OWN, *trusted_tools], {"provider": Origin.WEB, "upload": Origin.UPLOAD, **(origins or {})}
        )
        self._observed = Recent()

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> Content | None:
        """Open the session, and observe what it brings along. Raises ConfigError behind another plugin."""
        if invocation_context.plugin_manager.plugins[0] is not self:
            raise ConfigError("the plugin memsluice must be the first one: what an earlier one answers is not observed")
        session = self._acting(invocation_context)
        await asyncio.to_thread(self._service.memory(session).open)
        await asyncio.to_thread(self._brought, session, invocation_context)
        return None

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Say that nobody's run is going on: what code adds behind it names its session, or is nobody's."""
        RUNNING.set(None)

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """Say for whom the tool runs, to the memory that it may ask."""
        self._acting(tool_context._invocation_context)
        return None

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        """Observe what a tool returned, an error that was made an answer too, and leave it as it is."""
        session = self._acting(tool_context._invocation_context)
        foreign = tool.name in OWN and not isinstance(tool, LoadMemoryTool | TransferToAgentTool)
        await self._observing.asaw(self._service.memory(session), FOREIGN if foreign else tool.name, _told(result))
        self._observed.put(name_of(session, tool_context.function_call_id))
        return None

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Observe what the model's provider read for it, before anything that the model calls for is done."""
        read = (llm_response.grounding_metadata, llm_response.citation_metadata)
        outside = any(_outside(part, users=False) for part in _parts(llm_response.content))
        if outside or any(read):
            session = self._acting(callback_context._invocation_context)
            await self._observing.asaw(self._service.memory(session), "provider", None)
        return None

    def _acting(self, context: InvocationContext) -> Session:
        session = self._service.session(context.app_name, context.user_id, context.session.id)
        RUNNING.set(session)
        return session

    def _brought(self, session: Session, context: InvocationContext) -> None:
        """Observe what the session's events have, and the new message, and was not observed here yet: once a tool."""
        said = [(one.author == "user", one.content) for one in context.session.events] + [(True, context.user_content)]
        outside = [part for users, content in said for part in _parts(content) if _outside(part, users=users)]
        tools: dict[str, list[str]] = {}
        for part in outside:
            answer = part.function_response
            name = name_of(session, answer.id if answer and answer.id else part.model_dump_json(exclude_none=True))
            if name not in self._observed:
                tools.setdefault("upload" if answer is None else answer.name or "", []).append(name)
        for tool, names in tools.items():
            self._observing.saw(self._service.memory(session), tool, None)
            for name in names:
                self._observed.put(name)


def _parts(content: Content | None) -> list[Part]:
    return (content.parts if content else None) or []


def _outside(part: Part, *, users: bool) -> bool:
    """Whether a part is none that a person wrote or the model made: a file is the model's own only where it made it."""
    found = part.model_dump(exclude_none=True).keys() - SAID
    return bool(found if users else found - {"inline_data"})


def _told(result: Any) -> str:
    return result if isinstance(result, str) else json.dumps(result, sort_keys=True, default=str)
