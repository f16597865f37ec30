"""The index behind ``lineage``: what makes room, and when a tree is whole. On what the real *screen* decides."""

from tests.gate.build import RING
from tests.trace.audit import Gate

from memsluice.events.names import EventType
from memsluice.operations.provenance.ancestry import Index
from memsluice.operations.trace.verdicts import read


def learned(gate: Gate, about: str, events_max: int) -> Index:
    """Return the index of an audit, around one entry."""
    index = Index(events_max, about)
    for record in gate.audit:
        verdict = read(RING, record)
        assert verdict is not None
        index.take(verdict)
    return index


def test_an_entry_is_found_wherever_it_stands_in_the_audit() -> None:
    """The first, the middle and the last of more events than fit, each with its parent just before it."""
    gate = Gate()
    for number in range(12):
        gate.write("user", id=f"n{number}", parents=(f"n{number - 1}",) if number % 2 else ())
    for number in range(12):
        index = learned(gate, f"n{number}", 3)
        root = index.tree(f"n{number}")
        assert root.entry is not None
        assert [node.entry is not None for node in root.above] == [True] * (number % 2)
        assert (index.left_out, index.whole(root), len(index.entries)) == (9, True, 3)


def test_a_tree_that_reaches_beyond_is_not_whole() -> None:
    """A parent too far back, one that comes too late, and a session of which something was left out; no other's."""
    gate = Gate()
    gate.write("user", id="far")
    for session in ("s1", "s2"):
        gate.see("runtime", EventType.OBSERVATION, origin="open", session=session)
    gate.see("runtime", EventType.OBSERVATION, id="page", origin="web")
    gate.write("user", id="between")
    gate.write("agent", id="clean", session="s2")
    gate.write("agent", id="saw")
    gate.write("user", id="child", parents=("far",))
    gate.write("user", id="early", parents=("last",))
    gate.write("user", id="next")
    gate.write("user", id="last")
    for about, whole in (("far", True), ("clean", True), ("saw", False), ("child", False), ("early", False),
                         ("last", True)):  # fmt: skip
        index = learned(gate, about, 2)
        assert index.whole(index.tree(about)) is whole, about
    index = learned(gate, "saw", 20)
    assert (index.left_out, index.whole(index.tree("saw"))) == (0, True)
