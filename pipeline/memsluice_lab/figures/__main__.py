"""``python -m memsluice_lab.figures NAME``: measure one figure; the last line printed is ``NAME VALUE``."""

import argparse
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from memsluice.errors import MemsluiceError
from memsluice_lab.figures import page, provenance_page
from memsluice_lab.figures.registry import FIGURES, Figure, Measured, Setting, get, number

DATA_VARIABLE = "MEMSLUICE_DATA"
EXIT_NOT_MEASURED = 2


def main(arguments: list[str] | None = None) -> int:
    """Measure what the command line names. Returns 0 when measured, whatever came out; 2 when it could not be."""
    options = _options(arguments)
    if options.list:
        for figure in FIGURES.values():
            print(f"{figure.name:<26} {page.goal(figure)}")
        return 0
    started = time.monotonic()
    errors = Console(stderr=True, highlight=False)

    def say(line: str) -> None:
        errors.print(f"[dim]{time.monotonic() - started:6.1f} s[/]  {line}")

    setting = Setting(Path(options.data).expanduser() if options.data else None, say)
    failed = 0
    for figure in FIGURES.values() if options.all else [get(name) for name in options.names]:
        try:
            measured = figure.measure(setting)
        except MemsluiceError as error:
            errors.print(f"{figure.name}: not measured: {error}", style="bold red", markup=False)
            failed = EXIT_NOT_MEASURED
            continue
        _show(figure, measured)
        if options.record is not None:
            today = datetime.now(UTC).date().isoformat()
            page.write(
                options.record, page.entry(figure.name, measured, date=today, commit=page.commit_of(options.record))
            )
            provenance_page.write(options.record, page.read(options.record / page.RECORD))
    return failed


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make figure", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--all", action="store_true", help="measure all of them (an hour)")
    parser.add_argument("--list", action="store_true", help="name all of them, with their goals")
    parser.add_argument("--data", default=os.environ.get(DATA_VARIABLE, ""), help="folder with data/ and bench/")
    parser.add_argument(
        "--record", type=Path, metavar="REPOSITORY", help="keep the result in docs/figures.json and .md"
    )
    options = parser.parse_args(arguments)
    if not (options.names or options.all or options.list):
        parser.error("name a figure; --list names them")
    unknown = [name for name in options.names if name not in FIGURES]
    if unknown:
        parser.error(f"there is no figure {unknown[0]!r}; there are: {', '.join(FIGURES)}")
    return options


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
