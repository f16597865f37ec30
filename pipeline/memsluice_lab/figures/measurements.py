"""The measurements that are kept in ``docs/figures.json``: the last one of each figure on each class of machine."""

import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memsluice_lab.figures.dependencies import Tree
from memsluice_lab.figures.machines import CLASSES, class_of, cpuinfo, described
from memsluice_lab.figures.registry import FIGURES, Measured

RECORD = Path("docs/figures.json")
WRITTEN = (RECORD, Path("docs/figures.md"), Path("docs/provenance-results.md"))
"""What keeping a measurement writes: a tree that differs from its commit in these alone is the commit's."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measurement: when (ISO date, UTC), of which commit and code, on what, and how long it took."""

    name: str
    machine_class: str
    value: float
    rows: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    date: str = ""
    commit: str = ""
    """Empty where nobody recorded it."""
    machine: str = ""
    took_s: float | None = None
    digest: str = ""
    """Of the code, data and libraries that it was measured on; empty where that was not kept."""
    stale: bool = True
    """Whether that code differed from the tree's when the record was written."""
    commits_since: int | None = None
    """How many commits came after it until then; None where the history does not have its commit."""

    @property
    def key(self) -> tuple[str, str]:
        """Name and class of machine: one measurement is kept of each."""
        return self.name, self.machine_class


@dataclass(frozen=True, slots=True)
class Record:
    """All that is kept, and the date and commit at which staleness and age were looked up."""

    date: str = ""
    commit: str = ""
    measurements: tuple[Measurement, ...] = ()

    def of(self, name: str) -> tuple[Measurement, ...]:
        """Return a figure's measurements, one a class, the fastest class first."""
        found = [one for one in self.measurements if one.name == name]
        return tuple(sorted(found, key=lambda one: CLASSES.index(one.machine_class)))

    def newest(self, name: str) -> Measurement | None:
        """Return a figure's latest measurement on any class, or None."""
        return max(self.of(name), key=lambda one: (not one.stale, one.date), default=None)

    def stale(self, machine_class: str | None = None) -> list[str]:
        """Return the figures that no measurement (or none on a class) of today's code is kept of, in order."""
        current = {
            one.name for one in self.measurements if not one.stale and machine_class in (None, one.machine_class)
        }
        return [figure.name for figure in FIGURES.values() if figure.recorded and figure.name not in current]


def measurement(name: str, measured: Measured, *, commit: str, took_s: float, digest: str) -> Measurement:
    """Return what is kept of a measurement made just now on this machine."""
    return Measurement(
        name,
        class_of(cpuinfo()),
        measured.value,
        measured.rows,
        measured.notes,
        date=today(),
        commit=commit,
        machine=described(),
        took_s=round(took_s, 1),
        digest=digest,
        stale=False,
    )


def today() -> str:
    """Return the date, UTC, in ISO form."""
    return datetime.now(UTC).date().isoformat()


def read(folder: Path) -> Record:
    """Return what a repository keeps of the registered figures; nothing where the file is not there yet."""
    path = folder / RECORD
    if not path.exists():
        return Record()
    loaded = json.loads(path.read_text(encoding="utf-8"))
    found = tuple(_loaded(item) for item in loaded["measurements"] if item["name"] in FIGURES)
    return Record(loaded["date"], loaded["commit"], found)


def _loaded(item: dict[str, Any]) -> Measurement:
    return Measurement(**{**item, "rows": tuple(map(tuple, item["rows"])), "notes": tuple(item["notes"])})


def with_(record: Record, new: Iterable[Measurement]) -> Record:
    """Return the record with measurements that replace older ones of their name and class."""
    kept = {one.key: one for one in record.measurements} | {one.key: one for one in new}
    return replace(record, measurements=tuple(kept.values()))


def looked_up(record: Record, folder: Path, tree: Tree) -> Record:
    """Return the record with staleness and age as they are now."""
    digests: dict[str, str] = {}

    def renewed(one: Measurement) -> Measurement:
        if one.digest and one.name not in digests:
            digests[one.name] = tree.digest(FIGURES[one.name])
        stale = not one.digest or digests[one.name] != one.digest
        return replace(one, stale=stale, commits_since=commits_since(folder, one.commit))

    return Record(today(), commit_of(folder), tuple(renewed(one) for one in record.measurements))


def save(record: Record, folder: Path) -> None:
    """Write the record, whole or not at all, in the registry's order."""
    order = list(FIGURES)
    ordered = sorted(record.measurements, key=lambda one: (order.index(one.name), CLASSES.index(one.machine_class)))
    value = {"date": record.date, "commit": record.commit, "measurements": [asdict(one) for one in ordered]}
    path = folder / RECORD
    new = path.with_suffix(".new")
    new.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(new, path)  # noqa: PTH105 - one step: who stops this keeps what was measured before


def commit_of(folder: Path) -> str:
    """Return the short commit that a folder is at, with a plus where its tree differs from it; or ``unknown``."""
    commit = _git(folder, "rev-parse", "--short", "HEAD")
    if not commit:
        return "unknown"
    others = [f":(top,exclude){path}" for path in WRITTEN]
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ":/", *others)
    return f"{commit}+" if changed else commit


def commits_since(folder: Path, commit: str) -> int | None:
    """Return how many commits the folder's history has after one; None where it does not have that one."""
    known = _git(folder, "rev-parse", "--verify", "--quiet", f"{commit.rstrip('+')}^{{commit}}") if commit else ""
    if not known or _git(folder, "merge-base", known, "HEAD") != known:
        return None
    return int(_git(folder, "rev-list", "--count", f"{known}..HEAD") or 0)


def _git(folder: Path, *arguments: str) -> str:
    command: Sequence[str] = ["git", "-C", str(folder), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:  # no git here
        return ""
