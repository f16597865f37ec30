"""The page made from the kept measurements: every figure, for every class of machine, with its commit and its age."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from memsluice_lab.figures import measurements, provenance_page
from memsluice_lab.figures.dependencies import here
from memsluice_lab.figures.machines import AMX, AVX2, AVX512, CLASSES
from memsluice_lab.figures.measurements import Measurement, Record
from memsluice_lab.figures.registry import FIGURES, Figure, number

PAGE = Path("docs/figures.md")
SHOWN = (AMX, AVX512, AVX2)
"""Classes of machine that have a column even while nothing was measured on them."""
_HEAD = """\
# Figures

Measured by the commands shown, on the real thing: a real broker, real stream processors, a real vector store, the real
encoder, real records. Written by `make figures`; not edited by hand. A figure that misses its goal stands here like any
other.

A figure holds for the class of machine that it was measured on, by the widest arithmetic of its processor: AMX,
AVX-512, AVX2. Each class has a column, and a measurement replaces only that of its own class. A measurement is
**stale** where the code, the data or the locked libraries that it reaches differ from those that it was made on;
comments and docstrings do not count. `make figure NAME=stale_figures` counts the figures that have no measurement of
today's code on any class; `make figures ARGS=--stale` measures these again, and goes on where it was stopped.

`--data FOLDER` (or `MEMSLUICE_DATA`) names the folder with the real records: `data/` and `bench/build_streams.py`.

"""


def write(record: Record, folder: Path) -> None:
    """Write the record and the pages made from it into the repository ``folder``."""
    measurements.save(record, folder)
    (folder / PAGE).write_text(render(record), encoding="utf-8")
    provenance_page.write(folder, record.newest(provenance_page.NAME))


def keep(folder: Path, *new: Measurement) -> None:
    """Keep measurements in the repository ``folder``, and write its pages anew, with today's staleness and ages."""
    with _alone(folder):  # two that end together would each write without the other's
        record = measurements.with_(measurements.read(folder), new)
        write(measurements.looked_up(record, folder, here()), folder)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    place = folder / "build" / "figures.lock"
    place.parent.mkdir(exist_ok=True)
    with place.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def untrue(folder: Path) -> list[str]:
    """Return the measurements that the page calls current though their code changed since, and the other way round."""
    record = measurements.read(folder)
    now = measurements.looked_up(record, folder, here())
    return [
        f"{said.name} on {said.machine_class} is {'stale' if true.stale else 'current'}, and the page says otherwise"
        for said, true in zip(record.measurements, now.measurements, strict=True)
        if said.stale != true.stale
    ]


def render(record: Record) -> str:
    """Return the page: a table of all figures, then how each came about."""
    classes = [
        name for name in CLASSES if name in SHOWN or any(one.machine_class == name for one in record.measurements)
    ]
    lines = [f"| figure | goal | {' | '.join(classes)} |", "|---|---|" + "---|" * len(classes)]
    lines += [_table_row(figure, record, classes) for figure in FIGURES.values()]
    for figure in FIGURES.values():
        lines += _section(figure, record)
    return _HEAD + _told(record) + "\n".join(lines) + "\n"


def goal(figure: Figure) -> str:
    """Return what must hold, for people."""
    sign = {">=": "at least", "<=": "at most", "==": "exactly"}[figure.relation]
    return f"{sign} {_amount(figure, figure.goal)}"


def _amount(figure: Figure, value: float) -> str:
    return f"{number(value)} {figure.unit}".rstrip()


def _told(record: Record) -> str:
    stale, of_all = len(record.stale()), sum(figure.recorded for figure in FIGURES.values())
    when = f"Written on {record.date} at commit {record.commit}: " if record.date else ""
    return f"{when}{stale} of {of_all} figures are stale or were never measured.\n\n"


def _table_row(figure: Figure, record: Record, classes: list[str]) -> str:
    head = f"| [`{figure.name}`](#{figure.name}) | {goal(figure)} |"
    if not figure.recorded:
        return f"{head} {' | '.join([_cell(figure, len(record.stale())), *('' for _ in classes[1:])])} |"
    by_class = {one.machine_class: one for one in record.of(figure.name)}
    cells = [_cell(figure, by_class[name].value, by_class[name].stale) if name in by_class else "" for name in classes]
    return f"{head} {' | '.join(cells if any(cells) else ['not measured yet', *cells[1:]])} |"


def _cell(figure: Figure, value: float, stale: bool = False) -> str:
    return f"{_amount(figure, value)}, {'holds' if figure.holds(value) else '**missed**'}{', stale' if stale else ''}"


def _section(figure: Figure, record: Record) -> list[str]:
    lines = ["", f"## {figure.name}", "", figure.meaning, "", f"`make figure NAME={figure.name}`"]
    for one in record.of(figure.name):
        lines += ["", f"On {one.machine_class}: {origin(one, record)}", "", "| | |", "|---|---|"]
        lines += [f"| {what} | {how_much} |" for what, how_much in one.rows]
        lines += [f"| **{figure.name}** | **{_amount(figure, one.value)}** |"]
        lines += [line for note in one.notes for line in ("", note)]
    return lines


def origin(one: Measurement, record: Record) -> str:
    """Say when and of what a measurement is, how old, and whether it is stale."""
    parts = [
        f"{one.date}, commit {one.commit}{_age(one, record)}" if one.commit else "reported at an unrecorded commit"
    ]
    parts += [one.machine] if one.machine else []
    parts += [f"{one.took_s:.0f} s"] if one.took_s is not None else []
    state = ["**stale**: it is not known which code was measured"] if not one.digest else []
    state += ["**stale**: its code changed since"] if one.digest and one.stale else []
    return "; ".join([", ".join(parts), *state]) + "."


def _age(one: Measurement, record: Record) -> str:
    if not record.date or not one.date:
        return ""
    days = (date.fromisoformat(record.date) - date.fromisoformat(one.date)).days
    commits = "of another history" if one.commits_since is None else f"{one.commits_since} commits"
    return f" ({commits}, {days} days old)"
