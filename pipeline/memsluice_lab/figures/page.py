"""The figures that were measured last, kept in ``docs/figures.json``, and the page made from them."""

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from memsluice_lab.figures.registry import FIGURES, Figure, Measured, number

RECORD = Path("docs/figures.json")
PAGE = Path("docs/figures.md")
_HEAD = """\
# Figures

Measured by the commands shown, on the real thing: a real broker, real stream processors, a real vector store, the real
encoder, real records. Written by `make figures`; not edited by hand. A figure that misses its goal stands here like any
other.

`--data FOLDER` (or `MEMSLUICE_DATA`) names the folder with the real records: `data/` and `bench/build_streams.py`.

"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One measurement: when (ISO date, UTC), of which commit, on what."""

    name: str
    value: float
    rows: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    date: str
    commit: str
    machine: str


def machine() -> str:
    """Describe this machine in a few words, without naming it."""
    cores = len(os.sched_getaffinity(0))
    flags = ""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        words = set(cpuinfo.read_text(encoding="utf-8").split())
        flags = "".join(f", {label}" for flag, label in (("amx_bf16", "AMX"), ("avx512f", "AVX-512")) if flag in words)
    return f"{cores} cores, {platform.machine()}{flags}, Python {platform.python_version()}"


def commit_of(folder: Path) -> str:
    """Return the short commit that a folder is at, with a plus where the tree differs from it; or ``unknown``."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    except OSError:  # no git here
        return "unknown"


def entry(name: str, measured: Measured, *, date: str, commit: str) -> Entry:
    """Return the record of a measurement made on this machine."""
    return Entry(name, measured.value, measured.rows, measured.notes, date, commit, machine())


def read(path: Path) -> dict[str, Entry]:
    """Return the kept measurements by name; none where the file is not there yet."""
    if not path.exists():
        return {}
    loaded = json.loads(path.read_text(encoding="utf-8"))
    entries = (
        Entry(**{**item, "rows": tuple(map(tuple, item["rows"])), "notes": tuple(item["notes"])}) for item in loaded
    )
    return {item.name: item for item in entries if item.name in FIGURES}


def write(folder: Path, new: Entry) -> None:
    """Keep a measurement in the repository ``folder``, replacing an older one of its name; write the page anew."""
    entries = {**read(folder / RECORD), new.name: new}
    ordered = [asdict(entries[name]) for name in FIGURES if name in entries]
    (folder / RECORD).write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / PAGE).write_text(render(entries), encoding="utf-8")


def render(entries: Mapping[str, Entry]) -> str:
    """Return the page: a table of all figures, then how each came about."""
    lines = ["| figure | goal | measured | |", "|---|---|---|---|"]
    lines += [_table_row(figure, entries.get(figure.name)) for figure in FIGURES.values()]
    for figure in FIGURES.values():
        lines += _section(figure, entries.get(figure.name))
    return _HEAD + "\n".join(lines) + "\n"


def goal(figure: Figure) -> str:
    """Return what must hold, for people."""
    sign = {">=": "at least", "<=": "at most", "==": "exactly"}[figure.relation]
    return f"{sign} {number(figure.goal)} {figure.unit}".rstrip()


def _table_row(figure: Figure, kept: Entry | None) -> str:
    if kept is None:
        return f"| [`{figure.name}`](#{figure.name}) | {goal(figure)} | not measured yet | |"
    verdict = "holds" if figure.holds(kept.value) else "**missed**"
    return f"| [`{figure.name}`](#{figure.name}) | {goal(figure)} | {number(kept.value)} {figure.unit} | {verdict} |"


def _section(figure: Figure, kept: Entry | None) -> list[str]:
    lines = ["", f"## {figure.name}", "", figure.meaning, "", f"`make figure NAME={figure.name}`"]
    if kept is None:
        return lines
    lines += ["", f"{kept.date}, commit {kept.commit}, {kept.machine}:", "", "| | |", "|---|---|"]
    lines += [f"| {what} | {how_much} |" for what, how_much in kept.rows]
    lines += [f"| **{figure.name}** | **{number(kept.value)} {figure.unit}** |"]
    return lines + [line for note in kept.notes for line in ("", note)]
