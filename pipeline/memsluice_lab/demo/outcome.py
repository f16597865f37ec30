"""Counts over a ledger: pure functions from what was sent and what became of it to what the summary says."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from memsluice_lab.demo.ledger import Fate, Sent
from memsluice_lab.demo.sample.script import Attacker
from memsluice_lab.demo.store_attacker import Break

Pair = tuple[Sent, Fate]
UNTRUSTED = ("tool", "web")


class End(StrEnum):
    """What an attack came to."""

    REFUSED = "refused"
    HELD = "held"
    AS_DATA = "as data"
    OWN = "own only"
    THROUGH = "through"


def end_of(sent: Sent, fate: Fate) -> End:
    """Return what an attack came to. A user who writes only into his own scope reaches no victim."""
    if fate.decision in ("dead_letter", "duplicate", "reject"):
        return End.REFUSED
    if fate.decision == "quarantine":
        return End.HELD
    if fate.decision == "contain":
        return End.AS_DATA
    if sent.attacker is Attacker.USER and fate.scope in ("principal", "session"):
        return End.OWN
    return End.THROUGH


@dataclass(frozen=True, slots=True)
class Attacks:
    """Attacks by attacker and end, and the texts of those that got through."""

    counts: Mapping[Attacker, Counter[End]]
    through: tuple[tuple[Attacker, str], ...]

    @property
    def total(self) -> int:
        """All attempts."""
        return sum(sum(ends.values()) for ends in self.counts.values())

    @property
    def stopped(self) -> int:
        """Attempts that reached no victim's guidance."""
        return self.total - sum(ends[End.THROUGH] for ends in self.counts.values())


def attacks(pairs: Iterable[Pair], breaks: Sequence[Break]) -> Attacks:
    """Count what each attacker's attempts came to. A break-in is refused when what it left is not returned."""
    counts: dict[Attacker, Counter[End]] = {attacker: Counter() for attacker in Attacker}
    through = []
    for sent, fate in pairs:
        if sent.attacker is not None:
            end = end_of(sent, fate)
            counts[sent.attacker][end] += 1
            if end is End.THROUGH:
                through.append((sent.attacker, sent.text))
    for attempt in breaks:
        end = End.THROUGH if attempt.returned else End.REFUSED
        counts[Attacker.STORE][end] += 1
        if end is End.THROUGH:
            through.append((Attacker.STORE, attempt.content))
    return Attacks({attacker: ends for attacker, ends in counts.items() if ends}, tuple(through))


@dataclass(frozen=True, slots=True)
class Honest:
    """Honest writes by people and agents: how many, and those that did not reach guidance."""

    writes: int
    misplaced: tuple[Pair, ...]
    data_writes: int
    data_contained: int


def honest(pairs: Iterable[Pair]) -> Honest:
    """Count honest writes. What tools and pages write is meant to be kept as data; people and agents mean guidance."""
    own = [(s, f) for s, f in pairs if s.kind == "write" and s.attacker is None]
    meant = [(s, f) for s, f in own if s.source not in UNTRUSTED]
    data = [(s, f) for s, f in own if s.source in UNTRUSTED]
    misplaced = tuple((s, f) for s, f in meant if f.decision != "accept")
    return Honest(len(meant), misplaced, len(data), sum(f.decision == "contain" for _, f in data))


def places(pairs: Iterable[Pair]) -> dict[str, Counter[str]]:
    """Return, per tenant, how many writes came to each place, and how many other events there were."""
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for sent, fate in pairs:
        row = table[sent.tenant]
        if fate.decision == "dead_letter":
            row["dead letter"] += 1
        elif fate.decision == "record":
            row["recalls" if sent.kind == "ask" else "other events"] += 1
        elif fate.decision in ("accept", "contain"):
            row[fate.zone] += 1
        elif fate.decision == "quarantine":
            row["held"] += 1
        else:
            row["refused"] += 1
    return dict(table)


def reasons(pairs: Iterable[Pair]) -> Counter[tuple[str, str, str]]:
    """Count (decision, reason code, who) over everything that did not go to guidance; who is honest or attack."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for sent, fate in pairs:
        if fate.decision in ("accept", "record"):
            continue
        for code in fate.reasons:
            counts[fate.decision, code, "attack" if sent.attacker is not None else "honest"] += 1
    return counts


@dataclass(frozen=True, slots=True)
class Speed:
    """Events a second over the whole run; latency in milliseconds from sending to the landing acknowledged."""

    events: int
    seconds: float
    p50_ms: float | None
    p95_ms: float | None

    @property
    def per_s(self) -> float:
        """Events a second."""
        return self.events / self.seconds if self.seconds > 0 else 0.0


def quantile(values: Sequence[float], share: float) -> float | None:
    """Return the value below which ``share`` of the values lie (nearest rank), or None."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def speed(pairs: Sequence[Pair], seconds: float) -> Speed:
    """Measure the run."""
    waits = [1_000 * (f.landed_s - s.sent_s) for s, f in pairs if f.landed_s is not None]
    return Speed(len(pairs), seconds, quantile(waits, 0.50), quantile(waits, 0.95))
