"""Middleware for LangChain's agents: what tools return is observed before the model sees it, and what is remembered
stands in the prompt with its tier.

Without it nobody tells the gate what a session saw, and whatever the agent writes after reading a page passes for its
own.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse, ToolCallRequest
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langgraph.types import Command

from memsluice.adapters.langgraph.store import GatedStore
from memsluice.events.models import Origin
from memsluice.memory.observing import Observing
from memsluice.recall import prompt

ToolResult = ToolMessage | Command[Any]


class GatedMemoryMiddleware(AgentMiddleware[Any, Any]):
    """Give it to ``create_agent(middleware=[...])`` beside the :class:`GatedStore` that the agent remembers in.

    Every tool's result is outside content, and taints the session, unless its name is in ``trusted_tools``: those whose
    results nobody outside can write, such as a calculator, or the tools that read this store. ``origins`` says of a
    tool by name what it reads (``Origin.WEB`` of a browser); of others it is ``Origin.TOOL``. With ``recall`` above 0
    so many entries nearest to the last thing that the person said go into the system prompt of each call.

    A tool that raises has been seen, too, and so has what a provider's own tools returned (a search of the web, say).
    Where an observation is not acknowledged, the call raises (ProducerError) and the model is shown nothing.
    """

    def __init__(
        self,
        store: GatedStore,
        *,
        trusted_tools: Collection[str] = (),
        origins: Mapping[str, Origin] | None = None,
        recall: int = 0,
    ) -> None:
        super().__init__()
        self._store = store
        self._observing = Observing(trusted_tools, origins)
        self._recall = recall

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]) -> ToolResult:
        """Run the tool, publish that the session saw what it returned, and return it once the log has that."""
        try:
            result = handler(request)
        except Exception:  # whoever handles it may show the model what it says
            self._saw(request, None)
            raise
        self._saw(request, result)
        return result

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolResult]]
    ) -> ToolResult:
        """As :meth:`wrap_tool_call`."""
        try:
            result = await handler(request)
        except Exception:  # as above
            await asyncio.to_thread(self._saw, request, None)
            raise
        await asyncio.to_thread(self._saw, request, result)
        return result

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Put what is remembered into the prompt, where that was asked for; observe what the model's provider read."""
        response = handler(self._reminded(request))
        self._read_by_provider(response)
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """As :meth:`wrap_model_call`."""
        response = await handler(await asyncio.to_thread(self._reminded, request))
        await asyncio.to_thread(self._read_by_provider, response)
        return response

    def _read_by_provider(self, response: ModelResponse[Any]) -> None:
        """Observe the results of tools that the model's provider ran: no call of a tool is seen here for them."""
        blocks = [one for message in response.result for one in message.content_blocks]
        if any(block["type"] == "server_tool_result" for block in blocks):
            self._store.shelf().memory.observe(Origin.WEB)

    def _saw(self, request: ToolCallRequest, result: ToolResult | None) -> None:
        content = result.text if isinstance(result, ToolMessage) else None
        self._observing.saw(self._store.shelf().memory, str(request.tool_call["name"]), content)

    def _reminded(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        said = next((one.text for one in reversed(request.messages) if isinstance(one, HumanMessage)), "")
        answer = self._store.shelf().answer(said, self._recall) if self._recall else None
        if answer is None:
            return request
        before = "" if request.system_message is None else f"{request.system_message.text}\n\n"
        return request.override(system_message=SystemMessage(before + prompt.block(answer)))
