"""``python -m memsluice_lab.figures NAME``: measure one figure; the last line printed is ``NAME VALUE``."""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from memsluice.errors import MemsluiceError
from memsluice_lab.figures import page
from memsluice_lab.figures.dependencies import TOP, here
from memsluice_lab.figures.machines import class_of, cpuinfo
from memsluice_lab.figures.measurements import commit_of, looked_up, measurement, read
from memsluice_lab.figures.registry import FIGURES, Figure, Measured, Setting, get, number

PROGRAM = "memsluice_lab.figures"
DATA_VARIABLE = "MEMSLUICE_DATA"
EXIT_NOT_MEASURED = 2
ERRORS = Console(stderr=True, highlight=False)


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for. Returns 0 when measured, whatever came out; 2 when something could not be."""
    options = _options(arguments)
    if options.list:
        for figure in FIGURES.values():
            print(f"{figure.name:<26} {page.goal(figure)}")
        return 0
    if options.page:
        page.keep(options.page)
        return 0
    if options.check:
        return _check(options.check)
    if options.all or options.stale or options.stale_here:
        return _each_by_itself(_chosen(options), options)
    failed = [figure.name for figure in map(get, options.names) if not _measured(figure, options)]
    return EXIT_NOT_MEASURED if failed else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make figure", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--all", action="store_true", help="measure all of them, each in a process of its own (hours)")
    parser.add_argument("--stale", action="store_true", help="of all, those not measured on today's code on any class")
    parser.add_argument("--stale-here", action="store_true", help="… on this machine's class (AMX, AVX-512, AVX2)")
    parser.add_argument("--list", action="store_true", help="name all of them, with their goals")
    parser.add_argument("--data", default=os.environ.get(DATA_VARIABLE, ""), help="folder with data/ and bench/")
    parser.add_argument("--record", type=Path, metavar="REPOSITORY", help="keep each result in docs/ once it is there")
    parser.add_argument("--page", type=Path, metavar="REPOSITORY", help="measure nothing, write the pages anew")
    parser.add_argument("--check", type=Path, metavar="REPOSITORY", help="fail where the page's staleness is not true")
    options = parser.parse_args(arguments)
    asked = (options.names, options.all, options.stale, options.stale_here, options.list, options.page, options.check)
    if not any(asked):
        parser.error("name a figure; --list names them")
    unknown = [name for name in options.names if name not in FIGURES]
    if unknown:
        parser.error(f"there is no figure {unknown[0]!r}; there are: {', '.join(FIGURES)}")
    return options


def _chosen(options: argparse.Namespace) -> list[Figure]:
    """Return what is to be measured of all figures: all, or those without a measurement of today's code."""
    if not (options.stale or options.stale_here):
        return list(FIGURES.values())
    folder = options.record or TOP
    kept = looked_up(read(folder), folder, here())
    return [get(name) for name in kept.stale(class_of(cpuinfo()) if options.stale_here else None)]


def _each_by_itself(figures: Sequence[Figure], options: argparse.Namespace) -> int:
    """Measure figures in processes of their own: none finds another's memory, and one that dies takes none along.

    Each result is kept before the next is begun, so that a run that is stopped goes on with ``--stale``.
    """
    runs: dict[str, list[str]] = {}
    for figure in figures:
        runs.setdefault(figure.together or figure.name, []).append(figure.name)
    failed = []
    for number_, names in enumerate(runs.values(), 1):
        ERRORS.print(f"[bold]{number_} of {len(runs)}: {', '.join(names)}[/]")
        command = [sys.executable, "-m", PROGRAM, *names, "--data", options.data]
        command += [] if options.record is None else ["--record", str(options.record)]
        if subprocess.run(command, check=False).returncode != 0:
            failed += names
    if failed:
        ERRORS.print(f"not measured, or not all of it: {', '.join(failed)}", style="bold red", markup=False)
    return EXIT_NOT_MEASURED if failed else 0


def _measured(figure: Figure, options: argparse.Namespace) -> bool:
    """Measure a figure, show it and keep it where that is asked for; whether that went well."""
    started = time.monotonic()

    def say(line: str) -> None:
        ERRORS.print(f"[dim]{time.monotonic() - started:6.1f} s[/]  {line}")

    keeps = options.record is not None and figure.recorded
    commit, digest = (commit_of(options.record), here().digest(figure)) if keeps else ("", "")  # as it is at the start
    try:
        measured = figure.measure(Setting(Path(options.data).expanduser() if options.data else None, say))
    except MemsluiceError as error:
        ERRORS.print(f"{figure.name}: not measured: {error}", style="bold red", markup=False)
        return False
    except Exception:  # whatever it is, the figures after this one are measured
        ERRORS.print_exception()
        ERRORS.print(f"{figure.name}: not measured: it failed, see above", style="bold red", markup=False)
        return False
    if keeps:
        took_s = time.monotonic() - started
        page.keep(options.record, measurement(figure.name, measured, commit=commit, took_s=took_s, digest=digest))
    _show(figure, measured)
    return True


def _check(folder: Path) -> int:
    untrue = page.untrue(folder)
    for line in untrue:
        ERRORS.print(f"docs/figures.md: {line}", markup=False)
    if untrue:
        ERRORS.print("Write the page anew: make docs")
    return 1 if untrue else 0


def _show(figure: Figure, measured: Measured) -> None:
    table = Table(title=figure.meaning, title_justify="left", title_style="italic", show_header=False, box=None)
    for what, how_much in measured.rows:
        table.add_row(what, how_much)
    table.add_row(f"goal: {page.goal(figure)}", "holds" if figure.holds(measured.value) else "MISSED", style="bold")
    Console(highlight=False, width=120).print(table)
    for note in measured.notes:
        print(note)
    print(f"{figure.name} {number(measured.value)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
