"""``memsluice dead-letters replay``: dead letters published again, once their cause is mended."""

import json
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from memsluice.cli.dead_letters.desk import (
    Partition,
    Reason,
    Since,
    Tenant,
    Topic,
    Until,
    build_filter,
    look_at,
    open_letters,
)
from memsluice.cli.held.desk import Home, Json, Wait, Yes, only_resumed, resumable, tell_planned
from memsluice.clock import wall_ms

if TYPE_CHECKING:
    from memsluice.operations.dead_letters.letters import Seen
    from memsluice.operations.dead_letters.replay import Result, Run
    from memsluice.operations.runs import Plan

EXIT_REFUSED, EXIT_NO_ANSWER = 2, 3
BEGUN_WITH = ("reason", "topic", "partition", "since", "until", "tenant", "max_messages", "dry_run")
"""Options that say what a run is: it keeps them when it is resumed."""


def replay(
    ctx: typer.Context,
    reason: Reason = None, topic: Topic = None, partition: Partition = None, since: Since = None, until: Until = None,
    tenant: Tenant = None,
    max_messages: Annotated[int, typer.Option(min=1, max=50_000, help="Letters at most.")] = 1_000,
    rate: Annotated[float, typer.Option(min=0.1, max=10_000, help="Letters a second at most.")] = 100.0,
    batch: Annotated[int, typer.Option(min=1, max=100, help="Letters published before answers are awaited.")] = 50,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what the gate would make of them.")] = False,
    go_on: Annotated[bool, typer.Option("--go-on", help="Go on after a failure instead of stopping.")] = False,
    resume: Annotated[str | None, typer.Option(help="Go on with this run, which was stopped.")] = None,
    yes: Yes = False, wait: Wait = 30.0, as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """Publish dead letters again, byte for byte, to the intake topic that they came from; old reason, new verdict.

    Each is authenticated here first, by the gate's own code under this home's keys: what would only be a dead letter
    once more stays where it is. A run stops after the first batch with such a one (exit code 2) or without an answer
    (3), and goes on with --resume RUN. An event that has landed already is a `duplicate`.
    """
    from memsluice.deployment.home import Home as Place
    from memsluice.operations.dead_letters.replay import Run, plan
    from memsluice.operations.dead_letters.replay import replay as run_batches
    from memsluice.operations.runs import begin, file_of
    from memsluice.topics.names import PARTITIONS

    console, folder = Console(highlight=False, stderr=as_json), Place.at(home).path / "replays"
    if resume is None:
        wanted = build_filter(reason, topic, partition, since, until, tenant, everything=True)
        run = Run(f"d{uuid.uuid4().hex[:12]}", wall_ms(), dry_run, max_messages, wanted)
    else:
        only_resumed(ctx, *BEGUN_WITH)
        run = Run.load(file_of(folder, resume), wall_ms())
    with open_letters(home) as desk:
        todo = plan(run, look_at(desk, run.wanted))
        _announce(console, run, todo)
        if not todo.todo:
            return
        if not (yes or run.dry):
            typer.confirm(f"Publish {len(todo.todo)} dead letters again?", abort=True)
        begin(folder, run, wall_ms())
        done: list[Result] = []
        batches = run_batches(
            desk, run, todo.todo, rate=rate, batch=batch, wait_s=wait, partitions=PARTITIONS, now_ms=wall_ms
        )
        with resumable(console, _resuming(run)):
            for results in batches:
                for result in results:
                    done.append(result.slim())
                    _tell(console, result, as_json)
                if not (go_on or run.dry) and any(result.failed for result in results):
                    break
        _end(console, run, todo, done)


def _resuming(run: "Run") -> str:
    return f"memsluice dead-letters replay --resume {run.run_id}"


def _announce(console: Console, run: "Run", todo: "Plan[Seen]") -> None:
    what = "dry run, nothing changes" if run.dry else "as they are, to where they came from"
    tell_planned(console, f"run {run.run_id}: {len(todo.todo)} dead letters, {what}", todo)


def _new(result: "Result") -> str:
    """Return what became, or would become, of a letter."""
    if result.decided is not None:
        return f"{result.decided.decision} {' '.join(result.decided.reasons)}".rstrip()
    if not result.reason:
        return "authentic: the gate would decide it" if result.dry else "no answer"
    return f"{result.reason} once more" if result.published else f"{result.reason} still, not published"


def _tell(console: Console, result: "Result", as_json: bool) -> None:
    from memsluice.operations.held.view import name

    letter = result.seen.letter
    if as_json:
        print(json.dumps(_as_data(result)))
        return
    told = f"{letter.letter_id}  claims {name(letter.claims.tenant or 'none')}  {name(letter.why.reason)} → "
    console.print(Text(told + _new(result), style="red" if result.failed else ""), soft_wrap=True)


def _as_data(result: "Result") -> dict[str, Any]:
    decided, letter = result.decided, result.seen.letter
    new = None if decided is None else {
        "decision": decided.decision, "reasons": list(decided.reasons), "place": list(decided.place),
    }  # fmt: skip
    return {"letter": letter.letter_id, "claimed_tenant": letter.claims.tenant, "old": {"reason": letter.why.reason},
            "published": result.published, "reason": result.reason, "detail": result.detail, "new": new}  # fmt: skip


def _end(console: Console, run: "Run", todo: "Plan[Seen]", done: "list[Result]") -> None:
    counts = Counter(
        result.decided.decision if result.decided is not None
        else result.reason or ("authentic" if run.dry else "no answer")
        for result in done
    )  # fmt: skip
    told = ", ".join(f"{count} {what}" for what, count in counts.most_common())
    console.print(Text(f"{len(done)} of {len(todo.todo)} {'looked at' if run.dry else 'replayed'}: {told}"))
    if run.dry:
        return
    if len(done) < len(todo.todo) or any(result.failed for result in done):
        go_on = f"mend the cause, then go on with: {_resuming(run)}"
        console.print(Text(go_on, style="yellow"), soft_wrap=True)
    if any(result.failed and result.reason for result in done):
        raise typer.Exit(EXIT_REFUSED)
    if any(result.failed for result in done):
        raise typer.Exit(EXIT_NO_ANSWER)
