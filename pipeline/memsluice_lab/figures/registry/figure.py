"""What an entry of the registry says, what its measurement is given, and what that returns."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from memsluice.errors import ConfigError

Say = Callable[[str], None]
Relation = Literal[">=", "<=", "=="]
FIGURES_PACKAGE = "memsluice_lab.figures"
"""Whose modules measure."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a measurement is given: where the real records are (None: nobody said), and whom to tell what goes on.

    Whom to tell is no part of what is measured: figures that come of one run share it, whoever is told.
    """

    data: Path | None
    say: Say = field(compare=False)

    def records(self) -> Path:
        """Return the folder with ``data/`` and ``bench/``. Raises ConfigError, which says what is expected there."""
        if self.data is None:
            raise ConfigError(
                "This is measured on real records: name a folder with data/ and bench/build_streams.py by "
                "--data FOLDER or MEMSLUICE_DATA"
            )
        for part in ("data", "bench/build_streams.py"):
            if not (self.data / part).exists():
                raise ConfigError(f"There is no {part} in {self.data}, which --data or MEMSLUICE_DATA names")
        return self.data


@dataclass(frozen=True, slots=True)
class Measured:
    """One result: the figure, and the rows (what, how much) from which a person sees how it came about."""

    value: float
    rows: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Figure:
    """One entry of the registry. ``where`` is ``module:function`` below FIGURES_PACKAGE, imported when it is measured.

    ``together`` names a run that measures several figures at once: asked for together, they share it. What is not
    ``recorded`` is worked out anew wherever it is shown.
    """

    name: str
    where: str
    relation: Relation
    goal: float
    unit: str
    meaning: str
    together: str = ""
    recorded: bool = True

    def holds(self, value: float) -> bool:
        """Tell whether a value reaches the goal."""
        return {">=": value >= self.goal, "<=": value <= self.goal, "==": value == self.goal}[self.relation]

    def measure(self, setting: Setting) -> Measured:
        """Measure it. Takes minutes for those that need the real stack."""
        module, _, name = self.where.partition(":")
        function: Callable[[Setting], Measured] = getattr(importlib.import_module(f"{FIGURES_PACKAGE}.{module}"), name)
        return function(setting)
