"""What a rescreen found, counted and listed. Pure; everything kept is bounded."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from memsluice.events.names import EventType
from memsluice.operations.rescreen.history import Told
from memsluice.operations.rescreen.rerun import Decided, Part

LISTED_MAX = 10_000
"""Changed events that one report keeps; further ones are counted."""
PAIRS_MAX = 10_000
"""Different (tenant, type, before, after) that are counted apart; further ones count together, as of tenant ``…``."""


@dataclass(frozen=True, slots=True)
class Changed:
    """One event that the candidate decides otherwise; ``own`` where its own policy does so now, too (control)."""

    was: Told
    now: Told
    own: bool


@dataclass(slots=True)
class RescreenReport:
    """What changed, by whom and by reason; ``reasons`` counts reasons of writes, before and after.

    ``unknown`` events have no verdict in the audit: not decided yet, or its record is gone. ``same_other_reasons`` were
    decided the same for other reasons. Of those with a control, ``reproduced`` came out as the audit has them;
    ``no_control`` had a policy that nobody knows any more. ``shadowed`` landed in shadow mode, before and after.
    """

    compared: int = 0
    unknown: int = 0
    unchanged: int = 0
    same_other_reasons: int = 0
    pairs: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    reasons: tuple[Counter[str], Counter[str]] = field(default_factory=lambda: (Counter(), Counter()))
    listed: list[Changed] = field(default_factory=list)
    left_out: int = 0
    reproduced: int = 0
    not_reproduced: int = 0
    no_control: int = 0
    own_changes: int = 0
    shadowed: list[int] = field(default_factory=lambda: [0, 0])
    taken_back: list[int] = field(default_factory=lambda: [0, 0])

    @property
    def changed(self) -> int:
        """How many events would be decided otherwise."""
        return self.compared - self.unchanged

    def take(self, one: Decided) -> None:
        """Learn from one event."""
        if one.was is None:
            self.unknown += 1
            return
        self.compared += 1
        was, now, control = one.was, one.now, one.control
        for at, told in enumerate((was, now)):
            if told.type == EventType.WRITE:
                self.reasons[at].update(told.reasons)
            self.shadowed[at] += told.shadowed
            self.taken_back[at] += len(told.takes_back)
        if control is None:
            self.no_control += 1
        elif control.effect == was.effect:
            self.reproduced += 1
        else:
            self.not_reproduced += 1
        if now.effect == was.effect:
            self.unchanged += 1
            self.same_other_reasons += now.reasons != was.reasons
            return
        own = control is not None and control.effect == now.effect
        self.own_changes += own
        pair = (was.tenant, was.type, was.fate, now.fate)
        if pair not in self.pairs and len(self.pairs) >= PAIRS_MAX:
            pair = ("…", *pair[1:])
        self.pairs[pair] += 1
        if len(self.listed) < LISTED_MAX:
            self.listed.append(Changed(was, now, own))
        else:
            self.left_out += 1

    def other_reasons(self) -> list[tuple[str, int, int]]:
        """Return the reasons of writes that count otherwise: (reason, before, after), the largest change first."""
        before, after = self.reasons
        differing = [(code, before[code], after[code]) for code in before.keys() | after.keys()]
        return sorted((one for one in differing if one[1] != one[2]), key=lambda one: (-abs(one[2] - one[1]), one[0]))

    def as_data(self, parts: Sequence[Part], limit: int) -> dict[str, Any]:
        """Return the report as JSON values; no content is in it. At most ``limit`` events are listed."""
        return {
            "history": [history_as_data(part) for part in parts],
            "compared": self.compared,
            "changed": self.changed,
            "same_decision_other_reasons": self.same_other_reasons,
            "without_verdict": self.unknown,
            "changes": [
                {"tenant": tenant, "type": type_, "before": before, "after": after, "events": count}
                for (tenant, type_, before, after), count in self.pairs.most_common()
            ],
            "reasons": [{"reason": code, "before": old, "after": new} for code, old, new in self.other_reasons()],
            "landed_in_shadow_mode": self.shadowed,
            "taken_back": self.taken_back,
            "control": {
                "reproduced": self.reproduced,
                "not_reproduced": self.not_reproduced,
                "no_policy": self.no_control,
                "changes_without_the_candidate": self.own_changes,
            },
            "events": [_changed_as_data(one) for one in self.listed[:limit]],
            "events_left_out": self.changed - min(limit, len(self.listed)),
        }


def history_as_data(part: Part) -> dict[str, Any]:
    """Return how much of a partition's history there was, as JSON values."""
    return {
        "partition": part.partition,
        "begins_at_offset": part.first_offset,
        "begins_ms": part.first_ms,
        "whole": part.whole,
        "records": part.read,
        "unverified": part.unverified,
        "more_left": part.beyond,
    }


def _changed_as_data(one: Changed) -> dict[str, Any]:
    sides = {
        name: {"decision": told.decision, "zone": told.zone, "reasons": told.reasons, "took_back": told.takes_back}
        for name, told in (("before", one.was), ("after", one.now))
    }
    who = {"tenant": one.was.tenant, "event_id": one.was.event_id, "type": one.was.type, "decided_ms": one.was.at_ms}
    return {**who, **sides, "without_the_candidate_too": one.own}
