"""The ways by which something could reach a crew's memory unseen, or a memory be lost."""

import re
from dataclasses import replace
from typing import Any

import pytest

# isort: split - what comes first says where CrewAI may write when it is imported
from crewai import Agent, Task
from crewai.flow.flow import Flow, start
from crewai.hooks.tool_hooks import clear_all_tool_call_hooks
from crewai.memory.analyze import ConsolidationAction, ConsolidationPlan
from crewai.memory.unified_memory import Memory
from crewai.tools.memory_tools import RecallMemoryTool, create_memory_tools
from tests.adapters.crews import FACT, PAGE, SAID, browse, contents, crewai, memory, play, storage
from tests.memory.conftest import ADA, ORDER

from memsluice import Session
from memsluice.adapters.crewai import GatedStorage, attach, embedder
from memsluice.errors import StateError, WriteHeld
from memsluice_lab.crews import Scripted, calling, crew

__all__ = ["crewai", "memory", "storage"]


def test_nothing_is_written_once_the_hooks_were_cleared(memory) -> None:
    """Nobody knows then what the session saw: the save raises and says what to do."""
    clear_all_tool_call_hooks()
    with pytest.raises(StateError, match="hooks were cleared"):
        memory.remember("Ada drinks tea.", **SAID)


def test_what_was_seen_between_a_clearing_and_the_next_memory_is_not_forgotten(gate, memory) -> None:
    """The hook that a later memory brings along says nothing of what the earlier one's session saw meanwhile: that one
    neither saves nor deletes, and the later one does both."""
    kept = memory.remember("Ada drinks tea.", **SAID)
    clear_all_tool_call_hooks()
    later = GatedStorage(gate, Session("acme", "assistant", "ada", "t2"))
    for change in (lambda: memory.remember(FACT, **SAID), lambda: memory.forget(record_ids=[kept.id]), memory.reset):
        with pytest.raises(StateError, match="hooks were cleared"):
            change()
    assert later.delete(record_ids=[kept.id]) == 1


class Derived(RecallMemoryTool):
    """What somebody makes of CrewAI's own tool."""

    def _run(self, queries: list[str] | str, **_kwargs: Any) -> str:
        return PAGE


def test_what_is_derived_from_crewais_own_tool_is_not_its_own(gate, memory) -> None:
    """It returns what it likes, so its result is outside content."""
    llm = Scripted(model="s", script=[calling("look_up", queries=["q"]), "Done."], facts=["The mill is cheap."])
    made = play(gate, ADA, llm, [Derived(memory=memory, name="Look up", description="Reads.")])
    assert PAGE in "".join(llm.seen)
    assert made._memory.list_records() == []


class Reading(Flow[dict[str, Any]]):
    """Has a crew without a memory read a page, and remembers what came of it."""

    @start()
    def read(self) -> None:
        """Run it."""
        llm = Scripted(model="s", script=[calling("browse", url="u"), "The mill is cheap."])
        self.state["said"] = crew(llm, [browse]).kickoff().raw
        self.remember(self.state["said"], **SAID)


def test_what_a_crew_in_a_flow_saw_taints_the_flow(gate) -> None:
    """The crew has no memory, and the flow remembers what it says; so does an agent that a flow runs by itself."""
    flow = attach(Reading(memory=Memory(storage=GatedStorage(gate, ADA), llm=Scripted(model="s"))), gate, ADA)
    with pytest.raises(WriteHeld, match="outside data"):
        flow.kickoff()
    assert flow.state["said"] == "The mill is cheap."
    assert flow.memory.list_records() == []
    other = attach(Memory(storage=GatedStorage(gate, ADA), llm=Scripted(model="s")), gate, replace(ADA, session="t2"))
    other.remember("Ada has a mill.", **SAID)  # what runs in no flow, or in another, is not told of it
    assert contents(other, "What does Ada have?") == ["Ada has a mill."]


def test_whoever_works_for_a_crew_or_is_given_its_tools_is_attached(gate) -> None:
    """An agent that is a task's alone, and CrewAI's own tools over a memory that is nobody's else."""
    llm = Scripted(model="scripted")
    hers, its, ours = (Memory(storage=object(), llm=llm) for _ in range(3))
    made = crew(llm, create_memory_tools(its))
    alone = Agent(role="r", goal="g", backstory="b", llm=llm, memory=hers)
    made.tasks.append(Task(description="x", expected_output="y", agent=alone, tools=create_memory_tools(ours)))
    attach(made, gate, ADA)
    assert all(isinstance(one._storage, GatedStorage) for one in (hers, its, ours))


class Merging(Scripted):
    """Has every memory that is like a new one deleted in favour of that."""

    def call(self, messages: Any, *_args: Any, response_model: Any = None, **_kwargs: Any) -> Any:
        """Answer CrewAI's question about merging."""
        if response_model is not ConsolidationPlan:
            return super().call(messages)
        ids = re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", str(messages))
        actions = [ConsolidationAction(action="delete", record_id=one) for one in dict.fromkeys(ids)]
        return ConsolidationPlan(actions=actions, insert_new=True)


@pytest.mark.parametrize(("new", "left"), [("Ada drinks tea daily.", "Ada drinks tea daily."), (ORDER, None)])
def test_merging_loses_nothing_where_the_new_text_is_held(storage, new, left) -> None:
    """CrewAI deletes before it saves: the old memory is there again where the new one is not kept, and gone else."""
    llm = Merging(model="scripted")
    memory = Memory(storage=storage, embedder=embedder, llm=llm, consolidation_threshold=0.0)
    old = memory.remember("Ada drinks tea.", **SAID)
    if left is None:
        with pytest.raises(WriteHeld):
            memory.remember(new, **SAID)
    else:
        memory.remember(new, **SAID)
    assert [one.content for one in memory.list_records()] == [left or "Ada drinks tea."]
    assert (storage.get_record(old.id) is None) is (left is not None)


def test_what_a_person_forgot_stays_forgotten(memory) -> None:
    """A save that is held later brings nothing back of what was deleted before it, and not in its favour."""
    old = memory.remember("Ada drinks tea.", **SAID)
    assert memory.forget(record_ids=[old.id]) == 1
    with pytest.raises(WriteHeld):
        memory.remember(ORDER, **SAID)
    assert memory.list_records() == []
