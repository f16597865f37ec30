"""The rows that facts leave (:mod:`memsluice.gate.checks.claims`, :mod:`memsluice.gate.checks.graph`): digests and
tags, no words."""

from msgspec import Struct, field


class Said(Struct, frozen=True, array_like=True):
    """One statement: the object's digest, the entry that says it and its offset in the intake, whose it is (a tag)."""

    object: str
    entry: str
    offset: int
    by: str


class ClaimRow(Struct, frozen=True, kw_only=True):
    """What was said of a subject by a relation, the last statements."""

    said: tuple[Said, ...] = field(name="s")
    expires_ms: int = field(name="x")


class RelationRow(Struct, frozen=True, kw_only=True):
    """By which entries principals said several things of one subject by a relation, the last of each."""

    many: tuple[Said, ...] = field(name="m")
    expires_ms: int = field(name="x")


class NodeRow(Struct, frozen=True, kw_only=True):
    """A subject or object of facts: who introduced it, and who linked it first (tags)."""

    by: str = field(name="b")
    builders: tuple[str, ...] = field(name="l")
    expires_ms: int = field(name="x")
