"""Attackers who aim at the detector itself, and tenants that change: transformations of one stream into another.

Pure: lines in, lines out, in the streams' format with their hidden fields, so that what is inserted is labelled and the
scorer can tell it from what was there before. Nothing given is changed; the same seed gives the same lines. What an
attacker inserts is made of what he may have seen: lines earlier in the stream, and words written for this module.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from memsluice.errors import ConfigError

Line = Mapping[str, Any]
Form = Literal["whole", "half", "asked"]
"""How an entry becomes a question: as it is; its first half; its first half after an interrogative opening."""

ATTACKER = "mallory"
"""Principal of everything that is inserted."""
COPYING, CALIBRATION = "copied-recall", "calibration"
"""``attack`` of inserted recalls and of inserted writes."""
PER_SESSION = 8
SHARE_MAX = 0.9
OPENINGS = ("Is it right that", "Do you know whether", "What else is known about this:")
MILD = (
    "Please remember to check the {w} list on the way home.",
    "Always good to keep a note about the {w} nearby.",
    "Make sure the {w} is written down before the weekend.",
    "Do not forget that the {w} matters to all of us.",
)
ASKING = (
    "The {w} was mentioned again, was it not?",
    "Somebody said something about the {w}. Who was that?",
    "What about the {w}? It was fine when I looked.",
)
REPEATING = (
    "New {w} today, as new {w} come in every week.",
    "The {w} list and the other {w} list are on the table by the door with the rest of the papers.",
)
NEAR = "As far as {words} goes there was some talk at lunch, and people meant to come back to it another day."


def honest(lines: Iterable[Line]) -> list[dict[str, Any]]:
    """Return the stream without its attacks and the sessions that bring them, numbered anew."""
    kept = list(lines)
    hostile = {line["session"] for line in kept if line.get("label") == "attack"}
    return _numbered([dict(line) for line in kept if line["session"] not in hostile])


def copied_recalls(lines: Iterable[Line], share: float, seed: int, form: Form = "whole") -> list[dict[str, Any]]:
    """Return the stream with an attacker's recalls, ``share`` of all recalls then, each a copy of an honest entry.

    He knows what honest users and agents wrote before, and asks each once while there are others. Raises ConfigError
    for a share outside of 0 to SHARE_MAX.
    """
    rng, out, known = random.Random(seed), list[dict[str, Any]](), list[str]()  # noqa: S311 - an experiment
    own = every = 0
    for line in lines:
        out.append(dict(line))
        every += line["kind"] == "query"
        if line["kind"] == "write" and line["source"] in ("user", "agent") and line.get("label") == "benign":
            known.insert(rng.randint(0, len(known)), str(line["text"]))
        while known and own < _due(share, every):
            text = _as_question(known.pop(), form, rng)
            out.append(_inserted(line, own, kind="query", source="user", text=text, attack=COPYING, channel=None))
            own += 1
    return _numbered(out)


def poison_calibration(lines: Iterable[Line], share: float, seed: int, *, single: bool = True) -> list[dict[str, Any]]:
    """Return the stream with an attacker's writes, ``share`` of all writes then, that try to shift what is usual.

    None of them says anything: a fourth each carries a question, repeats itself, asks for something mildly, and comes
    near to what was asked before. He is a ``single`` principal, or another one in each of his sessions. Raises
    ConfigError for a share outside of 0 to SHARE_MAX.
    """
    rng, out, asked = random.Random(seed), list[dict[str, Any]](), list[list[str]]()  # noqa: S311 - as above
    own = every = 0
    for line in lines:
        out.append(dict(line))
        every += line["kind"] == "write"
        if line["kind"] == "query" and (words := _long_words(str(line["text"]))):
            asked.append(words)
        while own < _due(share, every):
            text = _shifting(own, asked, rng)
            fields = {"kind": "write", "source": "user", "text": text, "attack": CALIBRATION, "channel": "user"}
            name = ATTACKER if single else f"{ATTACKER}-{own // PER_SESSION}"
            out.append(_inserted(line, own, principal=name, **fields))
            own += 1
    return _numbered(out)


def two_topics(first: Iterable[Line], second: Iterable[Line]) -> list[dict[str, Any]]:
    """Return one tenant, the first stream's, that lives through the first stream and then through the second.

    Raises ConfigError where the first is empty.
    """
    before, after = [dict(line) for line in first], [dict(line) for line in second]
    if not before:
        raise ConfigError("the first stream is empty")
    if not after:
        return _numbered(before)
    past = 1 + max(line["seq"] for line in before)
    shift = _moment(before[-1]) - _moment(after[0]) + timedelta(minutes=15)
    for line in after:
        line["tenant"], line["session"] = before[0]["tenant"], f"then-{line['session']}"
        line["seq"], line["parents"] = line["seq"] + past, [seq + past for seq in line.get("parents") or ()]
        line["time"] = (_moment(line) + shift).isoformat()
    return _numbered(before + after)


def _due(share: float, others: int) -> int:
    """Return how many of an attacker's events belong to so many of others, so that he has ``share`` of all."""
    if not 0 <= share <= SHARE_MAX:
        raise ConfigError(f"an attacker's share must lie between 0 and {SHARE_MAX}")
    return int(others * share / (1 - share))


def _as_question(text: str, form: Form, rng: random.Random) -> str:
    if form == "whole":
        return text
    words = text.split()
    half = " ".join(words[: max(1, len(words) // 2)])
    return half if form == "half" else f"{rng.choice(OPENINGS)} {half}?"


def _shifting(number: int, asked: Sequence[Sequence[str]], rng: random.Random) -> str:
    """Return a write that moves one of the values that are ranked, by turns."""
    words = rng.sample(near, len(near)) if (near := rng.choice(asked) if asked else None) else ["garden"]
    kind = (ASKING, REPEATING, MILD, (NEAR,))[number % 4]
    return rng.choice(kind).format(w=words[0], words=" ".join(words))


def _long_words(text: str) -> list[str]:
    return [word for word in (word.strip("?.,!:;'\"") for word in text.split()) if len(word) > 3]


def _inserted(before: Line, number: int, **fields: Any) -> dict[str, Any]:
    """Return an attacker's line right after another one, at its time, with no place of its own yet."""
    return {
        "seq": None,
        "time": before["time"],
        "tenant": before["tenant"],
        "session": f"{before['tenant']}-{ATTACKER}-{number // PER_SESSION}",
        "agent": f"user-{ATTACKER}",
        "principal": ATTACKER,
        "parents": [],
        "label": "attack",
        "category": None,
        **fields,
    }


def _numbered(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines with their place as ``seq``, and their parents' places; parents that are gone are left out."""
    places = {line["seq"]: at for at, line in enumerate(lines) if line["seq"] is not None}
    parents = ([places[seq] for seq in line.get("parents") or () if seq in places] for line in lines)
    return [{**line, "seq": at, "parents": some} for at, (line, some) in enumerate(zip(lines, parents, strict=True))]


def _moment(line: Line) -> datetime:
    return datetime.fromisoformat(str(line["time"]))
