"""A policy's fields by their dotted names. Pure."""

from collections.abc import Iterator
from typing import Any

from memsluice.gate.policy.model import Policy


def flat(policy: Policy) -> dict[str, Any]:
    """Return every field that has no fields of its own, and its value as JSON has it."""
    return dict(_flat("", policy.model_dump(mode="json")))


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    for name, part in value.items():
        if isinstance(part, dict):
            yield from _flat(f"{prefix}{name}.", part)
        else:
            yield f"{prefix}{name}", part
