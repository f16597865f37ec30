"""A chapter of the demo: a tenant changes its topic under the policy ``published-rolling``, and the window moves.

Beside it the same notes are written where MEMSAD's calibration stays what the paper has: the first fifty notes, once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from memsluice.client.build import build
from memsluice.envelope.codec import canonical
from memsluice.envelope.dsse import Signer
from memsluice.envelope.registry import Role
from memsluice.envelope.verdict import Decision, Score
from memsluice.errors import StateError
from memsluice.gate.policy import model as policies
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice.operations.policies.commands import activation
from memsluice.topics.names import COMMANDS
from memsluice_lab import cast
from memsluice_lab.demo.ledger import Fate, Ledger, Sent
from memsluice_lab.demo.play import Player
from memsluice_lab.demo.sample import turned
from memsluice_lab.demo.site import Site
from memsluice_lab.streams import Restamp, events_of

ROLLING, FIXED = "published-rolling", "fixed"
NAMES = {ROLLING: "maple-street", FIXED: "maple-street-fixed"}
"""The tenant that is under each policy."""
SOURCES = ("runtime", "reader", "user", "operator")
SECOND = "operator-2"
"""A policy is put in force by two operators."""
FIXED_KAPPA = 2.0
"""The paper's own."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """What became of a part's notes: how many there were and were held, and the score of the last one."""

    part: turned.Part
    written: int
    held: int
    last: Score

    @property
    def honest(self) -> bool:
        """Whether the household wrote it."""
        return self.part.writers == turned.PEOPLE


def tenants(held: AbstractSet[str]) -> dict[str, str]:
    """Return the chapter's tenants by policy; they get a number where ``held`` has credentials of theirs already."""
    for number in count(1):
        names = {policy: name if number == 1 else f"{name}-{number}" for policy, name in NAMES.items()}
        if not any(cast.kid_of(name, "user") in held for name in names.values()):
            return names
    raise AssertionError


def policy(name: str) -> str:
    """Return a policy's text: the one that ships, or the same with the paper's own calibration."""
    text = policies.shipped(ROLLING)
    if name == ROLLING:
        return text
    told = policies.document(text)
    memsad = {**told["memsad"], "kappa": FIXED_KAPPA, "calibration": {"strategy": "fixed"}}
    return canonical({**told, "name": name, "memsad": memsad}).decode()


def issue(keys: KeyStore, names: Iterable[str], now_ms: int) -> dict[tuple[str, str], Signer]:
    """Return signers of the tenants, two operators' among them."""
    names = list(names)
    signers = cast.at_home(keys, names, now_ms=now_ms, sources=SOURCES)
    for name in names:
        kid = cast.kid_of(name, SECOND)
        issue_credential(keys, Role.OPERATOR, "operator", [name], now_ms=now_ms, kid=kid, note="signs policies, too")
        signers[name, SECOND] = keys.credential(kid).signer()
    return signers


@dataclass(slots=True)
class Chapter:
    """Plays the chapter on a site. ``chosen`` are its tenants by policy, ``start_ms`` is where the site's day began."""

    site: Site
    ledger: Ledger
    signers: Mapping[tuple[str, str], Signer]
    player: Player
    chosen: Mapping[str, str]
    run: str
    start_ms: int

    def play(self, on_part: Callable[[str], None]) -> dict[str, list[Stretch]]:
        """Put both policies in force and play the parts; return what became of them, by policy."""
        for name, tenant in self.chosen.items():
            self._activate(name, tenant)
        told: dict[str, list[Stretch]] = {name: [] for name in self.chosen}
        first = 0
        for part in turned.PARTS:
            on_part(part.title)
            before = len(self.ledger.sent)
            for tenant in self.chosen.values():
                self._write(part, tenant, first)
            first += len(part.notes) + len(part.questions)
            sent = list(self.ledger.each())[before:]
            for name, tenant in self.chosen.items():
                told[name].append(_stretch(part, [pair for pair in sent if pair[0].tenant == tenant]))
        return told

    def _write(self, part: turned.Part, tenant: str, first: int) -> None:
        now = datetime.fromtimestamp(self.site.now_ms() / 1000, UTC).isoformat()
        items = events_of(turned.lines(part, tenant, first, now), restamp=Restamp(self.run, self.site.now_ms))
        self.player.play_stream(items, lambda minute, what: None, self.start_ms)

    def _activate(self, name: str, tenant: str) -> None:
        """Put a policy in force. Raises StateError where the gate refuses it."""
        now = datetime.fromtimestamp(self.site.now_ms() / 1000, UTC)
        command = activation(policy(name), tenant, f"{self.run}.{tenant}.policy", now)
        both = [self.signers[tenant, source] for source in ("operator", SECOND)]
        sent_s = self.ledger.clock_s()
        place = self.site.send(COMMANDS, build(command, both, source=f"/{tenant}/operator"))
        self.ledger.note(Sent(place, "command", tenant, "operator", "", sent_s))
        self.site.settle()
        fate = self.ledger.fates[place]
        if fate.decision != Decision.RECORD:
            raise StateError(f"policy {name} was not put in force for {tenant}: {', '.join(fate.reasons)}")


def _stretch(part: turned.Part, sent: Sequence[tuple[Sent, Fate | None]]) -> Stretch:
    verdicts = [fate.verdict for one, fate in sent if one.kind == "write" and fate is not None and fate.verdict]
    score = verdicts[-1].score if verdicts else None
    if len(verdicts) != len(part.notes) or score is None:
        raise StateError(f"of {len(part.notes)} notes ({part.title}) {len(verdicts)} have a verdict")
    return Stretch(part, len(verdicts), sum(one.decision == Decision.QUARANTINE for one in verdicts), score)


def show(console: Console, told: Mapping[str, Sequence[Stretch]]) -> None:
    """Print what became of each part under both policies, and what it means. Every number is counted."""
    console.print(
        "\n[bold]A change of topic[/]  A household writes about this and that, then about nothing but its move.\n"
        f"MEMSAD alone decides: what lies nearer to the questions asked than its line is held. Under {ROLLING}\n"
        "the line follows the latest notes and questions; in a second household, which writes the same, it is fixed."
    )
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("what is written", no_wrap=True)
    for name in ("held", "line", "reckoned over the last", "held if fixed", "line"):
        table.add_column(name, justify="right", no_wrap=True)
    for rolling, fixed in zip(told[ROLLING], told[FIXED], strict=True):
        table.add_row(
            rolling.part.title, *_held(rolling),
            f"{rolling.last.window_size} notes, {rolling.last.history_size} questions", *_held(fixed),
        )  # fmt: skip
    console.print(table)
    console.print("\n".join(_words(told[ROLLING], told[FIXED])), highlight=False)


def _held(one: Stretch) -> tuple[str, str]:
    line = one.last.threshold
    return f"{one.held} of {one.written}", "·" if line is None else f"{line:.2f}"


def _words(rolling: Sequence[Stretch], fixed: Sequence[Stretch]) -> Iterable[str]:
    """Yield what the numbers say, the price among it."""
    before, after = rolling[0], [one for one in rolling[1:] if one.honest]
    written, held = sum(one.written for one in after), sum(one.held for one in after)
    yield (
        f"The line moved from {before.last.threshold:.2f} (when {before.last.window_id} questions had been asked) to "
        f"{after[-1].last.threshold:.2f} (at {after[-1].last.window_id})."
    )
    still = sum(one.held for one in fixed[1:] if one.honest)
    yield f"Of {written} honest notes after the change {held} were held; by the fixed line {still}."
    first, last = (one.held for one in rolling if not one.honest)
    tries = len(turned.LIES)
    yield (
        f"[dim]What follows honest people follows a liar, too: of {tries} lies {first} were held soon after the change "
        f"and {last} once the line had followed.\nIn the default policy MEMSAD is therefore one sign among others. "
        "docs/rolling-calibration.md[/]"
    )
