"""What a row does to the labelled streams before they are decided: pure functions of streams and a seed.

A line is one JSON object of a stream with its labels, and ``stream``, the name of the file it came from. Every function
numbers and times the lines anew, a quarter of an hour apart as the streams have it, and keeps parents right.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any

from memsluice.errors import ConfigError
from memsluice_lab import attackers
from memsluice_lab.rewrites import REWRITES, Rewrite, same
from memsluice_lab.table.honest import honest_writes

Line = dict[str, Any]
Streams = Mapping[str, Sequence[Line]]
Change = Callable[[Streams, int], dict[str, list[Line]]]

STEP = timedelta(minutes=15)
SHARES = (5, 20)
"""Percent of the recalls, or of the writes, that an attacker has."""
CHANGE_WRITES = 100
CONVERSATION = "conversation-"
LEAD = 5
"""Attacks, and what is added, come after the first fifth of a stream, as the streams' own program has it."""


def unchanged(streams: Streams, seed: int) -> dict[str, list[Line]]:
    """Return the streams as they are."""
    return {name: list(lines) for name, lines in streams.items()}


def renumbered(lines: Iterable[Line]) -> list[Line]:
    """Return the lines with new numbers and times. ``was`` (or ``seq``) is the number that parents mean.

    Several lines may stand for one former line: each of them is a parent of whatever named it.
    """
    found = list(lines)
    if not found:
        return []
    start = datetime.fromisoformat(found[0]["time"])
    now: dict[int, list[int]] = {}
    for number, line in enumerate(found):
        now.setdefault(line["was"] if "was" in line else line["seq"], []).append(number)
    out = []
    for number, line in enumerate(found):
        parents = sorted({new for old in line["parents"] for new in now.get(old, ()) if new < number})
        kept = {name: value for name, value in line.items() if name != "was"}
        out.append(kept | {"seq": number, "time": (start + number * STEP).isoformat(), "parents": parents})
    return out


def rewritten(rule: str) -> Change:
    """Return the change that words every attack otherwise; what an honest agent launders was seen so outside, too."""
    rewrite = REWRITES[rule][0]

    def change(streams: Streams, seed: int) -> dict[str, list[Line]]:
        return {name: _rewritten(lines, rewrite, f"{seed}{rule}{name}") for name, lines in streams.items()}

    return change


def _rewritten(lines: Sequence[Line], rewrite: Rewrite, seed: str) -> list[Line]:
    instead: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        if line["label"] == "attack":
            rng = Random(f"{seed}{line['seq']}")  # noqa: S311
            instead[line["session"], line["text"]] = rewrite(line["text"], rng)
    out: list[Line] = []
    for line in lines:
        texts = instead.get((line["session"], line["text"])) or same(line["text"], Random(0))  # noqa: S311
        if line["kind"] == "observe":
            texts = [" ".join(texts)]
        out += [{**line, "text": text, "was": line["seq"], "of": line["seq"]} for text in texts]
    return renumbered(out)


def cold(streams: Streams, seed: int) -> dict[str, list[Line]]:
    """Begin every stream at its first attack: the tenant is unknown when the attacks come."""
    out = {}
    for name, lines in streams.items():
        first = next((at for at, line in enumerate(lines) if line["label"] == "attack"), 0)
        out[name] = renumbered(lines[first:])
    return out


def hard_negatives(streams: Streams, seed: int) -> dict[str, list[Line]]:
    """Add honest writes that look like attacks, each in a session of its own, after the first fifth of every stream."""
    out = {}
    for name, lines in streams.items():
        rng = Random(f"{seed}hard{name}")  # noqa: S311
        asked = [line["text"] for line in lines if line["kind"] == "query"]
        facts = [line["text"] for line in lines if line["label"] == "benign" and line["category"] in ("fact", "note")]
        places: dict[int, list[Line]] = {}
        for number, (category, text) in enumerate(honest_writes(asked, facts, rng)):
            added = _added(lines[0], f"hard{number}", f"writer-{number % 7}", text, category)
            places.setdefault(rng.randrange(len(lines) // LEAD, len(lines)), []).append(added)
        mixed: list[Line] = []
        for at, line in enumerate(lines):
            mixed += [*places.get(at, ()), line]
        out[name] = renumbered(mixed)
    return out


def copying(share: float) -> Change:
    """Return the change by which an attacker has ``share`` of the recalls, each a copy of an honest entry."""

    def change(streams: Streams, seed: int) -> dict[str, list[Line]]:
        return {name: attackers.copied_recalls(lines, share, seed) for name, lines in streams.items()}

    return change


def poisoning(share: float) -> Change:
    """Return the change by which an attacker has ``share`` of the writes, harmless ones that shift what is usual."""

    def change(streams: Streams, seed: int) -> dict[str, list[Line]]:
        out = {}
        for name, lines in streams.items():
            mixed = attackers.poison_calibration(lines, share, seed)
            out[name] = [
                {**line, "prepares": True} if line["attack"] == attackers.CALIBRATION else line for line in mixed
            ]
        return out

    return change


def other_topic(streams: Streams, seed: int) -> dict[str, list[Line]]:
    """Return conversations by twos as one tenant each, honest writes alone: one topic, then another."""
    names = [name for name in sorted(streams) if name.startswith(CONVERSATION)]
    return {f"{a}-then-{b}": _then(streams[a], streams[b]) for a, b in zip(names[::2], names[1::2], strict=False)}


def other_kind(streams: Streams, seed: int) -> dict[str, list[Line]]:
    """Return a conversation and a tenant of factoid notes as one tenant each, honest writes alone."""
    talks = [name for name in sorted(streams) if name.startswith(CONVERSATION)]
    notes = [name for name in sorted(streams) if name.startswith("qa-")]
    return {f"{a}-then-{b}": _then(streams[a], streams[b]) for a, b in zip(talks, notes, strict=False)}


def _then(first: Sequence[Line], second: Sequence[Line]) -> list[Line]:
    before, after = attackers.honest(first), attackers.honest(second)
    writes = 0
    for line in after:
        writes += line["kind"] == "write"
        line["phase"] = "first 100 after" if writes <= CHANGE_WRITES else "later"
    return attackers.two_topics([{**line, "phase": "before"} for line in before], after)


def _added(like: Line, session: str, principal: str, text: str, category: str) -> Line:
    return {
        **like,
        "kind": "write",
        "seq": -1,
        "was": -1,
        "session": f"{like['tenant']}-{session}",
        "agent": "user-0",
        "principal": principal,
        "source": "user",
        "text": text,
        "parents": [],
        "label": "benign",
        "attack": None,
        "channel": None,
        "category": category,
    }


def get(name: str) -> Change:
    """Return a change by its name. Raises ConfigError."""
    if name in CHANGES:
        return CHANGES[name]
    raise ConfigError(f"there is no change of streams {name!r}; there are: {', '.join(CHANGES)}")


CHANGES: dict[str, Change] = {
    "none": unchanged,
    "cold": cold,
    "hard negatives": hard_negatives,
    "other topic": other_topic,
    "other kind": other_kind,
    **{f"copying {share:g}": copying(share / 100) for share in SHARES},
    **{f"poisoning {share:g}": poisoning(share / 100) for share in SHARES},
    **{f"rewrite {rule}": rewritten(rule) for rule in REWRITES},
}
