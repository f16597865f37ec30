"""Whose session a graph's call belongs to: LangGraph's own names for it, in its configuration."""

from collections.abc import Callable

from memsluice.client.requests import Session
from memsluice.errors import ConfigError

SessionOf = Callable[[], Session]
"""Says for whom the code runs that asks."""


def session_of_config(tenant: str, agent: str) -> SessionOf:
    """Return what reads principal and session from ``user_id`` and ``thread_id`` of a running graph's configuration."""

    def read() -> Session:
        from langchain_core.runnables.config import ensure_config

        given = ensure_config().get("configurable", {})
        missing = [name for name in ("user_id", "thread_id") if not isinstance(given.get(name), str)]
        if missing:
            raise ConfigError(
                f"the graph's configuration has no {' and no '.join(missing)}: call it with "
                "config={'configurable': {'user_id': ..., 'thread_id': ...}}, or give the store a session"
            )
        return Session(tenant, agent, given["user_id"], given["thread_id"])

    return read
