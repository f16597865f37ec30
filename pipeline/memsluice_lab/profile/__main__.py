"""``python -m memsluice_lab.profile``: where the processor's time goes at saturation, by process and by function."""

import argparse
import os
import sys
import time
from pathlib import Path

from rich.console import Console

from memsluice.errors import MemsluiceError
from memsluice_lab.figures.__main__ import DATA_VARIABLE
from memsluice_lab.figures.dependencies import TOP
from memsluice_lab.figures.machines import class_of, cpuinfo, described
from memsluice_lab.figures.measurements import commit_of, today
from memsluice_lab.figures.registry import Setting
from memsluice_lab.profile import report
from memsluice_lab.profile.attaching import Profiler
from memsluice_lab.profile.bursts import EVENTS_DEFAULT, Profile, profile
from memsluice_lab.profile.flame import svg

EXIT_NOT_MEASURED = 2
RATE = 100
ERRORS = Console(stderr=True, highlight=False)


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for. Returns 0 when measured; 2 when that was not possible."""
    options = _options(arguments)
    started = time.monotonic()

    def say(line: str) -> None:
        ERRORS.print(f"[dim]{time.monotonic() - started:6.1f} s[/]  {line}")

    setting = Setting(Path(options.data).expanduser() if options.data else None, say)
    try:
        setting.records()
        if options.page is not None:
            report.with_section(report.read(options.page), options.section, "")  # said before, not after minutes
        profiler = Profiler.found(options.rate)
        options.out.mkdir(parents=True, exist_ok=True)
        on = f"{described()}, class {class_of(cpuinfo())}, {today()}, commit `{commit_of(TOP)}`"
        found = profile(setting, profiler, options.out, options.events)
        _write(found, on, options)
    except MemsluiceError as error:
        ERRORS.print(f"not measured: {error}", style="bold red", markup=False)
        return EXIT_NOT_MEASURED
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    for grid in report.grids(found):
        console.print(grid.rich())
    console.print(f"Measured on {on}.\nFlame graphs, stacks and all functions: {options.out}/", markup=False)
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make profile", description=__doc__)
    parser.add_argument("--data", default=os.environ.get(DATA_VARIABLE, ""), help="folder with data/ and bench/")
    parser.add_argument("--out", type=Path, default=Path("profile"), help="folder for what is written (%(default)s)")
    parser.add_argument("--page", type=Path, help="also put the tables into this page")
    parser.add_argument("--section", choices=report.SECTIONS, default="after", help="… into which part (%(default)s)")
    parser.add_argument("--events", type=_positive, default=EVENTS_DEFAULT, help="events of a burst (%(default)s)")
    parser.add_argument("--rate", type=_positive, default=RATE, help="samples a second (%(default)s)")
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return number


def _write(found: Profile, on: str, options: argparse.Namespace) -> None:
    for stage, sampled in found.workers.items():
        title = f"{stage}, ms a landed write; {on.replace('`', '')}"
        (options.out / f"{stage}.svg").write_text(svg(title, sampled.stacks), encoding="utf-8")
    everything = [grid.markdown() for grid in report.grids(found, shown=sys.maxsize)]
    (options.out / "profile.md").write_text("\n\n".join([f"Measured on {on}.", *everything, ""]), encoding="utf-8")
    if options.page is not None:
        tables = [grid.markdown() for grid in report.grids(found)]
        report.write(options.page, options.section, "\n\n".join([f"Measured on {on}.", *tables]))


if __name__ == "__main__":
    sys.exit(main())
