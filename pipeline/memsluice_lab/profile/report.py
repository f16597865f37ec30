"""What a profile says, as tables: on a terminal, and on a page, between marks that keep the rest of the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from memsluice.errors import ConfigError
from memsluice.topics import names
from memsluice_lab.profile.bursts import PROCESSES, Profile, Traffic
from memsluice_lab.profile.stacks import Weighed, by_function, by_layer

FUNCTIONS_SHOWN = 15
SECTIONS = ("before", "after")
CALLED = {"kafka": "Kafka (JVM)", "weaviate": "Weaviate", "producer": "producer, signing included"}


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: the first column is words, the others are numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def rich(self) -> Table:
        """Return it for a terminal."""
        table = Table(title=self.title, title_justify="left")
        for number, column in enumerate(self.columns):
            table.add_column(column, justify="right" if number else "left", overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        return table

    def markdown(self) -> str:
        """Return it for a page."""
        lines = [self.columns, tuple("--:" if number else "---" for number in range(len(self.columns))), *self.rows]
        return "\n".join([f"**{self.title}**", "", *(f"| {' | '.join(line)} |" for line in lines)])


def grids(found: Profile, shown: int = FUNCTIONS_SHOWN) -> list[Grid]:
    """Return the tables: processes, cores, topics, layers, and each worker's functions."""
    return [
        _processes(found),
        _cores(found),
        _memory(found),
        _topics(found),
        _layers(found),
        *(_functions(stage, sampled.stacks, shown) for stage, sampled in found.workers.items()),
    ]


def _processes(found: Profile) -> Grid:
    costs = found.costs.cpu_ms
    whole = sum(costs.values())
    rows = [(CALLED.get(name, name), f"{costs[name]:.2f}", f"{costs[name] / whole:.0%}") for name in PROCESSES]
    return Grid(
        "Processor time, by process",
        ("process", "ms a landed write", "share"),
        (*rows, ("all", f"{whole:.2f}", "100%")),
    )


def _cores(found: Profile) -> Grid:
    costs = found.costs
    others = max(1 - costs.busy - costs.idle, 0.0)
    sampled = "; ".join(f"{name} {one.samples:,}" for name, one in found.workers.items())
    rows = (
        ("writes published; landed", f"{costs.writes:,}; {costs.landed:,}"),
        ("landed a second", f"{costs.landed / costs.seconds:.1f} in {costs.seconds:.1f} s"),
        ("cores' time used by these processes", f"{costs.busy:.0%}"),
        ("… by nobody", f"{costs.idle:.0%}"),
        ("… by the rest of the machine", f"{others:.0%}"),
        ("samples of the second burst", sampled),
        ("the second burst took, under the profiler", f"{found.slower:.2f} x as long"),
    )
    return Grid("The burst", ("what", "how much"), rows)


def _memory(found: Profile) -> Grid:
    rows = [
        (CALLED.get(name, name), f"{one.resident:,.0f}", f"{one.anonymous:,.0f}")
        for name, one in found.costs.memory.items()
    ]
    return Grid("Memory after the burst, MiB", ("process", "resident", "of it anonymous"), tuple(rows))


def _topics(found: Profile) -> Grid:
    landed = found.costs.landed
    rows = [_traffic(topic, one, landed) for topic, one in found.costs.traffic.items() if one.records or one.marks]
    return Grid(
        f"Records, a landed write; `{names.SCREEN_CHANGELOG}` has the state rows",
        ("topic", "records", "bytes a record", "bytes", "marks of transactions"),
        (*rows, _traffic("all", _sum(list(found.costs.traffic.values())), landed)),
    )


def _traffic(name: str, one: Traffic, landed: int) -> tuple[str, ...]:
    a_record = f"{one.size / one.records:,.0f}" if one.records else ""
    return name, f"{one.records / landed:.2f}", a_record, f"{one.size / landed:,.0f}", f"{one.marks / landed:.2f}"


def _sum(some: Sequence[Traffic]) -> Traffic:
    return Traffic(sum(one.records for one in some), sum(one.size for one in some), sum(one.marks for one in some))


def _layers(found: Profile) -> Grid:
    stages = {stage: by_layer(sampled.stacks) for stage, sampled in found.workers.items()}
    rows = []
    for layer in next(iter(stages.values())):
        costs = [of[layer] for of in stages.values()]
        if any(costs):
            rows.append((layer, *(f"{cost:.2f}" for cost in costs), f"{sum(costs):.2f}"))
    return Grid("The workers, by layer: ms a landed write", ("layer", *stages, "all"),
                tuple(rows))  # fmt: skip


def _functions(stage: str, stacks: Weighed, shown: int) -> Grid:
    rows = [(f"`{one.name.replace('|', '¦')}`", f"{one.own:.3f}", f"{one.whole:.3f}") for one in by_function(stacks)]
    return Grid(f"{stage}, by function: ms a landed write", ("function", "itself", "with what it calls"),
                tuple(rows[:shown]))  # fmt: skip


def marks(section: str) -> tuple[str, str]:
    """Return the lines between which a page has a section."""
    return f"<!-- profile {section}: begin -->", f"<!-- profile {section}: end -->"


def with_section(page: str, section: str, text: str) -> str:
    """Return a page with another text in a section. Raises ConfigError where it has no such section."""
    begin, end = marks(section)
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise ConfigError(f"the page needs the lines {begin} and {end}, once each and in this order")
    head, _, rest = page.partition(begin)
    return f"{head}{begin}\n\n{text.strip()}\n\n{end}{rest.partition(end)[2]}"


def write(page: Path, section: str, text: str) -> None:
    """Put a text into a section of a page. Raises ConfigError where that is not possible."""
    page.write_text(with_section(read(page), section, text), encoding="utf-8")


def read(page: Path) -> str:
    """Return a page's text. Raises ConfigError where there is none."""
    if not page.is_file():
        raise ConfigError(f"there is no page {page}")
    return page.read_text(encoding="utf-8")
