"""Every figure that the project states about itself: its name, what must hold, and the function that measures it."""

from memsluice.errors import ConfigError
from memsluice_lab.figures.registry.deciding import DECIDING
from memsluice_lab.figures.registry.enduring import ENDURING
from memsluice_lab.figures.registry.figure import Figure, Measured, Setting
from memsluice_lab.figures.registry.pipeline import PIPELINE
from memsluice_lab.figures.registry.reading import READING
from memsluice_lab.figures.registry.tree import TREE

__all__ = ["FIGURES", "Figure", "Measured", "Setting", "get", "number"]

FIGURES: dict[str, Figure] = {figure.name: figure for figure in (*PIPELINE, *DECIDING, *TREE, *ENDURING, *READING)}


def get(name: str) -> Figure:
    """Return a figure. Raises ConfigError with the names that there are."""
    if name not in FIGURES:
        raise ConfigError(f"There is no figure {name!r}; there are: {', '.join(FIGURES)}")
    return FIGURES[name]


def number(value: float) -> str:
    """Return a figure's value as it is printed: whole numbers whole, others with four significant digits."""
    if float(value).is_integer():
        return str(int(value))
    return f"{value:.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
