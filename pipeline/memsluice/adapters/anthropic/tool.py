"""Claude's memory tool on a gate, and the other tools of a run beside it: what these return is observed first."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any

from anthropic.lib.tools import (
    BetaAbstractMemoryTool,
    BetaAsyncAbstractMemoryTool,
    BetaAsyncBuiltinFunctionTool,
    BetaAsyncFunctionTool,
    BetaBuiltinFunctionTool,
    BetaFunctionTool,
    BetaFunctionToolResultType,
)
from anthropic.types.beta import BetaCacheControlEphemeralParam, BetaToolUnionParam

from memsluice.adapters.anthropic.files import Files
from memsluice.client.requests import Session
from memsluice.events.models import Origin
from memsluice.memory.gate import Gate
from memsluice.memory.memory import TIMEOUT_S, Memory
from memsluice.memory.observing import Observing
from memsluice.memory.shelf import Shelf

NAMESPACE = "anthropic"
"""The part of the tenant's memory that these files lie in."""
Saw = Callable[[str, str | None], None]


class _Gated:
    """What both kinds of the tool have: a session's files, and what becomes of the other tools' results."""

    def __init__(
        self,
        gate: Gate,
        session: Session,
        *,
        trusted_tools: Collection[str] = (),
        origins: Mapping[str, Origin] | None = None,
        timeout_s: float = TIMEOUT_S,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)  # type: ignore[call-arg]  # the SDK's class comes behind
        self._memory = Memory(gate, session, namespace=NAMESPACE, timeout_s=timeout_s, opens=False)
        self._files = Files(Shelf(self._memory))
        self._observing = Observing(trusted_tools, origins)
        self._opens = self._unseen = False

    def with_tools(self, *others: Any) -> list[Any]:
        """Return this tool and a run's other ones, all of them, such that what they return is observed first.

        This opens the session, unless one is among them that runs elsewhere (a search that Anthropic runs, a toolset):
        what that one returns passes by nobody here, so it counts as seen from the beginning, and nothing that is
        written becomes guidance.
        """
        seen = [_observed(one, self._saw) for one in others]
        self._unseen = self._unseen or None in seen
        self._opens = not self._unseen
        return [self, *(other if one is None else one for one, other in zip(seen, others, strict=True))]

    def _saw(self, tool: str, content: str | None) -> None:
        self._open()
        self._observing.saw(self._memory, tool, content)

    def _open(self) -> None:
        if self._opens:
            self._memory.open()
        if self._unseen:  # somebody else may have opened it
            self._memory.observe(Origin.TOOL)

    def _answer(self, command: Any) -> str:
        """Do what the model asks. Raises ToolError, which it is told."""
        self._open()
        files, path = self._files, getattr(command, "path", "")
        match command.command:
            case "view":
                return files.view(path, command.view_range)
            case "create":
                return files.create(path, command.file_text)
            case "str_replace":
                return files.str_replace(path, command.old_str, command.new_str)
            case "insert":
                return files.insert(path, command.insert_line, command.insert_text)
            case "delete":
                return files.delete(path)
            case _:
                return files.rename(command.old_path, command.new_path)


class GatedMemoryTool(_Gated, BetaAbstractMemoryTool):
    """Give ``tool.with_tools(...)`` to ``client.beta.messages.tool_runner(tools=...)``.

    A file below ``/memories`` is a document of the session's person, in all sessions; each change of a file is one
    signed write of the whole. What is held or refused is told to the model as an error, and so is a path elsewhere.
    Where an observation, or a write, is not acknowledged, the model is told so in the result's place. ``trusted_tools``
    and ``origins`` as in :class:`~memsluice.memory.observing.Observing`.
    """

    def _do(self, command: Any) -> BetaFunctionToolResultType:
        return self._answer(command)

    view = create = str_replace = insert = delete = rename = _do


class AsyncGatedMemoryTool(_Gated, BetaAsyncAbstractMemoryTool):
    """As :class:`GatedMemoryTool`, for ``AsyncAnthropic``."""

    async def _do(self, command: Any) -> BetaFunctionToolResultType:
        return await asyncio.to_thread(self._answer, command)

    view = create = str_replace = insert = delete = rename = _do


class _Observed(BetaBuiltinFunctionTool):
    def __init__(self, tool: Any, saw: Saw) -> None:
        self._tool, self._saw = tool, saw

    def to_dict(self) -> BetaToolUnionParam:
        return self._tool.to_dict()  # type: ignore[no-any-return]

    def call(self, input: object) -> BetaFunctionToolResultType:
        try:
            result = _whole(self._tool.call(input))
        except Exception:  # the model is told what it says
            self._saw(self.name, None)
            raise
        self._saw(self.name, result if isinstance(result, str) else None)
        return result


class _AsyncObserved(BetaAsyncBuiltinFunctionTool):
    def __init__(self, tool: Any, saw: Saw) -> None:
        self._tool, self._saw = tool, saw

    def to_dict(self) -> BetaToolUnionParam:
        return self._tool.to_dict()  # type: ignore[no-any-return]

    async def call(self, input: object) -> BetaFunctionToolResultType:
        try:
            result = _whole(await self._tool.call(input))
        except Exception:  # as above
            await asyncio.to_thread(self._saw, self.name, None)
            raise
        await asyncio.to_thread(self._saw, self.name, result if isinstance(result, str) else None)
        return result


def _observed(tool: Any, saw: Saw) -> _Observed | _AsyncObserved | None:
    if isinstance(tool, BetaFunctionTool | BetaBuiltinFunctionTool):
        return _Observed(tool, saw)
    return _AsyncObserved(tool, saw) if isinstance(tool, BetaAsyncFunctionTool | BetaAsyncBuiltinFunctionTool) else None


def _whole(result: BetaFunctionToolResultType) -> BetaFunctionToolResultType:
    """Return a result that can be read twice."""
    return result if isinstance(result, str) else list(result)
