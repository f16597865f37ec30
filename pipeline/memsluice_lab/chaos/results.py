"""What was found so far, kept outside the checkout, so that hours of rounds can be done in several runs.

Only what was found on today's code counts: each line names the digest of all that its figure can reach.
"""

import os
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from memsluice.deployment.paths import cache_dir
from memsluice_lab.chaos.checker import Violation

FOLDER_VARIABLE: Final = "MEMSLUICE_CHAOS_RESULTS"
"""Folder of the files; without it they lie beside the servers in the cache."""
ROUNDS_VARIABLE: Final = "MEMSLUICE_CHAOS_ROUNDS"
"""How many rounds this run may play at most; without it, as many as it takes, within reason."""
KEPT_MAX = 8
"""Violations that are kept in words, of each rule and scene."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One scene on one stack: what was done in each of its rounds, how long it took, and what was broken."""

    digest: str
    rounds: tuple[str, ...]
    seconds: float
    broken: int
    words: tuple[str, ...] = ()

    @classmethod
    def of(cls, digest: str, rounds: Sequence[str], seconds: float, found: Sequence[Violation]) -> "Outcome":
        """Return the outcome of a scene."""
        rules = Counter(one.rule for one in found)
        said = [f"{number} x {rule}" for rule, number in rules.items()]
        said += [f"{one.rule}: {one.what}" for rule in rules for one in _some(found, rule)]
        return cls(digest, tuple(rounds), round(seconds, 1), len(found), tuple(said))


def _some(found: Sequence[Violation], rule: str) -> list[Violation]:
    return [one for one in found if one.rule == rule][:KEPT_MAX]


def file(name: str) -> Path:
    """Return the file of a figure."""
    return _folder() / f"{name}.jsonl"


def keep_logs(logs: Path, run: str) -> Path:
    """Keep the logs of a scene in which something was broken; return where."""
    return Path(shutil.copytree(logs, _folder() / f"logs-{run}", dirs_exist_ok=True))


def _folder() -> Path:
    given = os.environ.get(FOLDER_VARIABLE)
    return Path(given).expanduser() if given else cache_dir(None) / "chaos"


def done(name: str, digest: str) -> list[Outcome]:
    """Return what was found on this code so far."""
    path = file(name)
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [one for one in map(_outcome, lines) if one.digest == digest]


def add(name: str, outcome: Outcome) -> None:
    """Keep a scene's outcome."""
    path = file(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as log:
        log.write(orjson.dumps(asdict(outcome)) + b"\n")


def allowed(wanted: int) -> int:
    """Return how many rounds this run is to play at most. Some do not count, so it is twice what is wanted."""
    given = os.environ.get(ROUNDS_VARIABLE)
    return 2 * wanted if given is None else int(given)


def _outcome(line: bytes) -> Outcome:
    value: dict[str, Any] = orjson.loads(line)
    return Outcome(**{**value, "rounds": tuple(value["rounds"]), "words": tuple(value["words"])})
