"""What Weaviate says of one object of a batch, and whether that is about the object."""

_NOT_THE_OBJECTS_FAULT = (
    "tenant not found",
    "tenant not active",
    "rbac",
    "authoriz",
    "could not find class",
    "class not found",
    "read-only",
    "readonly",
    "no space left",
    "not enough memory",
    "memory pressure",
    "deadline",
    "timeout",
    "canceled",
    "cancelled",
    "shutting down",
    "shutdown",
    "leader",
    "connection refused",
    "unavailable",
    "try again",
    "consistency level",
    "enough replicas",
    "could not find index",
    "deleted in the meantime",
    "shut or dropped",
    "not ready",
    "is closed",
    "connection reset",
    "no such host",
    ": eof",
)
"""An error of one object that says one of these is retried. Any other one faults the object: content that an attacker
chose must not be able to hold a partition up for ever."""


def at_fault(error: str) -> bool:
    """Whether an error of one object faults the object itself: then it is refused, else it is tried again."""
    return not any(part in error.lower() for part in _NOT_THE_OBJECTS_FAULT)
