"""The block in LlamaIndex's own memory and agent, with a scripted model in the place of one that was talked into it."""

import asyncio
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import Memory as Conversation
from llama_index.core.tools import FunctionTool
from tests.adapters.conftest import FACT, PAGE, person

from memsluice import Origin, Session
from memsluice.adapters.llama_index import GatedMemoryBlock
from memsluice.errors import BatchNotRemembered, NotDelivered
from memsluice.events.models import Observation, Write
from memsluice.memory.embedded import EmbeddedGate
from memsluice.memory.memory import Memory

LONG = " ".join(["word"] * 60)


def browse(url: str) -> str:
    """Read a page."""
    return PAGE


def broken(url: str) -> str:
    """Read a page."""
    raise ValueError(PAGE)


def conversation(block: GatedMemoryBlock) -> Conversation:
    """Return a memory whose short-term part holds some fifty words."""
    return Conversation.from_defaults(
        memory_blocks=[block], token_limit=80, token_flush_size=10, tokenizer_fn=str.split,
        chat_history_token_ratio=0.6,
    )  # fmt: skip


Shown = list[list[ChatMessage]]


def run(memory: Conversation, tools: list[Any], said: str, *script: Any, shown: Shown | None = None) -> Shown:
    """Have an agent run through a script, then flush its short-term memory; return what the model was shown."""
    shown = [] if shown is None else shown
    steps = iter([*script, "Done."])

    def answers(messages: Any, **_: Any) -> ChatMessage:
        shown.append(list(messages))
        step = next(steps)
        return ChatMessage(role="assistant", **({"content": step} if isinstance(step, str) else {"blocks": [step]}))

    agent = FunctionAgent(tools=tools, llm=MockFunctionCallingLLM(response_generator=answers), streaming=False)

    async def ran() -> None:
        await agent.run(said, memory=memory)
        await memory.aput(ChatMessage(role="user", content=LONG))

    asyncio.run(ran())
    return shown


CALL = ToolCallBlock(tool_call_id="c", tool_name="browse", tool_kwargs={"url": "u"})


def kept(gate: EmbeddedGate, name: str) -> list[str]:
    """Return what is remembered of a person."""
    return [one.content for one in Memory(gate, person(name, "later"), namespace="llama_index").every().entries]


def block(gate: EmbeddedGate, name: str, **given: Any) -> tuple[GatedMemoryBlock, list[BatchNotRemembered]]:
    """Return a block, and where it tells what was held."""
    told: list[BatchNotRemembered] = []
    return GatedMemoryBlock(gate, person(name), on_held=told.append, **given), told


def test_what_a_page_says_does_not_become_guidance(shared) -> None:
    """What the agent says after it read the page is outside data, and a next session's prompt has nothing of it."""
    mine, told = block(shared, "li-page", origins={"browse": Origin.WEB})
    tools = mine.observed([FunctionTool.from_defaults(browse)])
    shown = run(conversation(mine), tools, "Rates?", CALL, FACT)
    assert shown[1][-1].content == PAGE
    assert {one.reasons[0] for error in told for one in error.results if isinstance(one, Exception)} == {
        "monitor.rule_4_tainted"
    }
    assert kept(shared, "li-page") == []


def test_without_the_observation_the_same_attack_is_remembered(shared) -> None:
    """So the test above can fail; in the next session it stands in the prompt, labelled."""
    mine, told = block(shared, "li-control", trusted_tools=["browse"])
    run(conversation(mine), mine.observed([FunctionTool.from_defaults(browse)]), "Rates?", CALL, FACT)
    assert (told, FACT in kept(shared, "li-control")) == ([], True)
    later = GatedMemoryBlock(shared, person("li-control", "tuesday"))
    prompt = run(conversation(later), later.observed([]), "Where do payments go?")[0][0]
    assert (prompt.role, "[memory tier=3 source=agent" in prompt.content) == ("system", True)
    assert FACT in prompt.content


def test_the_model_is_shown_nothing_that_is_not_observed(shared, silent) -> None:
    """Where the broker does not acknowledge, the agent is shown the error in the result's place, and its run fails."""
    mine, _told = block(shared, "li-silent")
    shown: Shown = []
    with pytest.raises(NotDelivered):
        run(conversation(mine), mine.observed([FunctionTool.from_defaults(browse)]), "Rates?", CALL, shown=shown)
    assert "no broker" in shown[1][-1].content
    assert "Mallory" not in str(shown)


def test_a_tool_that_fails_was_seen_too(shared) -> None:
    """The agent shows the model what its error says."""
    mine, _told = block(shared, "li-broken")
    tool = FunctionTool.from_defaults(broken, name="browse")
    shown = run(conversation(mine), mine.observed([tool]), "Rates?", CALL, FACT)
    assert shown[1][-1].content == PAGE
    assert kept(shared, "li-broken") == []


@pytest.mark.parametrize("message", [
    ChatMessage(role="tool", content=PAGE),
    ChatMessage(role="user", blocks=[TextBlock(text="See."), ImageBlock(image=b"x")]),
], ids=["history", "file"])  # fmt: skip
def test_what_a_history_brings_along_was_seen_too(shared, message) -> None:
    """A result that an earlier run left in the conversation, and a file that a person attached."""
    name = f"li-{message.role.value}"
    mine, told = block(shared, name)
    memory = conversation(mine)
    asyncio.run(memory.aput(message))
    run(memory, mine.observed([]), "Rates?", FACT)
    assert told
    assert kept(shared, name) == []


def test_without_the_tools_nothing_becomes_guidance(shared) -> None:
    """The block alone does not see what tools return in time, and opens no session; where nobody listens it raises."""
    with pytest.raises(BatchNotRemembered):
        run(conversation(GatedMemoryBlock(shared, person("li-alone"))), [], "Ada drinks tea.")
    assert kept(shared, "li-alone") == []


@pytest.mark.parametrize("lost", [Write, Observation], ids=["write", "observation"])
def test_one_that_the_log_did_not_take_keeps_no_other_from_being_said(shared, monkeypatch, lost) -> None:
    """All have left the short-term memory: one failure is told at the end, and a listener does not swallow it. What
    follows a result that is not observed is no guidance: that is said again before it."""
    name = f"li-lost-{lost.__name__}"
    mine, told = block(shared, name)
    mine.observed([])
    mine._open()
    publish, failed = shared.publish, []

    def published(session: Session, event: Any) -> Any:
        if isinstance(event, lost) and not failed:
            failed.append(event)
            raise NotDelivered("no broker", event_id=event.id)
        return publish(session, event)

    monkeypatch.setattr(shared, "publish", published)
    first = ChatMessage(role="user", content="Ada sings.") if lost is Write else ChatMessage(role="tool", content=PAGE)
    with pytest.raises(BatchNotRemembered) as caught:
        asyncio.run(mine._aput([first, ChatMessage(role="user", content="Ada drinks tea.")]))
    assert [isinstance(one, NotDelivered) for one in caught.value.results] == [True, False]
    assert told == []
    assert kept(shared, name) == (["Ada drinks tea."] if lost is Write else [])


def test_the_last_entries_are_left_out_where_there_is_no_room() -> None:
    """The head stays as long as an entry does, and no line is cut in two."""
    block = GatedMemoryBlock.__new__(GatedMemoryBlock)
    content = "\n".join(["head", "a" * 40, "b" * 40])
    assert asyncio.run(GatedMemoryBlock.atruncate(block, content, 5)) == "\n".join(["head", "a" * 40])
    assert asyncio.run(GatedMemoryBlock.atruncate(block, content, 1_000)) is None


def test_sessions_of_two_persons_do_not_meet(shared) -> None:
    """A next person's prompt has nothing of the first one's."""
    mine, _told = block(shared, "li-ada")
    run(conversation(mine), mine.observed([]), "Ada drinks tea in the morning.")
    assert "Ada drinks tea in the morning." in kept(shared, "li-ada")
    other = GatedMemoryBlock(shared, Session("acme", "assistant", "li-bo", "li-bo-monday"))
    assert asyncio.run(other.aget([ChatMessage(role="user", content="What does Ada drink?")])) == ""
