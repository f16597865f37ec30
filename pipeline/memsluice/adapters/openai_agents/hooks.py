"""Hooks of a run of the OpenAI Agents SDK: all that the model is about to see is observed first.

Built on ``on_llm_start`` and ``on_llm_end``, which are awaited before the model's call and before its tools run, and
not on ``on_tool_end``: that one is told of local tools alone, and neither of what a conversation brought along nor of
what the provider's own tools read.
"""

import asyncio
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from agents import Agent, ModelResponse, RunContextWrapper, RunHooks, Tool, function_tool
from agents.items import TResponseInputItem
from agents.tool_context import ToolContext
from pydantic import BaseModel

from memsluice.client.requests import Session
from memsluice.errors import ConfigError
from memsluice.events.models import Origin
from memsluice.memory.gate import Gate
from memsluice.memory.memory import TIMEOUT_S, Memory
from memsluice.memory.observing import Observing, Recent, name_of
from memsluice.memory.shelves import Shelves
from memsluice.memory.telling import NOTHING, recalled, remember

SessionOf = Callable[[RunContextWrapper[Any]], Session]
NAMESPACE = "openai_agents"
"""The part of the tenant's memory that these entries lie in."""
TOOLS = ("remember", "recall")
OURS = "ours"
"""What is noted of a call that the model made once it was one of our tools' that ran."""
INSIDE = frozenset({
    "message", "function_call", "custom_tool_call", "reasoning", "computer_call", "local_shell_call", "shell_call",
    "apply_patch_call", "tool_search_call", "mcp_approval_request", "mcp_approval_response", "compaction_trigger",
})  # fmt: skip
"""What a person said, or the model: an item of any other type, a new one too, has outside content."""
TEXT = frozenset({"input_text", "output_text", "text", "refusal"})
"""The parts of a message that somebody wrote in it; others were uploaded."""
ORIGINS = {"web_search_call": Origin.WEB, "message": Origin.UPLOAD, "file_search_call": Origin.UPLOAD}


class GatedRunHooks(RunHooks[Any]):
    """Give it to ``Runner.run(agent, ..., hooks=hooks)``, and ``hooks.tools`` to the agent, beside its other tools.

    ``session`` says whose run it is: a Session, or a function of the run's context. The session is opened at the run's
    start, and what the model sees is observed before it does: results of local tools and of MCP servers, of tools that
    the provider runs, files, and what a conversation that goes on brings along. ``trusted_tools`` and ``origins`` as
    in :class:`~memsluice.memory.observing.Observing`, by the tool's name; of the provider's tools by the item's type
    (``web_search_call``). A handoff is a tool as well (``transfer_to_...``).

    ``opens`` False leaves the session as it is, so that nothing in it becomes guidance: say so of a conversation that
    OpenAI keeps (``conversation_id``, ``previous_response_id``) and that began without these hooks, since what it
    holds is shown to nobody here. Where an observation is not acknowledged the run raises ProducerError before the
    model is called.
    """

    def __init__(
        self,
        gate: Gate,
        session: Session | SessionOf,
        *,
        trusted_tools: Collection[str] = (),
        origins: Mapping[str, Origin] | None = None,
        opens: bool = True,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._session_of: SessionOf = (lambda _: session) if isinstance(session, Session) else session
        self._observing = Observing([*TOOLS, *trusted_tools], {**ORIGINS, **(origins or {})})
        self._opens = opens
        self._shelves = Shelves(gate, NAMESPACE, timeout_s=timeout_s, opens=False)
        self._observed, self._calls, self._made = Recent(), Recent(), Recent()
        self.tools: list[Tool] = _tools(self)

    async def on_llm_start(
        self,
        context: RunContextWrapper[Any],
        agent: Agent[Any],
        system_prompt: str | None,
        input_items: list[TResponseInputItem],
    ) -> None:
        """Open the session, and observe what the model is about to see and was not observed yet."""
        await asyncio.to_thread(self._sees, self._memory(context), [dict(item) for item in input_items])

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        """Observe what the provider's own tools read, before anything that the model calls for is done."""
        items = [one.model_dump(mode="json") if isinstance(one, BaseModel) else dict(one) for one in response.output]
        memory = self._memory(context)
        for item in items:
            if item.get("call_id"):
                self._made.put(name_of(memory.session, str(item["call_id"])))
        await asyncio.to_thread(self._sees, memory, items)

    def vouched(self, context: ToolContext[Any]) -> Memory:
        """Return the memory for a call of a tool. Raises ConfigError where the model that calls it was not observed,
        such as one in a run without these hooks."""
        memory = self._memory(context)
        call = name_of(memory.session, context.tool_call_id)
        if call not in self._calls:
            raise ConfigError(
                f"the run that calls {context.tool_name} is not observed: give these hooks to every run of an agent "
                "that has its tools, also where the agent is a tool of another one (as_tool(hooks=...))"
            )
        self._made.put(call, OURS)
        return memory

    def _memory(self, context: RunContextWrapper[Any]) -> Memory:
        return self._shelves.of(self._session_of(context)).memory

    def _sees(self, memory: Memory, items: Iterable[Mapping[str, Any]]) -> None:
        if self._opens:
            memory.open()
        for item in items:
            if item.get("type") in ("function_call", "custom_tool_call"):
                self._calls.put(name_of(memory.session, str(item.get("call_id"))), str(item.get("name")))
            if not _outside(item):
                continue
            name = name_of(memory.session, json.dumps(item, sort_keys=True, default=str))
            if name not in self._observed:
                output = item.get("output")
                self._observing.saw(memory, self._tool(memory, item), output if isinstance(output, str) else None)
                self._observed.put(name)

    def _tool(self, memory: Memory, item: Mapping[str, Any]) -> str:
        """Return the name of the tool that an item is of; a server of MCP may name its tool as ours, so of a call that
        the model made here our name counts where our tool ran."""
        kind = str(item.get("type") or "message")
        call = name_of(memory.session, str(item.get("call_id")))
        called = self._calls.get(call) if kind.endswith("_output") else None
        foreign = called in TOOLS and self._made.get(call) not in (None, OURS)
        return kind if called is None or foreign else called


def _outside(item: Mapping[str, Any]) -> bool:
    if item.get("type", "message") not in INSIDE:
        return True
    content = item.get("content")
    parts = content if isinstance(content, list) and item.get("type", "message") == "message" else []
    return any(not isinstance(part, Mapping) or part.get("type") not in TEXT for part in parts)


def _tools(hooks: GatedRunHooks) -> list[Tool]:
    @function_tool(name_override=TOOLS[0], failure_error_function=None)
    async def kept(context: ToolContext[Any], text: str) -> str:
        """Remember something for good, in later conversations too. Say that it was saved only if the answer does."""
        return await asyncio.to_thread(remember, hooks.vouched(context), text)

    @function_tool(name_override=TOOLS[1], failure_error_function=None)
    async def found(context: ToolContext[Any], question: str) -> str:
        """Ask what is remembered of this person."""
        return await asyncio.to_thread(recalled, hooks.vouched(context), question) or NOTHING

    return [kept, found]
