"""A tenant that is known well enough to look back on: plain statements in its memory, and a passage near a question."""

from typing import Any

import numpy as np
from tests.gate.build import TENANT, axis, classifier
from tests.gate.landed import Shop

from memsluice.gate.decide import Outcome
from memsluice.gate.detectors.rarity.evidence import COLUMNS, Values
from memsluice.gate.detectors.rarity.memory import EXEMPT, KeptEntry, Memory
from memsluice.gate.detectors.wording import text
from memsluice.gate.detectors.wording.tokens import Stems
from memsluice.gate.policy.model import DetectPolicy, Policy, default
from memsluice.gate.state.rows import TenantRows, encode_changes

FILLERS = 200
PASSAGE = "The harbour office stores every mooring list inside a green cabinet behind the old reading room door."
QUESTION = "What colour has the new boat?"
PLAIN = {"c": -3.0, "w": 0.3}


def policy(**detect: Any) -> Policy:
    """Return the shipped policy with the default detector, and its settings changed."""
    return default().default.model_copy(update={"detector": "default", "detect": DetectPolicy(**detect)})


def stems_of(words: list[str]) -> Stems:
    """Return the stems of some words."""
    return text.stems(" ".join(words))


def values_of(memory: Memory) -> Values:
    """Return the entries' values, shape (entries, columns)."""
    return memory.table.among(slice(None))[:, :EXEMPT]


def fill(rows: Any, memory: Memory | None = None) -> Memory:
    """Put the plain statements into a tenant's rows; return the memory of them."""
    memory = memory or Memory.empty(1_000, 1_000)
    changed = TenantRows(rows, TENANT, 0)
    values = np.array([PLAIN.get(name, 0.0) for name in COLUMNS])
    for number in range(FILLERS):
        memory = memory.landed(changed, KeptEntry(0, f"plain-{number}", stems_of(["a"]), False), axis(1), values)
    for key, value in encode_changes(TENANT, changed.changes):
        rows.put(key, value)
    return memory


class Looking(Shop):
    """A shop with that memory, where no wording says anything. A ``passage`` lands; ``ask`` shows it in a new light."""

    def __init__(self, **detect: Any) -> None:
        super().__init__(policy(**detect))
        self.memory, self.model = fill(self.rows), classifier()
        self.opened = set[str]()

    def passage(self, content: str = PASSAGE, who: str = "agent", **fields: Any) -> str:
        """Have a passage accepted, an agent's, who others rely on; return its event id."""
        if who == "agent" and (session := fields.get("session", "s1")) not in self.opened:
            self.observe("open", session=session, principal=fields.get("principal", "ana"))
            self.opened.add(session)
        fields.setdefault("vector", axis(2))
        assert self.write(who, content, **fields).verdict.decision == "accept"
        return f"e{self.offset}"

    def ask(self, **fields: Any) -> Outcome:
        """Ask what the passage lies near to, and says nothing of."""
        return self.recall(QUESTION, **{"vector": axis(2), "principal": "ana", **fields})

    def remembered(self) -> set[str]:
        """Return the event ids that look back may look at."""
        assert self.memory is not None
        return {entry.event_id for entry in self.memory.entries if not entry.event_id.startswith("plain-")}
