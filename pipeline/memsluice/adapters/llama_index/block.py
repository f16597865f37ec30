"""A block of LlamaIndex's memory, gated: what leaves the short-term memory is signed, screened and verified."""

import asyncio
import copy
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock, ToolCallBlock
from llama_index.core.memory.memory import BaseMemoryBlock
from llama_index.core.tools import AsyncBaseTool, BaseTool, ToolOutput, adapt_to_async_tool
from pydantic import PrivateAttr

from memsluice.client.requests import Session
from memsluice.errors import BatchNotRemembered, MemsluiceError, ProducerError
from memsluice.events.models import Origin
from memsluice.memory.gate import Gate
from memsluice.memory.memory import TIMEOUT_S, Memory
from memsluice.memory.observing import Observing, Recent, name_of
from memsluice.memory.telling import NO_ENTRY, RECALL_K, recalled

NAMESPACE = "llama_index"
"""The part of the tenant's memory that these entries lie in."""
NAME = "Remembered"
TOOL, UPLOAD = "tool", "upload"
CHARS_A_TOKEN = 4
"""Of plain English; a line of a block has more tokens than that says: rather too much of it is cut than too little."""
OnHeld = Callable[[BatchNotRemembered], None]


class GatedMemoryBlock(BaseMemoryBlock[str]):
    """Give it to ``Memory.from_defaults(memory_blocks=[...])``, and the agent ``block.observed(tools)`` for its tools.

    Recalled entries go into the prompt as a block that says what each is (:mod:`memsluice.recall.prompt`); messages
    that leave the short-term memory are written, each once. Where one is held or refused ``aput`` raises
    BatchNotRemembered, with each one's result, after all were said; ``on_held`` is told instead, so that the agent's
    run goes on. Where the log did not take one it raises in either case.

    The session is opened by :meth:`observed`, to which all of the agent's tools are given: without it nothing that is
    written becomes guidance. Results that a history brings along, and files, are observed before they are shown.
    ``k`` entries are recalled; ``trusted_tools`` and ``origins`` as in :class:`~memsluice.memory.observing.Observing`.
    """

    name: str = NAME
    _memory: Memory = PrivateAttr()
    _observing: Observing = PrivateAttr()
    _observed: Recent = PrivateAttr(default_factory=Recent)
    _calls: Recent = PrivateAttr(default_factory=Recent)
    _k: int = PrivateAttr()
    _on_held: OnHeld | None = PrivateAttr()
    _opens: bool = PrivateAttr(default=False)

    def __init__(
        self,
        gate: Gate,
        session: Session,
        *,
        k: int = RECALL_K,
        trusted_tools: Collection[str] = (),
        origins: Mapping[str, Origin] | None = None,
        on_held: OnHeld | None = None,
        timeout_s: float = TIMEOUT_S,
        **fields: Any,
    ) -> None:
        super().__init__(**fields)
        self._memory = Memory(gate, session, namespace=NAMESPACE, timeout_s=timeout_s, opens=False)
        self._observing = Observing(trusted_tools, {UPLOAD: Origin.UPLOAD, **(origins or {})})
        self._k = k
        self._on_held = on_held

    def observed(self, tools: Sequence[BaseTool]) -> list[AsyncBaseTool]:
        """Return all of an agent's tools such that their results are observed before the model sees them.

        An agent is shown the error instead of a result that was not acknowledged.
        """
        self._opens = True
        return [_observed(adapt_to_async_tool(tool), self._saw) for tool in tools]

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        return await asyncio.to_thread(self._recalled, messages or [])

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await asyncio.to_thread(self._kept, messages)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Leave out the last entries; None where none is left. The first ones are of the better tiers."""
        lines, left_out = content.split("\n"), 0
        while len(lines) > 1 and left_out < tokens_to_truncate * CHARS_A_TOKEN:
            left_out += len(lines.pop()) + 1
        return "\n".join(lines) if len(lines) > 1 else None

    def _recalled(self, messages: Sequence[ChatMessage]) -> str:
        self._open()
        self._brought(messages)
        said = next((one.content for one in reversed(messages) if one.role == MessageRole.USER and one.content), "")
        return recalled(self._memory, said, self._k)

    def _kept(self, messages: Sequence[ChatMessage]) -> None:
        results: list[object] = []
        for number, message in enumerate(messages, 1):
            said = message.role in (MessageRole.USER, MessageRole.ASSISTANT) and bool((message.content or "").strip())
            try:
                self._open()
                self._brought(messages[:number])  # what came before and is not observed taints this one, too
                if said:
                    name = self._name("message", message.content)
                    results.append(self._memory.write(message.content or "", event_id=name))
            except (*NO_ENTRY, ProducerError) as error:  # they left the short-term memory: the others are said
                results.append(error)
        if any(isinstance(one, MemsluiceError) for one in results):
            held = BatchNotRemembered(results)
            if self._on_held is None or any(isinstance(one, ProducerError) for one in results):
                raise held
            self._on_held(held)

    def _open(self) -> None:
        if self._opens:
            self._memory.open()

    def _saw(self, tool: str, content: str | None) -> None:
        self._open()
        self._observing.saw(self._memory, tool, content)
        self._observed.put(self._name("result", content))

    def _brought(self, messages: Iterable[ChatMessage]) -> None:
        """Observe what messages have from outside and was not observed here: results of tools, and files."""
        for message in messages:
            for block in message.blocks:
                if isinstance(block, ToolCallBlock):
                    self._calls.put(str(block.tool_call_id), block.tool_name)
            if message.role in (MessageRole.TOOL, MessageRole.FUNCTION):
                name = self._name("result", message.content or "")
                if name not in self._observed:
                    self._saw(
                        self._calls.get(str(message.additional_kwargs.get("tool_call_id"))) or TOOL,
                        message.content or "",
                    )
            elif message.role == MessageRole.USER and any(not isinstance(one, TextBlock) for one in message.blocks):
                name = self._name("upload", message.model_dump_json())
                if name not in self._observed:
                    self._observing.saw(self._memory, UPLOAD, None)
                    self._observed.put(name)

    def _name(self, kind: str, content: str | None) -> str:
        """Return a name, of an event too, for a content in this session."""
        return f"llama-index-{name_of(self._memory.session, kind, content)[:32]}"


def _observed(tool: AsyncBaseTool, saw: Callable[[str, str | None], None]) -> AsyncBaseTool:
    """Return a copy of a tool, of its own class, since LlamaIndex hands some more than others."""
    made: Any = copy.copy(tool)
    name = tool.metadata.get_name()

    def call(*args: Any, **kwargs: Any) -> ToolOutput:
        try:
            output = tool.call(*args, **kwargs)
        except Exception as error:  # the agent shows the model what it says
            saw(name, str(error))
            raise
        saw(name, output.content)
        return output

    async def acall(*args: Any, **kwargs: Any) -> ToolOutput:
        try:
            output = await tool.acall(*args, **kwargs)
        except Exception as error:  # as above
            await asyncio.to_thread(saw, name, str(error))
            raise
        await asyncio.to_thread(saw, name, output.content)
        return output

    made.call, made.acall = call, acall
    return made  # type: ignore[no-any-return]
