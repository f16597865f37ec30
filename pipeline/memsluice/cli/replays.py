"""What ``quarantine replay`` and ``dead-letters replay`` share: the options of a run, and its course."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.text import Text

from memsluice.cli.options import Home, Json, Wait, Yes
from memsluice.clock import wall_ms
from memsluice.errors import InvalidArgument, MemsluiceError

if TYPE_CHECKING:
    from memsluice.operations.runs import BaseRun, RunPlan

_R = TypeVar("_R")
BOUNDS = ("max_messages", "dry_run")
"""Shared options that say what a run is, as its filters do: it keeps them when it is resumed."""
Messages = Annotated[int, typer.Option(min=1, max=50_000, help="Records at most.")]
Rate = Annotated[float, typer.Option(min=0.1, max=10_000, help="Records a second at most.")]
Batch = Annotated[int, typer.Option(min=1, max=500, help="Records published before their answers are awaited.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what the gate would decide; nothing changes.")]
GoOn = Annotated[bool, typer.Option("--go-on", help="Continue after a failure instead of stopping after its batch.")]
Resume = Annotated[str | None, typer.Option(help="Continue this run, which was stopped.", show_default=False)]


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The options of a run of replays, beside its filters."""

    max_messages: Messages = 1_000
    rate: Rate = 500.0
    batch: Batch = 250
    dry_run: DryRun = False
    go_on: GoOn = False
    resume: Resume = None
    yes: Yes = False
    wait: Wait = 30.0
    as_json: Json = False
    home: Home = None


def taking(defaults: ReplayOptions) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command that ends with a parameter ``options`` have the options of a run in its place."""

    def wrap(command: Callable[..., None]) -> Callable[..., None]:
        own = [each for name, each in inspect.signature(command).parameters.items() if name != "options"]
        shared = [
            inspect.Parameter(
                one.name, inspect.Parameter.KEYWORD_ONLY, default=getattr(defaults, one.name), annotation=one.type
            )
            for one in fields(ReplayOptions)
        ]

        @wraps(command)
        def run(**given: Any) -> None:
            picked = {one.name: given.pop(one.name) for one in fields(ReplayOptions)}
            command(**given, options=ReplayOptions(**picked))

        run.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in (*own, *shared)}
        return run

    return wrap


def only_resumed(ctx: typer.Context, *filters: str) -> None:
    """Refuse options that a resumed run keeps from its beginning: if --dry-run were ignored, the run would sign.

    ``filters`` are the command's own parameters by their names. Raises InvalidArgument.
    """
    sources = {name: ctx.get_parameter_source(name) for name in (*filters, *BOUNDS)}
    given = [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    if given:
        told = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise InvalidArgument(f"--resume continues a run as it was begun: leave out {told}, or begin a new run")


def folder_of(home: Path | None) -> Path:
    """Return where a home keeps the runs that can be resumed."""
    from memsluice.deployment.home import Home as Place

    return Place.at(home).path / "replays"


@contextmanager
def resumable(console: Console, command: str) -> Iterator[None]:
    """Print the command that continues a run, where it is interrupted or the broker fails in the middle of it."""
    try:
        yield
    except (KeyboardInterrupt, MemsluiceError):
        console.print(Text(f"continue with: {command}", style="yellow"), soft_wrap=True)
        raise


def announced(console: Console, first: str, todo: "RunPlan[Any]", question: str, *, ask: bool) -> bool:
    """Print what a run is about to do, did before, and leaves; may ask; return whether to begin."""
    console.print(Text(first))
    if todo.done:
        console.print(Text(f"{todo.done} were replayed by this run before", style="dim"))
    if todo.left:
        console.print(Text(f"{todo.left} more are left for another run: raise --max-messages", style="yellow"))
    if todo.todo and ask:
        typer.confirm(question, abort=True)
    return bool(todo.todo)


def carried_out(
    console: Console, folder: Path, run: "BaseRun[Any]", batches: Iterator[Sequence[_R]], resuming: str,
    take: Callable[[_R], bool], *, go_on: bool,
) -> None:  # fmt: skip
    """Keep the run's file, then give every result to ``take``; stop after the first batch in which one failed.

    ``take`` returns whether its result failed.
    """
    from memsluice.operations.runs import begin

    begin(folder, run, wall_ms())
    with resumable(console, resuming):
        for results in batches:
            failed = [take(result) for result in results]
            if any(failed) and not go_on:
                break
