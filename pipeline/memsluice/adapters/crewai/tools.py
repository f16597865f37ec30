"""What CrewAI's agents see: each tool's result is observed before a model is shown it, in every gated memory that the
agent, or its crew, writes to.

CrewAI goes on without a hook that fails, so that what was not recorded would be shown after all, unless the hook raises
``HookAborted``: then an agent on a model with native tool calls ends its run, and any other one is told that the tool
failed.
"""

from collections.abc import Collection, Mapping
from typing import Any

from crewai.hooks.dispatch import HookAborted
from crewai.hooks.tool_hooks import ToolCallHookContext, get_after_tool_call_hooks, register_after_tool_call_hook
from crewai.memory.memory_scope import MemoryScope, MemorySlice
from crewai.memory.unified_memory import Memory
from crewai.tools.memory_tools import RecallMemoryTool, RememberTool
from crewai.utilities.string_utils import sanitize_tool_name

from memsluice.events.models import Origin
from memsluice.memory.memory import Memory as SessionMemory


class Watched:
    """A storage whose session is told what tools returned. ``trusted_tools`` and ``origins`` are of GatedStorage."""

    def __init__(
        self, memory: SessionMemory, trusted_tools: Collection[str], origins: Mapping[str, Origin] | None
    ) -> None:
        self.memory = memory
        self._trusted = frozenset(map(sanitize_tool_name, trusted_tools))
        self._origins = {sanitize_tool_name(name): origin for name, origin in (origins or {}).items()}
        if not watched():
            register_after_tool_call_hook(_observed)

    def saw(self, tool: str, result: str | None) -> None:
        """Say that the session saw what a tool returned; return once the log has that. Raises ProducerError."""
        name = sanitize_tool_name(tool)
        if name not in self._trusted:
            self.memory.observe(self._origins.get(name, Origin.TOOL), content=result)


def watched() -> bool:
    """Whether tools are observed in this process: CrewAI's hooks can be cleared."""
    return _observed in get_after_tool_call_hooks()


def memories(*holders: Any) -> list[Memory]:
    """Return the memories that crews, agents, flows, tools and views of a memory have, or that they are, each once."""
    people = [
        one
        for holder in holders
        for one in (holder, getattr(holder, "manager_agent", None), *(getattr(holder, "agents", None) or ()))
    ]
    held = [*holders, *(getattr(one, name, None) for one in people for name in ("memory", "_memory"))]
    backing = [one._memory if isinstance(one, MemoryScope | MemorySlice) else one for one in held]
    return list({id(one): one for one in backing if isinstance(one, Memory)}.values())


def _observed(context: ToolCallHookContext) -> None:
    """Publish that the crew saw a result. Raises HookAborted, and the result is withheld, where the log lacks that."""
    try:
        if not _reads_gated_memory(context.tool):
            crew = context.crew or getattr(context.agent, "crew", None)
            storages = {id(one._storage): one._storage for one in memories(crew, context.agent)}
            for storage in storages.values():
                if isinstance(storage, Watched):
                    storage.saw(context.tool_name, context.tool_result)
    except Exception as error:
        raise HookAborted(
            f"what {context.tool_name} returned is withheld, since it could not be recorded that it was seen: {error}",
            source="memsluice",
        ) from error


def _reads_gated_memory(tool: Any) -> bool:
    """Whether a tool is CrewAI's own for a memory, by its type, and that memory gated: a name says nothing."""
    own = getattr(tool, "_original_tool", None)
    if not isinstance(own, RecallMemoryTool | RememberTool):
        return False
    held = memories(own)
    return bool(held) and all(isinstance(one._storage, Watched) for one in held)
