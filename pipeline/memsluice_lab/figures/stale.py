"""How many figures say something of code that is no more."""

from memsluice_lab.figures.dependencies import TOP, here
from memsluice_lab.figures.measurements import looked_up, read
from memsluice_lab.figures.registry import FIGURES, Measured, Setting


def stale_figures(setting: Setting) -> Measured:
    """Figures of which no measurement is kept, on any class of machine, that was made on the code as it is now."""
    record = looked_up(read(TOP), TOP, here())
    setting.say(f"{len(record.measurements)} measurements are kept in {TOP}")
    missing = record.stale()
    rows = [(name, _why(record.newest(name) is None)) for name in missing]
    old = sum(one.stale for one in record.measurements)
    of_all = sum(figure.recorded for figure in FIGURES.values())
    rows.append(("stale of all figures", f"{len(missing)} of {of_all}"))
    rows.append(("stale of all measurements, the other classes of machine included", f"{old}"))
    return Measured(len(missing), tuple(rows))


def _why(never: bool) -> str:
    return "not measured yet" if never else "its code changed since, or it is not known which code was measured"
