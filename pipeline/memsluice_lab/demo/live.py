"""What a person sees while the day runs: the clock, the counts of each tenant, and what was just held or refused."""

from collections import Counter, deque
from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from memsluice.escaping import visible
from memsluice.gate.reasons import words
from memsluice_lab.demo import outcome
from memsluice_lab.demo.ledger import Fate, Ledger, Place, Sent

TICKER_LINES = 8
REFRESH_HZ = 8.0
TEXT_CHARS = 52
COLUMNS = ("guidance", "external", "held", "refused", "dead letter", "recalls")
STYLES = {"contain": "cyan", "quarantine": "yellow", "reject": "red", "dead_letter": "red", "duplicate": "magenta"}
LABELS = {"contain": "as data", "quarantine": "held", "reject": "refused", "dead_letter": "dead letter"}


def clock_text(minute: float) -> str:
    """Return the time of day of a minute counted from 8:00."""
    whole = int(minute) + 8 * 60
    return f"{whole // 60 % 24:02d}:{whole % 60:02d}"


def shortened(text: str, chars: int = TEXT_CHARS) -> str:
    """Return a text on one line, cut at ``chars`` characters; nothing in it acts on the terminal."""
    line = " ".join(text.split())
    return visible(line if len(line) <= chars else line[: chars - 1] + "…")


def ticker_line(sent: Sent, fate: Fate) -> Text:
    """Return one line about an event that did not go to guidance."""
    label = LABELS.get(fate.decision, fate.decision)
    why = "; ".join(words(code) for code in fate.reasons)
    text = shortened(sent.text) if sent.text else sent.act.replace("_", " ")
    head = (f"{label:<12}", STYLES.get(fate.decision, ""))
    line = Text.assemble(head, f"{sent.tenant:<18} ", (why, "dim"), f"  {text}")  # text last: it may run right to left
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


class Watch:
    """Shows a ledger while it fills: in place on a terminal, else a line for every hour of the day."""

    def __init__(self, console: Console, ledger: Ledger, titles: Mapping[str, str], total: int) -> None:
        self._console = console
        self._ledger = ledger
        self._titles = titles
        self._total = total
        self._minute = 0.0
        self._done = 0
        self._hour = -1
        self._told: set[Place] = set()
        self._ticker: deque[Text] = deque(maxlen=TICKER_LINES)
        self._live = Live(get_renderable=self._render, console=console, refresh_per_second=REFRESH_HZ, transient=True)

    def __enter__(self) -> "Watch":
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def on_scene(self, minute: float, what: str) -> None:
        """Note that something was sent at a minute of the day."""
        self._minute, self._done = minute, self._done + 1
        if not self._console.is_terminal and int(minute) // 60 > self._hour:
            self._hour = int(minute) // 60
            self._console.print(f"  {clock_text(60.0 * self._hour)}  {self._line()}", highlight=False)

    def _line(self) -> str:
        decisions = [fate.decision for _, fate in self._ledger.each() if fate is not None]
        parts = ((("accept",), "to guidance"), (("contain",), "kept as data"), (("quarantine",), "held"),
                 (("dead_letter", "reject", "duplicate"), "refused"))  # fmt: skip
        counts = [f"{sum(d in names for d in decisions)} {label}" for names, label in parts]
        return f"{self._done} of {self._total} scenes: {', '.join(counts)}"

    def _render(self) -> Group:
        pairs = [(sent, fate) for sent, fate in self._ledger.each() if fate is not None]
        for sent, fate in pairs:
            if sent.place not in self._told:
                self._told.add(sent.place)
                if fate.decision not in ("accept", "record"):
                    self._ticker.append(ticker_line(sent, fate))
        table = Table(box=None, padding=(0, 2), title=self._title(), title_justify="left")
        table.add_column("tenant", no_wrap=True)
        for name in COLUMNS:
            table.add_column(name, justify="right")
        places = outcome.places(pairs)
        for tenant in self._titles:
            row = places.get(tenant) or Counter[str]()
            table.add_row(tenant, *(str(row.get(name, 0) or "·") for name in COLUMNS))
        return Group(table, Text(""), *self._ticker)

    def _title(self) -> Text:
        share = self._done / max(1, self._total)
        bar = "━" * int(24 * share) + "─" * (24 - int(24 * share))
        return Text.assemble((clock_text(self._minute), "bold"), f"  {bar}  {self._done} of {self._total} scenes")
