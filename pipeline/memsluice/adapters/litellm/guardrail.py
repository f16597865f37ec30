"""A guardrail of LiteLLM's proxy: what MCP servers answer is observed before the agent has it, without its help.

LiteLLM asks a guardrail about a result's text alone: of a result that has none, a picture say, it is told nothing
afterwards. So a call is observed while it runs (``during_mcp_call``), too; a failure there withholds the result as
well.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal

from litellm.exceptions import GuardrailRaisedException
from litellm.integrations.custom_guardrail import CustomGuardrail
from litellm.types.guardrails import GuardrailEventHooks
from litellm.types.proxy.auth.user_api_key_auth import UserAPIKeyAuth
from litellm.types.utils import GenericGuardrailAPIInputs

from memsluice.client.requests import Session
from memsluice.errors import InputError, InvalidArgument, MemsluiceError
from memsluice.memory.gate import Gate
from memsluice.memory.memory import TIMEOUT_S
from memsluice.memory.observing import Observing
from memsluice.memory.shelves import Shelves

NAME = "memsluice"
"""The guardrail's, and the field of a key's metadata that says whose session its calls belong to."""
NAMESPACE = "litellm"
FIELDS = ("tenant", "agent", "principal", "session")
HOOKS = (GuardrailEventHooks.during_mcp_call, GuardrailEventHooks.post_mcp_call)
STAMPED = "user_api_key_metadata"
"""What the proxy writes into a request's metadata about the key, after it has taken out what the request had of it."""


class GatedGuardrail(CustomGuardrail):
    """Name an instance in the proxy's ``litellm_settings: callbacks``. It runs on each call of an MCP tool, whatever a
    request or a key's metadata says of guardrails.

    Whose call it is says the metadata of the proxy's key, which whoever makes keys writes, and nothing that a caller
    can: ``{"memsluice": {"tenant": ..., "agent": ..., "principal": ..., "session": ...}}``, so a key is one session's.
    A call with a key that does not say so, or of another tenant, is blocked; so is one whose observation is not
    acknowledged: the agent has an error in the result's place.

    Every result is outside content, but of ``trusted_tools``, by "server/tool": a memory server's own. No session is
    opened here: the platform opens it (``Memory.open``) where all that its agent sees comes over this proxy.
    """

    def __init__(
        self, gate: Gate, *, trusted_tools: Collection[str] = (), timeout_s: float = TIMEOUT_S, name: str = NAME
    ) -> None:
        super().__init__(
            guardrail_name=name, supported_event_hooks=list(HOOKS), event_hook=list(HOOKS), default_on=True
        )
        self._tenant = gate.tenant
        self._observing = Observing(trusted_tools)
        self._shelves = Shelves(gate, NAMESPACE, timeout_s=timeout_s, opens=False)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Give a subclass the method as one of its own: LiteLLM runs no guardrail whose class inherits it."""
        if "apply_guardrail" not in vars(cls):
            cls.apply_guardrail = GatedGuardrail.apply_guardrail  # type: ignore[method-assign]
        super().__init_subclass__(**kwargs)

    def should_run_guardrail(self, data: Any, event_type: GuardrailEventHooks) -> bool:
        """Run on each call of an MCP tool."""
        return event_type in HOOKS

    async def apply_guardrail(
        self,
        inputs: GenericGuardrailAPIInputs,
        request_data: dict[str, Any],
        input_type: Literal["request", "response"],
        logging_obj: Any = None,
    ) -> GenericGuardrailAPIInputs:
        """Observe that the key's session sees what a tool returns, and leave it as it is. Raises
        GuardrailRaisedException, and the call fails: 403 for good, 503 where the same call may succeed later."""
        content = "\n".join(inputs.get("texts") or []) if input_type == "response" else None
        try:
            memory = self._shelves.of(self._session(request_data)).memory
            await self._observing.asaw(memory, _tool(request_data), content)
        except MemsluiceError as error:
            for_good = isinstance(error, InputError | InvalidArgument)  # the key, or what it names: no use in trying
            raise GuardrailRaisedException(
                self.guardrail_name,
                f"the result is withheld, since it could not be observed: {error}",
                status_code=403 if for_good else 503,
            ) from error
        return inputs

    def _session(self, request_data: Mapping[str, Any]) -> Session:
        told = {tuple(str(one.get(field) or "") for field in FIELDS) for one in _told(request_data)}
        if len(told) != 1:
            raise InvalidArgument(
                f"the key's metadata must have {NAME} once, with {', '.join(FIELDS)}; it has it {len(told)} times"
            )
        (fields,) = told
        missing = [name for name, value in zip(FIELDS, fields, strict=True) if not value]
        if missing:
            raise InvalidArgument(f"the key's metadata has no {' and no '.join(missing)} under {NAME}")
        if fields[0] != self._tenant:
            raise InvalidArgument(f"the key's metadata has another tenant under {NAME} than the proxy's gate")
        return Session(*fields)


def _told(request_data: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield what the proxy says of the key: before a result in the request's metadata, behind it as an object that no
    request can bring along."""
    inner = request_data.get("litellm_params")
    behind = inner.get("metadata") if isinstance(inner, Mapping) else None
    key = behind.get("user_api_key_auth") if isinstance(behind, Mapping) else None
    found: list[Any] = [key.metadata] if isinstance(key, UserAPIKeyAuth) else []
    for metadata in (request_data.get("metadata"), request_data.get("litellm_metadata")):
        found += [metadata.get(STAMPED)] if isinstance(metadata, Mapping) else []
    for one in found:
        if isinstance(one, Mapping) and isinstance(one.get(NAME), Mapping):
            yield one[NAME]


def _tool(request_data: Mapping[str, Any]) -> str:
    """Return "server/tool", as the proxy says it of the call."""
    logged = getattr(request_data.get("litellm_logging_obj"), "model_call_details", request_data)
    called = logged.get("mcp_tool_call_metadata")
    return f"{called.get('mcp_server_name')}/{called.get('name')}" if isinstance(called, Mapping) else ""
