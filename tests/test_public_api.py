"""The public API is pinned: a name or a parameter that goes away is a decision, not an accident."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest

import memsluice
from memsluice import errors
from memsluice.deprecations import DEPRECATED

NAMES = {
    "BatchNotRemembered", "LandedElsewhere", "LandingUnknown", "NotRemembered", "WriteHeld", "WriteRefused",
    "Action", "AgentSession", "AsyncAgentSession", "AsyncMemoryWriter", "AsyncRecallChannel", "AsyncRuntimeChannel",
    "BrokerUnavailable", "BufferFull", "ConfigError", "Connection", "EarlierFailed", "Extracted",
    "ExtractionBounds", "ExtractionFailed", "Extractor", "HttpExtractor", "InputError", "InvalidArgument", "KeyStore",
     "Kind", "MemoryWriter",
    "MemsluiceError", "NotDelivered", "Observation", "OperatorChannel", "Origin", "ProducerError", "Recall", "Recalled",
    "Recaller", "RecallChannel", "Receipt", "Returned", "RuntimeChannel", "Session", "StoreUnavailable", "Tier",
    "Visibility", "Write", "WriteOptions", "WriterClosed", "WriterOptions", "Zone",
}  # fmt: skip
OF_RECALL = {"Recalled", "Recaller"}
"""Names that need the extra `recall`."""
PARAMETERS = {
    "MemoryWriter": ["settings", "credentials", "options", "topic"],
    "MemoryWriter.write": ["self", "session", "content", "event_id", "time", "options"],
    "AsyncMemoryWriter.write": ["self", "session", "content", "event_id", "time", "options"],
    "AsyncMemoryWriter.open": ["settings", "credentials", "options"],
    "RecallChannel.recalled": ["self", "session", "question", "returned", "namespace", "zone", "vector"],
    "RuntimeChannel.open_session": ["self", "session"],
    "RuntimeChannel.observe": ["self", "session", "origin", "digest", "content"],
    "OperatorChannel.command": [
        "self", "tenant", "action", "target", "expires_at", "digest", "reason", "parameters", "held",
    ],
    "MemoryWriter.flush": ["self", "timeout_s"],
    "MemoryWriter.close": ["self", "timeout_s"],
    "MemoryWriter.open_local": ["tenant", "role", "channel", "home", "options"],
    "AsyncMemoryWriter.open_local": ["tenant", "role", "channel", "home", "options"],
    "RecallChannel.open_local": ["tenant", "home", "options"],
    "AsyncRecallChannel.open_local": ["tenant", "home", "options"],
    "RuntimeChannel.open_local": ["tenant", "home", "options"],
    "AsyncRuntimeChannel.open_local": ["tenant", "home", "options"],
    "OperatorChannel.open_local": ["tenant", "role", "home", "options"],
    "Recaller.open_local": ["tenant", "home", "instructions"],
    "Recaller.recall_in": ["self", "session", "question", "namespace", "k", "zone", "tier_max"],
    "AgentSession": ["session", "writer", "runtime", "recalls", "pending_max"],
    "AgentSession.open_local": ["session", "home", "options", "pending_max"],
    "AgentSession.open_session": ["self"],
    "AgentSession.write": ["self", "content", "event_id", "time", "options"],
    "AgentSession.observe": ["self", "origin", "digest", "content"],
    "AgentSession.recalled": ["self", "question", "returned", "namespace", "zone", "vector"],
    "AgentSession.extract": [
        "self", "outside_text", "extractor", "source", "bounds", "namespace", "visibility",
    ],
    "AgentSession.publish": ["self", "payload"],
    "AgentSession.retry": ["self"],
    "AgentSession.flush": ["self", "timeout_s"],
    "AgentSession.close": ["self", "timeout_s"],
    "open_local": ["kind", "role", "home", "tenant", "options"],
    "Session": ["tenant", "agent", "principal", "session"],
    "Extracted": ["observed", "facts"],
    "ExtractionBounds": ["source_chars", "facts", "fact_chars"],
    "HttpExtractor": ["url", "model", "key", "timeout_s", "answer_bytes"],
    "Receipt": ["event_id", "topic", "partition", "offset", "append_ms"],
}  # fmt: skip


def test_the_names_are_these() -> None:
    """What ``memsluice`` exports, and nothing besides."""
    assert set(memsluice.__all__) == NAMES - OF_RECALL
    assert set(dir(memsluice)) == NAMES | {"__version__"}
    assert memsluice.__version__
    with pytest.raises(AttributeError, match="nonsense"):
        _ = memsluice.nonsense


def _runs(code: str) -> None:
    """Run code in an interpreter of its own, which has imported nothing yet; fail with what it says."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_star_import_needs_no_extra() -> None:
    """``from memsluice import *`` works where the packages of the extra `recall` are not installed."""
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(('grpc', 'httpx', 'numpy', 'weaviate')))\n"
        "from memsluice import *\n"
        "assert MemoryWriter and 'Recaller' not in globals()\n"
    )
    _runs(code)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_name_is_there_and_documented(name: str) -> None:
    """Lazily imported names exist, are the ones of their module, and say what they are."""
    thing = getattr(memsluice, name)
    assert thing.__name__ == name
    assert (inspect.getdoc(thing) or "").strip()


@pytest.mark.parametrize("path", sorted(PARAMETERS))
def test_parameters_are_these(path: str) -> None:
    """Names and order of the parameters that callers write."""
    thing = memsluice
    for step in path.split("."):
        thing = getattr(thing, step)
    assert list(inspect.signature(thing).parameters) == PARAMETERS[path]  # type: ignore[arg-type]


def test_the_session_s_twins_take_the_same() -> None:
    """What one says to a session one says to its asyncio counterpart and to the channel behind it, in the same way."""
    for name in ("open_session", "write", "observe", "recalled", "extract", "publish", "retry", "flush", "close"):
        mine = inspect.signature(getattr(memsluice.AgentSession, name))
        twin = inspect.signature(getattr(memsluice.AsyncAgentSession, name))
        assert list(mine.parameters) == list(twin.parameters), name
    for name, kind in (("write", "MemoryWriter"), ("observe", "RuntimeChannel"), ("recalled", "RecallChannel")):
        channel = list(inspect.signature(getattr(getattr(memsluice, kind), name)).parameters)
        channel.remove("session")
        assert list(inspect.signature(getattr(memsluice.AgentSession, name)).parameters) == channel


def test_write_options_are_the_model_s_fields() -> None:
    """Everything that a write may say can be said to the writer, under the same name."""
    from memsluice.client.requests import WriteOptions
    from memsluice.events.models import Write

    said_otherwise = {"id", "time", "tenant", "agent", "principal", "session", "content"}
    assert set(get_type_hints(WriteOptions)) == set(Write.model_fields) - said_otherwise


def test_the_pages_show_the_public_api() -> None:
    """What is exported is imported from ``memsluice`` in every page's python, as its readers should do it.

    No page shows a deprecated name, or needs a credential's role from the inside."""
    top = Path(__file__).resolve().parent.parent
    fenced = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
    pages = [top / "README.md", *sorted((top / "docs").rglob("*.md"))]
    nodes = [
        (page, node)
        for page in pages
        for code in fenced.findall(page.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom)
    ]
    assert nodes
    inner = [
        f"{page.name}: {node.module}.{alias.name}"
        for page, node in nodes
        for alias in node.names
        if (node.module != "memsluice" and alias.name in NAMES | {"Role"})
        or f"{node.module}.{alias.name}" in DEPRECATED
    ]
    assert not inner


def test_importing_the_package_imports_nothing_heavy() -> None:
    """``import memsluice`` takes no Kafka client, model runtime or vector store; a writer only the first."""
    code = (
        "import sys, memsluice\n"
        "heavy = {'confluent_kafka', 'torch', 'faust', 'weaviate', 'faiss', 'transformers', 'pydantic'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "memsluice.MemoryWriter\n"
        "heavy = {'torch', 'faust', 'weaviate', 'faiss', 'transformers', 'sentence_transformers'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    _runs(code)


def test_everything_it_raises_is_caught_by_one_name() -> None:
    """Errors that callers may want to tell apart are exported, and have one root."""
    exported = [getattr(memsluice, name) for name in NAMES if inspect.isclass(getattr(memsluice, name))]
    raised = [kind for kind in exported if issubclass(kind, Exception)]
    assert all(issubclass(kind, errors.MemsluiceError) for kind in raised)
    assert len(raised) == 18
