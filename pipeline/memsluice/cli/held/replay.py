"""``memsluice quarantine replay``: held writes decided again, under the policy in force now."""

import json
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from memsluice.cli import exit_codes
from memsluice.cli.held.desk import MinScore, Refused, Source, build_filter, look_at, open_desk
from memsluice.cli.options import Reason, Since, Tenant, Until
from memsluice.cli.replays import ReplayOptions, announced, carried_out, folder_of, only_resumed, taking
from memsluice.clock import wall_ms

if TYPE_CHECKING:
    from memsluice.operations.held.collect import HeldReview
    from memsluice.operations.held.entries import Ruled
    from memsluice.operations.held.replay import HeldRun, WriteReplay
    from memsluice.operations.runs import RunPlan

FILTERS = ("tenant", "reason", "since", "until", "source", "min_score", "refused", "accept_recalibrated")
BY_ITSELF = (
    "each entry was judged by itself: the real run uses up daily rates and shares of the quarantine, so fewer may land "
    "or be held"
)
"""What the summary of a dry run of several entries says."""
Accept = Annotated[
    str | None,
    typer.Option(
        "--accept-recalibrated",
        metavar="RUN",
        show_default=False,
        help="Let in what that run showed here, though only the calibration changed. You have read it.",
    ),
]


@taking(ReplayOptions(rate=500.0, batch=250))
def replay(
    ctx: typer.Context,
    tenant: Tenant = None, reason: Reason = None, since: Since = None, until: Until = None, source: Source = None,
    min_score: MinScore = None, refused: Refused = False, accept_recalibrated: Accept = None, *, options: ReplayOptions,
) -> None:  # fmt: skip
    """Decide held writes again, under the policy and the calibration in force now; show the old verdict and the new.

    With --refused, decide those again that were rejected, and are kept. What would be let in only because the
    calibration moved stays held, and its content is shown; to let in what a run showed: --accept-recalibrated RUN.

    Each entry takes one signed command a run; the entries of a tenant are decided in the order in which they were
    held. A run stops after the first batch in which a replay is refused or not answered; --resume RUN continues it.
    """
    from memsluice.operations.held.replay import HeldRun, plan
    from memsluice.operations.held.replay import replay as run_batches
    from memsluice.operations.held.shown import note, shown_by
    from memsluice.operations.runs import file_of
    from memsluice.topics.names import PARTITIONS

    console, home = Console(highlight=False, stderr=options.as_json), options.home
    if options.resume is None:
        wanted = build_filter(tenant, reason, since, until, source, min_score, everything=True)
        run_id = f"r{uuid.uuid4().hex[:12]}"
        run = HeldRun(run_id, wall_ms(), options.dry_run, options.max_messages, wanted, refused,
                      accept_recalibrated or "")  # fmt: skip
    else:
        only_resumed(ctx, *FILTERS)
        run = HeldRun.load(file_of(folder_of(home), options.resume), wall_ms())
    with open_desk(home) as desk:
        found = look_at(desk, home, run.wanted, always=run.decided)
        todo = plan(run, found, shown_by(folder_of(home), run.accept) if run.accept else ())
        signers = {desk.signer(one) for one in dict.fromkeys(seen.entry.tenant for seen in todo.todo)}
        question = f"Sign {len(todo.todo)} replays?"
        if not announced(console, _first(run, todo, signers), todo, question, ask=not (options.yes or run.dry)):
            return
        done: list[WriteReplay] = []

        def take(result: "WriteReplay") -> bool:
            done.append(_without_content(result))
            _tell(console, result, run, options.as_json)
            if unread(result):
                note(folder_of(home), run.run_id, result.seen.entry)
            return result.failed

        batches = run_batches(
            desk, run, todo.todo, rate=options.rate, batch=options.batch, wait_s=options.wait, partitions=PARTITIONS
        )
        carried_out(console, folder_of(home), run, batches, _resuming(run), take, go_on=options.go_on)
        _end(console, run, todo, done)


def _resuming(run: "HeldRun") -> str:
    return f"memsluice quarantine replay --resume {run.run_id}"


def _first(run: "HeldRun", todo: "RunPlan[HeldReview]", signers: set[str]) -> str:
    tenants = len({seen.entry.tenant for seen in todo.todo})
    what = "dry run, nothing changes" if run.dry else f"signed by {', '.join(sorted(signers)) or 'nobody'}"
    kind = f"{'refused' if run.refused else 'held'} writes of"
    if run.accept:
        kind = f"writes that run {run.accept} showed, of"
    return f"run {run.run_id}: {len(todo.todo)} {kind} {tenants} tenant{'s' * (tenants != 1)}, {what}"


def _without_content(result: "WriteReplay") -> "WriteReplay":
    """Return a result that is fit to be kept until the end: thousands of contents are not."""
    from dataclasses import replace

    return replace(result, seen=replace(result.seen, entry=replace(result.seen.entry, write=None, sealed="")))


def unread(result: "WriteReplay") -> bool:
    """Whether a replay let a write not in since only the calibration changed, so that it is shown to be read."""
    return result.ruled is not None and bool(result.ruled.changes)


def _tell(console: Console, result: "WriteReplay", run: "HeldRun", as_json: bool) -> None:
    from memsluice.cli.render.held import recalibrated
    from memsluice.operations.held.view import name

    if as_json:
        print(json.dumps(_as_data(result)))
        return
    entry, ruled = result.seen.entry, result.ruled
    was = result.seen.now
    old = f"{was.decision.value} {' '.join(was.reasons)}" + ("" if was.score is None else f" {was.score:.2f}")
    if ruled is None:
        new = "replayed before" if result.repeated else "no answer"
    else:
        score = "" if ruled.score is None else f" {ruled.score:.2f}"
        new = f"{_outcome(ruled)} {' '.join(ruled.reasons)}".rstrip() + score
    style = "red" if result.failed else ""
    console.print(Text(f"{name(entry.event_id)}  {name(entry.tenant)}  {old} → {new}", style=style), soft_wrap=True)
    if ruled is not None and ruled.changes and entry.write is not None:
        console.print(recalibrated(ruled, entry.write.content, run.run_id))


def _outcome(ruled: "Ruled") -> str:
    """Return what a replay came to, in a word or two."""
    from memsluice.operations.held.entries import CommandOutcome

    if ruled.outcome is CommandOutcome.REFUSED_AGAIN:
        return ruled.outcome.value
    return str(ruled.decision or ruled.outcome.value)


def _as_data(result: "WriteReplay") -> dict[str, Any]:
    entry, ruled, was = result.seen.entry, result.ruled, result.seen.now
    old = {"decision": was.decision, "reasons": list(was.reasons), "score": was.score, "policy": was.policy}
    new = None if ruled is None else {"decision": ruled.decision, "reasons": list(ruled.reasons), "score": ruled.score,
                                      "policy": ruled.policy, "outcome": ruled.outcome.value}  # fmt: skip
    told = {"tenant": entry.tenant, "event_id": entry.event_id, "offset": entry.offset, "old": old, "new": new,
            "repeated": result.repeated}  # fmt: skip
    if ruled is not None and ruled.changes and entry.write is not None:
        told |= {"recalibrated": list(ruled.changes), "digest": entry.digest, "content": entry.write.content}
    return told


def _end(console: Console, run: "HeldRun", todo: "RunPlan[HeldReview]", done: "list[WriteReplay]") -> None:
    counts = Counter(
        "replayed before" if result.repeated else "no answer" if result.ruled is None
        else _outcome(result.ruled)
        for result in done
    )  # fmt: skip
    told = ", ".join(f"{count} {what}" for what, count in counts.most_common())
    policies = {result.ruled.policy for result in done if result.ruled is not None}
    console.print(
        Text(f"{len(done)} of {len(todo.todo)} replayed: {told}; under {', '.join(sorted(policies)) or 'none'}"),
        soft_wrap=True,
    )
    if run.dry and len(done) > 1:
        console.print(Text(BY_ITSELF), soft_wrap=True)
    if shown := sum(unread(result) for result in done):
        accept = f"memsluice quarantine replay --accept-recalibrated {run.run_id}"
        console.print(
            Text(f"{shown} would be let in only because the calibration moved; once read: {accept}", "yellow"),
            soft_wrap=True,
        )
    if len(done) < len(todo.todo) or any(result.failed for result in done):
        console.print(Text(f"continue with: {_resuming(run)}", style="yellow"), soft_wrap=True)
    missing = any(result.ruled is None and not result.repeated for result in done)
    if code := exit_codes.of_answers(missing=missing, refused=any(result.failed for result in done)):
        raise typer.Exit(code)
