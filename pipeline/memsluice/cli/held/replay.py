"""``memsluice quarantine replay``: held writes decided again, under the policy in force now."""

import json
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from memsluice.cli.held.desk import (
    Home,
    Json,
    MinScore,
    Reason,
    Since,
    Source,
    Tenant,
    Until,
    Wait,
    Yes,
    build_filter,
    look_at,
    only_resumed,
    open_desk,
    resumable,
    tell_planned,
)
from memsluice.clock import wall_ms

if TYPE_CHECKING:
    from memsluice.operations.held.collect import Seen
    from memsluice.operations.held.replay import Result, Run
    from memsluice.operations.runs import Plan

EXIT_REFUSED, EXIT_NO_ANSWER = 2, 3
BEGUN_WITH = ("tenant", "reason", "since", "until", "source", "min_score", "max_messages", "dry_run")
"""Options that say what a run is: it keeps them when it is resumed."""


def replay(
    ctx: typer.Context,
    tenant: Tenant = None, reason: Reason = None, since: Since = None, until: Until = None, source: Source = None,
    min_score: MinScore = None,
    max_messages: Annotated[int, typer.Option(min=1, max=50_000, help="Entries at most.")] = 1_000,
    rate: Annotated[float, typer.Option(min=0.1, max=10_000, help="Commands a second at most.")] = 500.0,
    batch: Annotated[int, typer.Option(min=1, max=500, help="Commands published before answers are awaited.")] = 250,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="The gate says what it would decide; no change.")] = False,
    go_on: Annotated[bool, typer.Option("--go-on", help="Go on after a refusal instead of stopping.")] = False,
    resume: Annotated[str | None, typer.Option(help="Go on with this run, which was stopped.")] = None,
    yes: Yes = False, wait: Wait = 30.0, as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """Decide held writes again, under the policy and the calibration in force now; old verdict beside new.

    Each entry by a signed command, once a run, tenants in order. A run that was stopped goes on with --resume RUN. It
    stops after the first batch with an entry that is refused (exit code 2) or not answered (3).
    """
    from memsluice.deployment.home import Home as Place
    from memsluice.operations.held.replay import Run, plan
    from memsluice.operations.held.replay import replay as run_batches
    from memsluice.operations.runs import begin, file_of
    from memsluice.topics.names import PARTITIONS

    console, place = Console(highlight=False, stderr=as_json), Place.at(home)
    folder = place.path / "replays"
    if resume is None:
        wanted = build_filter(tenant, reason, since, until, source, min_score, everything=True)
        run = Run(f"r{uuid.uuid4().hex[:12]}", wall_ms(), dry_run, max_messages, wanted)
    else:
        only_resumed(ctx, *BEGUN_WITH)
        run = Run.load(file_of(folder, resume), wall_ms())
    with open_desk(home) as desk:
        todo = plan(run, look_at(desk, home, run.wanted))
        signers = {desk.signer(one) for one in dict.fromkeys(seen.entry.tenant for seen in todo.todo)}
        _announce(console, run, todo, signers)
        if not todo.todo:
            return
        if not (yes or run.dry):
            typer.confirm(f"Sign {len(todo.todo)} replays?", abort=True)
        begin(folder, run, wall_ms())
        done: list[Result] = []
        batches = run_batches(desk, run, todo.todo, rate=rate, batch=batch, wait_s=wait, partitions=PARTITIONS)
        with resumable(console, _resuming(run)):
            for results in batches:
                done += [_without_content(result) for result in results]
                for result in results:
                    _tell(console, result, as_json)
                if not go_on and any(result.failed for result in results):
                    break
        _end(console, run, todo, done)


def _resuming(run: "Run") -> str:
    return f"memsluice quarantine replay --resume {run.run_id}"


def _announce(console: Console, run: "Run", todo: "Plan[Seen]", signers: set[str]) -> None:
    tenants = len({seen.entry.tenant for seen in todo.todo})
    what = "dry run, nothing changes" if run.dry else f"signed by {', '.join(sorted(signers)) or 'nobody'}"
    first = f"run {run.run_id}: {len(todo.todo)} held writes of {tenants} tenant{'s' * (tenants != 1)}, {what}"
    tell_planned(console, first, todo)


def _without_content(result: "Result") -> "Result":
    """Return a result that is fit to be kept until the end: thousands of contents are not."""
    from dataclasses import replace

    return replace(result, seen=replace(result.seen, entry=replace(result.seen.entry, write=None, sealed="")))


def _tell(console: Console, result: "Result", as_json: bool) -> None:
    from memsluice.operations.held.view import name

    if as_json:
        print(json.dumps(_as_data(result)))
        return
    entry, ruled = result.seen.entry, result.ruled
    old = f"quarantine {' '.join(entry.reasons)}" + ("" if entry.score is None else f" {entry.score:.2f}")
    if ruled is None:
        new = "replayed before" if result.repeated else "no answer"
    else:
        score = "" if ruled.score is None else f" {ruled.score:.2f}"
        new = f"{ruled.decision or ruled.outcome.value} {' '.join(ruled.reasons)}".rstrip() + score
    style = "red" if result.failed else ""
    console.print(Text(f"{name(entry.event_id)}  {name(entry.tenant)}  {old} → {new}", style=style), soft_wrap=True)


def _as_data(result: "Result") -> dict[str, Any]:
    entry, ruled = result.seen.entry, result.ruled
    old = {"decision": "quarantine", "reasons": list(entry.reasons), "score": entry.score,
           "policy": entry.held.policy}  # fmt: skip
    new = None if ruled is None else {"decision": ruled.decision, "reasons": list(ruled.reasons), "score": ruled.score,
                                      "policy": ruled.policy, "outcome": ruled.outcome.value}  # fmt: skip
    return {"tenant": entry.tenant, "event_id": entry.event_id, "offset": entry.offset, "old": old, "new": new,
            "repeated": result.repeated}  # fmt: skip


def _end(console: Console, run: "Run", todo: "Plan[Seen]", done: "list[Result]") -> None:
    counts = Counter(
        "replayed before" if result.repeated else "no answer" if result.ruled is None
        else str(result.ruled.decision or result.ruled.outcome.value)
        for result in done
    )  # fmt: skip
    told = ", ".join(f"{count} {what}" for what, count in counts.most_common())
    policies = {result.ruled.policy for result in done if result.ruled is not None}
    console.print(
        Text(f"{len(done)} of {len(todo.todo)} replayed: {told}; under {', '.join(sorted(policies)) or 'none'}"),
        soft_wrap=True,
    )
    if len(done) < len(todo.todo) or any(result.failed for result in done):
        console.print(Text(f"go on with: {_resuming(run)}", style="yellow"), soft_wrap=True)
    if any(result.ruled is None and not result.repeated for result in done):
        raise typer.Exit(EXIT_NO_ANSWER)
    if any(result.failed for result in done):
        raise typer.Exit(EXIT_REFUSED)
