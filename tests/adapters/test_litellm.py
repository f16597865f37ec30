"""The guardrail as LiteLLM's proxy runs one on calls of MCP tools: by its translation, on what it stamps of a key.

The whole proxy needs LiteLLM's own extra; the shapes of its requests were read off one that ran.
"""

import asyncio
import os
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it asks the network for prices when imported

import pytest
from litellm.exceptions import GuardrailRaisedException
from litellm.proxy._types import UserAPIKeyAuth
from litellm.proxy.litellm_pre_call_utils import LiteLLMProxyRequestSetup
from litellm.proxy.mcp_server.guardrail_translation.handler import MCPGuardrailTranslationHandler
from litellm.types.guardrails import GuardrailEventHooks
from mcp.types import CallToolResult, ImageContent, TextContent
from tests.adapters.conftest import FACT, PAGE

from memsluice import Session
from memsluice.adapters.litellm import GatedGuardrail
from memsluice.errors import NotPermitted, StateError, WriteHeld, WriterClosed
from memsluice.memory.embedded import EmbeddedGate
from memsluice.memory.memory import Memory

TEXT = CallToolResult(content=[TextContent(type="text", text=PAGE)])
PICTURE = CallToolResult(content=[ImageContent(type="image", data="eA==", mime_type="image/png")])
CALLED = {"mcp_server_name": "pages", "name": "browse"}


def who(name: str, **other: str) -> dict[str, Any]:
    """Return a key's metadata that says whose session it is."""
    return {"memsluice": {"tenant": "acme", "agent": "assistant", "principal": name, "session": name, **other}}


def call(
    guardrail: GatedGuardrail,
    metadata: dict[str, Any],
    result: CallToolResult = TEXT,
    forged: dict[str, Any] | None = None,
) -> CallToolResult:
    """Return what the caller of a tool is given, as the proxy does it: asked while the tool runs, and behind it."""
    key = UserAPIKeyAuth(api_key="sk-1", user_id="somebody", metadata=metadata)
    said = {"user_api_key_auth_metadata": forged, "user_api_key_metadata": forged} if forged else {}
    behind = {"metadata": {**said, "user_api_key_auth": key}}
    details: Any = {"mcp_tool_call_metadata": CALLED, "metadata": {}, "litellm_params": behind}
    logged = SimpleNamespace(model_call_details=details)
    during: Any = {
        "mcp_tool_name": "browse", "mcp_arguments": {"url": "u"}, "litellm_logging_obj": logged,
        "metadata": {**LiteLLMProxyRequestSetup.get_tenant_logging_metadata(key)},
        "litellm_params": {"metadata": {**said, "user_api_key_auth": {"metadata": forged}}},
    }  # fmt: skip

    async def ran() -> Any:
        handler = MCPGuardrailTranslationHandler()
        await handler.process_input_messages(data=during, guardrail_to_apply=guardrail)
        return await handler.process_output_response(result, guardrail, logged, key, request_data=details)

    return asyncio.run(ran())


def remembers(gate: EmbeddedGate, name: str) -> bool:
    """Whether the agent of a session is believed when it writes."""
    memory = Memory(gate, Session("acme", "assistant", name, name), opens=False)
    try:
        return memory.write(FACT).remembered
    except WriteHeld:
        return False


def opened(gate: EmbeddedGate, name: str) -> dict[str, Any]:
    """Open a session, as the platform does, and return the metadata of its key."""
    Memory(gate, Session("acme", "assistant", name, name)).open()
    return who(name)


@pytest.mark.parametrize("result", [TEXT, PICTURE], ids=["text", "picture"])
def test_what_a_server_answers_does_not_become_guidance(shared, result) -> None:
    """The agent says nothing: the proxy does. LiteLLM shows no guardrail a picture; it is seen all the same."""
    name = f"ll-{result.content[0].type}"
    assert call(GatedGuardrail(shared), opened(shared, name), result) is result
    assert not remembers(shared, name)


def test_without_the_observation_the_same_attack_is_remembered(shared) -> None:
    """So the test above can fail; a server is trusted by its name and the tool's."""
    call(GatedGuardrail(shared, trusted_tools=["pages/browse"]), opened(shared, "ll-control"))
    assert remembers(shared, "ll-control")
    call(GatedGuardrail(shared, trusted_tools=["other/browse", "browse"]), opened(shared, "ll-other"))
    assert not remembers(shared, "ll-other")


@pytest.mark.parametrize("result", [TEXT, PICTURE], ids=["text", "picture"])
def test_a_result_that_is_not_observed_is_withheld(shared, silent, result) -> None:
    """The call fails where the broker does not acknowledge."""
    with pytest.raises(GuardrailRaisedException, match="no broker"):
        call(GatedGuardrail(shared), opened(shared, "ll-silent"), result)


def test_a_caller_cannot_say_whose_call_it_is(shared) -> None:
    """What a request brings along where the proxy stamps nothing counts for nothing, also where the key says none."""
    opened(shared, "ll-victim")
    call(GatedGuardrail(shared), opened(shared, "ll-forger"), forged=who("ll-victim"))
    assert not remembers(shared, "ll-forger")
    with pytest.raises(GuardrailRaisedException, match="0 times"):
        call(GatedGuardrail(shared), {}, forged=who("ll-victim"))
    assert remembers(shared, "ll-victim")


@pytest.mark.parametrize(("metadata", "why"), [
    ({}, "it has it 0 times"),
    ({"memsluice": "ada"}, "it has it 0 times"),
    (who("ll-x", session=""), "has no session under memsluice"),
    (who("ll-x", tenant="other"), "another tenant under memsluice"),
])  # fmt: skip
def test_a_key_that_is_nobodys_here_is_blocked(shared, metadata, why) -> None:
    """Nobody would know whose session saw the result, now or later."""
    with pytest.raises(GuardrailRaisedException, match=why) as caught:
        call(GatedGuardrail(shared), metadata)
    assert caught.value.status_code == 403


@pytest.mark.parametrize(("error", "status"), [
    (StateError("rows and log disagree"), 503), (WriterClosed("the gate is closed"), 503),
    (NotPermitted("the credential is for another agent", field="agent"), 403),
])  # fmt: skip
def test_whatever_fails_is_told_as_a_guardrails_failure(shared, monkeypatch, error, status) -> None:
    """The proxy answers with its status, which says whether trying again helps; nothing escapes as a defect."""

    def publish(*_: Any) -> None:
        raise error

    metadata = opened(shared, f"ll-{type(error).__name__}")
    monkeypatch.setattr(shared, "publish", publish)
    with pytest.raises(GuardrailRaisedException) as caught:
        call(GatedGuardrail(shared), metadata)
    assert caught.value.status_code == status


def test_it_cannot_be_switched_off(shared) -> None:
    """Neither by a request nor by a key's metadata; and it runs on calls of MCP tools alone."""
    off: Any = {"disable_global_guardrails": True, "opted_out_global_guardrails": ["memsluice"]}
    data = {"metadata": {"user_api_key_metadata": off, **off}, **off}
    runs = [hook for hook in GuardrailEventHooks if GatedGuardrail(shared).should_run_guardrail(data, hook)]
    assert runs == [GuardrailEventHooks.during_mcp_call, GuardrailEventHooks.post_mcp_call]


def test_a_subclass_runs_too(shared) -> None:
    """LiteLLM passes over a guardrail whose class inherits the method, without a word."""

    class Ours(GatedGuardrail):
        """A guardrail with a name of its own."""

    assert "apply_guardrail" in vars(Ours)
    call(Ours(shared), opened(shared, "ll-subclass"))
    assert not remembers(shared, "ll-subclass")
