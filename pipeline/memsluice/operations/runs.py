"""What a run of replays is, of held writes or of dead letters, and the file by which it can be resumed."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import orjson

from memsluice.deployment.paths import write_private
from memsluice.errors import InvalidArgument, NotFound
from memsluice.escaping import visible

RESUMABLE_S = 86_400
"""A run can be resumed for a day from its start: its commands, where it has any, hold so long."""
SHOWN_SUFFIX = ".shown"
"""Of the file beside a run's own that says which contents it showed to a person; it is kept as long."""
_F = TypeVar("_F")
_S = TypeVar("_S")


def begin(folder: Path, run: "BaseRun[Any]", now_ms: int) -> None:
    """Keep a run's file in a folder of the owner's alone, and delete those of runs that nobody can resume any more."""
    folder.mkdir(mode=0o700, exist_ok=True)
    for file in (*folder.glob("*.json"), *folder.glob(f"*{SHOWN_SUFFIX}")):
        if file.stat().st_mtime_ns // 1_000_000 < now_ms - RESUMABLE_S * 1000:
            file.unlink(missing_ok=True)
    run.save(file_of(folder, run.run_id))


def file_of(folder: Path, run_id: str) -> Path:
    """Return the file of a run. Raises InvalidArgument for what cannot be a run's name."""
    if not run_id.isalnum():
        raise InvalidArgument(
            f"no run is called {visible(run_id, 80)}: the name of a run is letters and digits, as `replay` prints it"
        )
    return folder / f"{run_id}.json"


@dataclass(frozen=True, slots=True)
class BaseRun(Generic[_F]):
    """One run: its id, when it began (Unix ms), whether it only looks, its bound, and what it replays."""

    FILTER: ClassVar[type[Any]]

    run_id: str
    started_ms: int
    dry: bool
    messages_max: int
    wanted: _F

    def save(self, file: Path) -> None:
        """Write what resuming needs, for the owner alone."""
        wanted = {**asdict(self.wanted), "states": None}  # type: ignore[call-overload]
        write_private(file, orjson.dumps({**asdict(self), "wanted": wanted}).decode())

    @classmethod
    def load(cls, file: Path, now_ms: int) -> Self:
        """Read a run. Raises NotFound where there is none, it is damaged, or it is older than a day."""
        try:
            value: Any = orjson.loads(file.read_bytes())
            run = cls(**{**value, "wanted": cls.FILTER(**value["wanted"])})
        except (OSError, orjson.JSONDecodeError, TypeError, KeyError):
            raise NotFound(
                f"there is no run to resume in {file}: it was never begun here, is older than a day, or is damaged"
            ) from None
        if now_ms >= run.started_ms + RESUMABLE_S * 1000:
            raise NotFound(f"run {run.run_id} began more than a day ago and cannot be resumed: begin a new one")
        return run


@dataclass(frozen=True, slots=True)
class RunPlan(Generic[_S]):
    """What a run still has to do, in order; how many it settled already, and how many it leaves for another."""

    todo: list[_S]
    done: int
    left: int

    @classmethod
    def within(cls, run: BaseRun[Any], todo: Sequence[_S], done: int) -> Self:
        """Return the plan that keeps to the run's bound, what it settled before included."""
        room = max(0, run.messages_max - done)
        return cls(list(todo[:room]), done, len(todo[room:]))
