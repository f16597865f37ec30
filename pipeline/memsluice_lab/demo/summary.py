"""The page at the end of the demo. Every number is counted from the ledger; nothing here is written by hand."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from shutil import which

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from memsluice.escaping import visible
from memsluice.gate.reasons import score_note, words
from memsluice.recall.recaller import Recalled
from memsluice_lab.demo import outcome
from memsluice_lab.demo.ledger import Fate, Sent
from memsluice_lab.demo.live import LABELS, shortened
from memsluice_lab.demo.outcome import End, Pair

EXAMPLES_MAX = 4


def safe(text: str) -> str:
    """Return a text in which nothing acts on the terminal or is markup; whole, however long it is."""
    return escape(visible(text, len(text)))


def _table(title: str, *columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    table.add_column(columns[0], no_wrap=True)
    for name in columns[1:]:
        table.add_column(name, justify="right")
    return table


def landed(console: Console, pairs: Sequence[Pair], titles: Mapping[str, str]) -> None:
    """Print what came to which place, tenant by tenant."""
    names = ("guidance", "external", "held", "refused", "dead letter", "recalls", "other events")
    table = _table("Where it went", "tenant", *names, "events")
    counted = outcome.places(pairs)
    for tenant in titles:
        row = counted.get(tenant) or Counter[str]()
        table.add_row(tenant, *(str(row.get(name, 0)) for name in names), str(sum(row.values())))
    console.print(table)
    console.print(
        "[dim]guidance: what agents may follow · external: content kept as data, in a partition of its own · "
        "other events: sessions opened, observations, commands[/]"
    )


def why(console: Console, pairs: Sequence[Pair], *, labelled: bool) -> None:
    """Print the reasons of everything that did not go to guidance; ``labelled`` where honest and attack are known."""
    counts = outcome.reasons(pairs)
    table = Table(box=SIMPLE_HEAD, title="Why not to guidance", title_justify="left", title_style="bold")
    table.add_column("what", no_wrap=True)
    table.add_column("reason")
    table.add_column("code", no_wrap=True)
    for name in ("honest", "attacks") if labelled else ("events",):
        table.add_column(name, justify="right")
    for decision, code in sorted({(decision, code) for decision, code, _ in counts}):
        label = LABELS.get(decision, decision)
        numbers = (counts[decision, code, "honest"], counts[decision, code, "attack"])
        shown = [str(number or "·") for number in (numbers if labelled else numbers[:1])]
        table.add_row(label, words(code), f"[dim]{escape(code)}[/]", *shown)
    console.print(table)
    console.print("[dim]code a.b is decided in gate/…/a.py, a code without a dot in gate/checks/authenticity.py[/]\n")


def attacks(console: Console, found: outcome.Attacks) -> None:
    """Print what each attacker's attempts came to, and what got through."""
    table = _table("Attacks", "attacker", "tries", *(end.value for end in End))
    for attacker, ends in found.counts.items():
        table.add_row(attacker.value, str(sum(ends.values())), *(str(ends[end] or "·") for end in End))
    console.print(table)
    console.print(f"{found.stopped} of {found.total} tries reached nobody else's guidance.")
    console.print("[dim]own only: landed where nobody but its author is given it[/]")
    for attacker, text in found.through[:EXAMPLES_MAX]:
        console.print(f"  [red]got through[/]  {attacker.value}: {escape(shortened(text, 70))}")
    if len(found.through) > EXAMPLES_MAX:
        console.print(f"  [dim]and {len(found.through) - EXAMPLES_MAX} more[/]")
    if found.through:
        console.print(
            "[dim]  A plausible fact in a clean session carries no mark that content could show; what limits it is "
            "its scope and its expiry.[/]"
        )


def honest(console: Console, found: outcome.Honest) -> None:
    """Print how honest writes fared, the misplaced ones with their reasons."""
    wrong = len(found.misplaced)
    share = f" ({wrong / found.writes:.1%})" if found.writes else ""
    console.print(f"\n[bold]Honest writes[/]  {found.writes} by people and agents, {wrong} misplaced{share}.")
    for sent, fate in found.misplaced[:EXAMPLES_MAX]:
        console.print(f"  {_misplaced(sent, fate)}")
    if wrong > EXAMPLES_MAX:
        console.print(f"  [dim]and {wrong - EXAMPLES_MAX} more[/]")
    console.print(
        f"  {found.data_contained} of {found.data_writes} writes by tools and pages were kept as data, as meant."
    )


def _misplaced(sent: Sent, fate: Fate) -> str:
    score = None if fate.verdict is None else fate.verdict.score
    note = score_note(score) if "memsad.above_threshold" in fate.reasons else ""
    because = "; ".join(words(code) for code in fate.reasons) + (f" ({note})" if note else "")
    label = LABELS.get(fate.decision, fate.decision)
    return f"[yellow]{label}[/]  [dim]{escape(because)}[/]  {escape(shortened(sent.text))}"


def speed(console: Console, measured: outcome.Speed, title: str) -> None:
    """Print throughput and latency, and what they were measured on."""
    latency = ""
    if measured.p50_ms is not None and measured.p95_ms is not None:
        latency = (
            f", sent to landed {measured.p50_ms:.0f} ms at the median, {measured.p95_ms:.0f} ms at the 95th percentile"
        )
    console.print(
        f"\n[bold]Speed[/]  {measured.events} events in {measured.seconds:.1f} s: "
        f"{measured.per_s:.0f} a second, questions included{latency}.\n[dim]  {title}[/]"
    )


def recall(console: Console, tenant: str, principal: str, question: str, answer: Recalled) -> None:
    """Print a verified recall: what was returned, and how much was withheld for which reason."""
    asker = f"[dim]asked for {safe(principal)}[/]"
    console.print(f"\n[bold]A question to the memory of {safe(tenant)}[/]  {asker}  {safe(question)}")
    for entry in answer.entries:
        admission = entry.admission
        tier = f"tier {int(admission.tier)}"
        console.print(f"  {entry.similarity:.2f}  {tier}  {safe(entry.content)}")
    if not answer.entries:
        console.print("  nothing that holds")
    if answer.withheld:
        parts = ", ".join(f"{count} {reason}" for reason, count in sorted(answer.withheld.items()))
        console.print(f"  [red]withheld:[/] {parts} [dim](recall/reader.py)[/]")


def following(console: Console, commands: Sequence[tuple[str, str]]) -> None:
    """Print the next commands to type; before them, where a shell would not find ``memsluice``, how it does."""
    console.print("\n[bold]Next[/]")
    if which("memsluice") is None:
        line = f'export PATH={quote(str(Path(sys.executable).parent))}:"$PATH"'
        commands = [(line, "this terminal does not find the command memsluice yet: type this first"), *commands]
    for command, what in commands:
        console.print(f"  [green]{safe(command)}[/]\n      [dim]{what}[/]", soft_wrap=True)
