"""What a tenant of the sample is: its people, its agents, and the sentences of its day.

A sentence is a template; ``{slot}`` is filled from the tenant's slots, ``{slot:name}`` remembers the choice under a
name within the same session, so that a question can be about what was just written.
"""

from collections.abc import Mapping
from dataclasses import dataclass

Slots = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class World:
    """One tenant. ``people`` maps a principal to how others call them; sentences are templates over ``slots``."""

    tenant: str
    title: str
    people: Mapping[str, str]
    agents: tuple[str, ...]
    slots: Slots
    typed: tuple[str, ...]
    """What people tell their assistant to remember (a user channel signs it)."""
    noted: tuple[str, ...]
    """What agents note by themselves."""
    asked: tuple[str, ...]
    """What agents ask their memory on somebody's behalf."""
    seen: tuple[tuple[str, str], ...]
    """Outside content that a session reads: (web or tool, text)."""
    fed: tuple[tuple[str, str], ...]
    """What tools and pages write into memory themselves: (web or tool, text)."""
    fact: str
    """One sentence of the day, without slots; whoever it was typed by is who asks:"""
    question: str
    """the question that the summary puts to this tenant's memory."""
