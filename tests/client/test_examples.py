"""The examples in the docstrings of what ``memsluice`` exports are run, on the real stack, and show what they print."""

import doctest
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from tests.patience import HANG_S

import memsluice
from memsluice.clock import wall_ms
from memsluice.envelope.registry import Role
from memsluice.events.models import Channel
from memsluice.keystore.store import KeyStore, issue_credential

FOUND = {
    name: inspect.getdoc(thing) or ""
    for name in sorted(memsluice.__all__)
    if ">>> " in (inspect.getdoc(thing := getattr(memsluice, name)) or "")
}
NEEDED = {"AgentSession", "AsyncAgentSession", "MemoryWriter", "WriteOptions", "WriterOptions"}
CREDENTIALS: dict[Role, Channel] = {
    Role.PRODUCER: "agent",
    Role.USER_CHANNEL: "user",
    Role.RUNTIME: "agent",
    Role.READER: "agent",
}


def test_what_is_used_first_has_an_example() -> None:
    """The writers, their options and the session object show how they are used."""
    assert set(FOUND) >= NEEDED


def unhurried_text(text: str) -> str:
    """Return an example that waits for the broker as long as a busy machine takes; it prints the same."""
    return re.sub(r"\b(timeout|delivery_seconds)=\d+", rf"\g<1>={HANG_S:g}", text)


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("name", sorted(FOUND))
def test_examples_work_as_they_are_printed(name: str, stack: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a home with the tenant's credentials every example runs, and prints what it says that it prints."""
    monkeypatch.setenv("MEMSLUICE_HOME", str(stack.home))
    store = KeyStore.init(stack.home, 0)
    issued: dict[Role, Path] = {
        role: issue_credential(store, role, channel, ["acme"], now_ms=wall_ms())[1]
        for role, channel in CREDENTIALS.items()
    }
    given = {"credential_file": issued[Role.PRODUCER]}
    example = doctest.DocTestParser().get_doctest(unhurried_text(FOUND[name]), given, name, name, 0)
    said: list[str] = []
    try:
        failed, tried = doctest.DocTestRunner().run(example, out=said.append)
    finally:
        for path in issued.values():
            path.unlink()
    assert tried
    assert not failed, "".join(said)
