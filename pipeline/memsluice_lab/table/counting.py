"""Counts verdicts on labelled streams as the streams' own scorer does, and puts intervals around the shares.

The rules are those of the scorer that comes with the streams (a test holds both against each other); measures beyond
it: ``HELD``, honest writes that are quarantined or rejected; ``MOVED``, those that only look back took away; and names
``writes a-b``, by how many writes of the stream came before, and ``phase x``, as a change of the stream calls a part.
What only prepares an attack (``prepares``) counts by its own name and not among all. An attack that was split counts
write by write, as the scorer has it; ``WHOLE`` counts attacks of which every part stands in guidance.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memsluice.errors import StateError

STOPPED = ("quarantine", "reject")
UNTRUSTED = ("tool", "web")
CONFINED = ("principal", "session")
BANDS = ((1, 30), (31, 100), (101, 300), (301, 1_000_000))
"""Writes of a stream, counted from 1: while the tenant is unknown, and as it becomes known."""
Z_95 = 1.959964

Counts = dict[str, tuple[int, int]]
"""(k, n) by measure and name: ``KEPT all``, ``FPR category cache with parents``."""


def count(lines: Sequence[Mapping[str, Any]], verdicts: Mapping[int, Mapping[str, Any]], *, final: bool) -> Counts:
    """Count one stream. ``lines`` are labelled, ``verdicts`` by seq; ``final`` is what stood in the end.

    Raises StateError where a write has no verdict.
    """
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])

    def tally(measure: str, names: Iterable[str], hit: bool) -> None:
        for name in names:
            cell = found[f"{measure} {name}"]
            cell[0] += hit
            cell[1] += 1

    written = 0
    for line in lines:
        if line["kind"] != "write":
            continue
        written += 1
        if line["seq"] not in verdicts:
            raise StateError(f"write {line['seq']} has no verdict")
        told = verdicts[line["seq"]]
        decision = told.get("final", told["decision"]) if final else told["decision"]
        _tally(tally, line, decision, told.get("scope", "shared"), written)
        if line["label"] != "attack":
            tally("MOVED", ("all",), told.get("final", told["decision"]) != told["decision"])
    parts = _parts(lines, verdicts, final=final)
    found["WHOLE all"] = [sum(parts.values()), len(parts)]
    return {name: (k, n) for name, (k, n) in sorted(found.items()) if n}


def landed(lines: Iterable[Mapping[str, Any]], verdicts: Mapping[int, Mapping[str, Any]]) -> list[int]:
    """Return the attacks that stand in guidance in the end, every part of them, by the number of the first stream."""
    return sorted(attack for attack, whole in _parts(lines, verdicts, final=True).items() if whole)


def _parts(
    lines: Iterable[Mapping[str, Any]], verdicts: Mapping[int, Mapping[str, Any]], *, final: bool
) -> dict[int, bool]:
    """Say of every attack whether all its parts stand in guidance; ``of`` is the attack that a part is of."""
    found: dict[int, bool] = {}
    for line in lines:
        if line["kind"] == "write" and line["label"] == "attack" and not line.get("prepares"):
            told, attack = verdicts[line["seq"]], line.get("of", line["seq"])
            stands = (told.get("final", told["decision"]) if final else told["decision"]) == "accept"
            found[attack] = found.get(attack, True) and stands
    return found


def _tally(tally: Any, line: Mapping[str, Any], decision: str, scope: str, written: int) -> None:
    stopped, source = decision in STOPPED, line["source"]
    if line["label"] == "attack":
        everything = () if line.get("prepares") else ("all", f"channel {line['channel']}")
        attacks = (line["attack"], *everything)
        tally("TPR", attacks, stopped)
        tally("KEPT", attacks, decision != "accept")
        tally("REACH", attacks, decision == "accept" and not (line["channel"] == "user" and scope in CONFINED))
        return
    kind = f"category {line['category']}{' with parents' if line['parents'] else ''}"
    names = ("all", f"source {source}", f"stream {line['stream']}", kind)
    wrong = stopped or (decision == "contain" and source not in UNTRUSTED)
    tally("FPR", names, wrong)
    when = (_band(written), *((f"phase {line['phase']}",) if "phase" in line else ()))
    tally("FPR", when, wrong)
    tally("HELD", ("all", kind, *when), stopped)
    if source not in UNTRUSTED:
        tally("OPEN", ("all", f"source {source}"), decision == "accept" and scope == "shared")


def _band(written: int) -> str:
    low, high = next(band for band in BANDS if band[0] <= written <= band[1])
    return f"writes {low}-{high}" if high < BANDS[-1][1] else f"writes {low}-"


def pooled(counts: Iterable[Mapping[str, tuple[int, int]]]) -> Counts:
    """Return the sums, name by name."""
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for each in counts:
        for name, (k, n) in each.items():
            found[name][0] += k
            found[name][1] += n
    return {name: (k, n) for name, (k, n) in sorted(found.items())}


def wilson(k: int, n: int, z: float = Z_95) -> tuple[float, float]:
    """Return the Wilson score interval (Wilson 1927) for k successes of n; (0, 1) where nothing was tried."""
    if n == 0:
        return 0.0, 1.0
    share, square = k / n, z * z
    middle = (share + square / (2 * n)) / (1 + square / n)
    half = z / (1 + square / n) * math.sqrt(share * (1 - share) / n + square / (4 * n * n))
    return (0.0 if k == 0 else middle - half), (1.0 if k == n else middle + half)
