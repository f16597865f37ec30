"""Many histories: in processes, counted, resumable."""

import gc
import json
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import memsluice
import memsluice_lab.chaos
import memsluice_lab.model
import memsluice_lab.simulation
from memsluice_lab import cast, streams
from memsluice_lab.simulation.history import History
from memsluice_lab.simulation.judge import violations
from memsluice_lab.simulation.pipeline import Options
from memsluice_lab.simulation.planted import PLANTED, bug
from memsluice_lab.simulation.remembered import remembered
from memsluice_lab.simulation.worker import installed

ALONE_EVERY: Final = 4
"""One history in so many has every tenant's events decided anew."""
PART: Final = 20
FOUND_WITHIN: Final = 1_000
"""Histories within which a planted bug must be found."""
MISTAKES: Final = ("TypeError(", "AttributeError(", "NameError(", "KeyError(", "IndexError(", "ValueError(")
"""How a planted bug ends that was written for other code."""
JOBS: Final = 2
FOLDER: Final = Path("build")
"""Where is kept how far a long run came, a file for each state of the code."""
SHOWN_MAX: Final = 20


@dataclass(slots=True)
class Tally:
    """What a range of seeds came to."""

    histories: int = 0
    events: int = 0
    faults: int = 0
    fewest_faults: int = 1_000
    steps: int = 0
    anew: int = 0
    refused: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    failing: list[tuple[int, str]] = field(default_factory=list)

    def add(self, more: "Tally") -> None:
        """Take another range in."""
        for name in ("histories", "events", "faults", "steps", "anew", "refused"):
            setattr(self, name, getattr(self, name) + getattr(more, name))
        self.fewest_faults = min(self.fewest_faults, more.fewest_faults)
        self.kinds.update(more.kinds)
        self.told.update(more.told)
        self.failing += more.failing


def quiet() -> None:
    """Have the stages' log lines go nowhere: a history has more of them than anybody reads."""
    import structlog

    from memsluice.log import get_logger

    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)  # of processes that were killed

    get_logger(__name__).bind()  # the library is set up once, and not over what follows
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(50), logger_factory=structlog.ReturnLoggerFactory()
    )


def examined(
    seed: int, options: Options | None = None, planted: str = "", *, remember: bool = True
) -> tuple[History, list[str]]:
    """Play one history, with a planted bug where one is named; return it with what was broken.

    The judge looks no closer at a planted bug than at the tree as it is.
    """
    with remembered() if remember else nullcontext():
        with installed(), bug(planted) if planted else nullcontext():
            history = History(seed, options)
            history.run()
        return history, violations(history, alone=seed % ALONE_EVERY == 0)


def played(seeds: range) -> Tally:
    """Play the histories of some seeds."""
    quiet()
    gc.disable()  # a history is a heap of circles; they go together, after it
    tally = Tally()
    for seed in seeds:
        history, broken = examined(seed)
        tally.histories += 1
        tally.events += history.published
        tally.faults += len(history.plan.fired)
        tally.fewest_faults = min(tally.fewest_faults, len(history.plan.fired))
        tally.steps += history.steps
        tally.anew += seed % ALONE_EVERY == 0
        tally.refused += history.broker.refused
        tally.kinds.update(history.workload.kinds)
        tally.told.update(history.told.counts)
        tally.failing += [(seed, what) for what in broken[:1]]
        del history
        if seed % 8 == 0:
            gc.collect()
    gc.enable()
    return tally


def tallies(first: int, histories: int, jobs: int = JOBS) -> Iterator[Tally]:
    """Play so many histories from a seed on; yield their tallies in the order of the seeds."""
    ranges = [range(at, min(at + PART, first + histories)) for at in range(first, first + histories, PART)]
    if jobs == 1:
        yield from map(played, ranges)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(played, ranges)


def found(name: str, within: int = FOUND_WITHIN) -> tuple[int, str] | None:
    """Return the first seed whose history shows a planted bug, and how; None where none does.

    Raises RuntimeError for a plant that does not fit the code any more: it would be found by its own mistake.
    """
    quiet()
    for seed in range(within):
        _, broken = examined(seed, planted=name)
        if any(mistake in what for what in broken for mistake in MISTAKES):
            raise RuntimeError(f"the planted bug {name!r} does not fit the code: {broken[0]}")
        if broken and not examined(seed)[1]:  # a seed that is broken without the plant says nothing about it
            return seed, broken[0]
    return None


def all_found(jobs: int = JOBS, within: int = FOUND_WITHIN) -> dict[str, tuple[int, str] | None]:
    """Return, for every planted bug, where it was found."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        return dict(zip(PLANTED, pool.map(found, PLANTED, [within] * len(PLANTED)), strict=True))


def shrunk(seed: int) -> tuple[History, list[str]]:
    """Return a failing history with as few faults as still break it, dropped one after the other."""
    drop: frozenset[int] = frozenset()
    best = examined(seed, Options(trace=True))
    for number in range(Options().faults_max):
        smaller = examined(seed, Options(trace=True, drop=drop | {number}))
        if smaller[1]:
            drop, best = drop | {number}, smaller
    return best


def code_files() -> list[Path]:
    """Return the code that plays a history and judges it, and the data that the gate decides by, in a fixed order."""
    packages = (memsluice, memsluice_lab.simulation, memsluice_lab.chaos, memsluice_lab.model)
    files = [file for package in packages for file in sorted(Path(package.__path__[0]).rglob("*.py"))]
    return [*files, *_shipped(), Path(cast.__file__), Path(streams.__file__)]


def _shipped() -> list[Path]:
    """Return the policies and models that ship with the gate; what a run leaves in __pycache__ is neither."""
    files = sorted((Path(memsluice.__path__[0]) / "gate").rglob("*.*"))
    return [file for file in files if file.suffix != ".py" and file.parent.name != "__pycache__" and file.is_file()]


def code() -> str:
    """Return a digest of that code: what other code played, or another judge let pass, does not count for it."""
    digest = sha256()
    for file in code_files():
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def saved(path: Path, tally: Tally) -> None:
    """Keep how far a long run came."""
    said = {each.name: getattr(tally, each.name) for each in fields(tally)}
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(said))
    draft.replace(path)


def resumed(path: Path) -> Tally:
    """Return how far a long run came; nothing where there is none."""
    if not path.exists():
        return Tally()
    said = json.loads(path.read_text())
    said["kinds"], said["told"] = Counter(said["kinds"]), Counter(said["told"])
    said["failing"] = [(int(seed), what) for seed, what in said["failing"]]
    return Tally(**said)
