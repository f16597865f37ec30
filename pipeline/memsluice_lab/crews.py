"""CrewAI as experiments and tests run it: a scripted model, nothing sent to CrewAI's makers, and nothing written to the
folders of whoever runs them."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"  # its own, and not OTEL_SDK_DISABLED, which would silence ours
os.environ["CREWAI_TESTING"] = "true"  # asks nobody at a terminal whether to send traces


@contextmanager
def at_home(folder: Path) -> Iterator[None]:
    """Have a folder for the user's home, in which CrewAI keeps what its last run put out, and makes a key."""
    with patch.dict(os.environ, {"HOME": str(folder), "XDG_DATA_HOME": str(folder / "data")}):
        yield


with tempfile.TemporaryDirectory() as _place, at_home(Path(_place)):  # it writes there when it is imported
    from crewai import Agent, BaseLLM, Crew, Task
    from crewai.utilities.i18n import I18N_DEFAULT

EXTRACTS = I18N_DEFAULT.memory("extract_memories_system")
ANALYSES = tuple(map(I18N_DEFAULT.memory, ("query_system", "save_system", "consolidation_system")))
"""How CrewAI's prompts about its memory begin."""


def calling(name: str, **args: Any) -> list[dict[str, Any]]:
    """Return a model's call of a tool."""
    return [{"id": name, "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}]


class Scripted(BaseLLM):
    """Says what it was given, and keeps the prompts that it saw; what CrewAI asks it to extract is ``facts``.

    Without ``native`` it has no tool calls of its own, and CrewAI reads them from its words.
    """

    script: list[Any] = []  # noqa: RUF012 - pydantic copies it
    facts: list[str] = []  # noqa: RUF012
    seen: list[str] = []  # noqa: RUF012
    native: bool = True

    def call(self, messages: Any, *_args: Any, **_kwargs: Any) -> Any:
        """Answer the next prompt."""
        self.seen.append(str(messages))
        asked = messages if isinstance(messages, str) else str(messages[0]["content"])
        if asked == EXTRACTS:
            return {"memories": self.facts} if self.native else json.dumps({"memories": self.facts})
        if asked in ANALYSES or "Relevant memory excerpts" in asked:
            raise NotImplementedError("CrewAI goes on without an analysis")
        return self.script.pop(0)

    def supports_function_calling(self) -> bool:
        """Whether it calls tools by itself."""
        return self.native


def crew(llm: Scripted, tools: list[Any], task: str = "Find the rates.", **options: Any) -> Crew:
    """Return a crew of one agent with one task."""
    agent = Agent(role="clerk", goal="help", backstory="You help.", llm=llm, tools=tools)
    return Crew(agents=[agent], tasks=[Task(description=task, expected_output="an answer", agent=agent)], **options)


class Ungated:
    """A storage of CrewAI's memory without a gate, in a list: its own ones need packages of 100 MB."""

    def __init__(self) -> None:
        self.records: list[Any] = []

    def save(self, records: list[Any]) -> None:
        """Keep them."""
        self.records += records

    def search(self, *_args: Any, **_kwargs: Any) -> list[tuple[Any, float]]:
        """Return all of them."""
        return [(one, 0.9) for one in self.records]

    def list_scopes(self, _parent: str = "/") -> list[str]:
        """Return none."""
        return []

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Return none."""
        return {}
