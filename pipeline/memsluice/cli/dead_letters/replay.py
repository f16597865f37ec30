"""``memsluice dead-letters replay``: dead letters published again, once their cause is removed."""

import json
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text

from memsluice.cli import exit_codes
from memsluice.cli.dead_letters.desk import ClaimedTenant, Partition, Topic, build_filter, look_at, open_letters
from memsluice.cli.options import Reason, Since, Until
from memsluice.cli.replays import ReplayOptions, announced, carried_out, folder_of, only_resumed, taking
from memsluice.clock import wall_ms

if TYPE_CHECKING:
    from memsluice.operations.dead_letters.letters import LetterReview
    from memsluice.operations.dead_letters.replay import LetterReplay, LetterRun
    from memsluice.operations.runs import RunPlan

FILTERS = ("reason", "topic", "partition", "since", "until", "tenant")


@taking(ReplayOptions(rate=100.0, batch=50))
def replay(
    ctx: typer.Context,
    reason: Reason = None, topic: Topic = None, partition: Partition = None, since: Since = None, until: Until = None,
    tenant: ClaimedTenant = None, *, options: ReplayOptions,
) -> None:  # fmt: skip
    """Publish dead letters again, byte for byte, to the intake topics that they came from.

    Each is first authenticated here, by the gate's own code under this home's keys: one that would only become a dead
    letter again is not published. A run stops after the first batch with such a letter or without an answer;
    --resume RUN continues it. An event that has landed already is decided as a `duplicate`.
    """
    from memsluice.operations.dead_letters.replay import LetterRun, plan
    from memsluice.operations.dead_letters.replay import replay as run_batches
    from memsluice.operations.runs import file_of
    from memsluice.topics.names import PARTITIONS

    console, home = Console(highlight=False, stderr=options.as_json), options.home
    if options.resume is None:
        wanted = build_filter(reason, topic, partition, since, until, tenant, everything=True)
        run = LetterRun(f"d{uuid.uuid4().hex[:12]}", wall_ms(), options.dry_run, options.max_messages, wanted)
    else:
        only_resumed(ctx, *FILTERS)
        run = LetterRun.load(file_of(folder_of(home), options.resume), wall_ms())
    with open_letters(home) as desk:
        todo = plan(run, look_at(desk, run.wanted))
        what = "dry run, nothing changes" if run.dry else "unchanged, to the topics they came from"
        first = f"run {run.run_id}: {len(todo.todo)} dead letters, {what}"
        question = f"Publish {len(todo.todo)} dead letters again?"
        if not announced(console, first, todo, question, ask=not (options.yes or run.dry)):
            return
        done: list[LetterReplay] = []

        def take(result: "LetterReplay") -> bool:
            done.append(result.slim())
            _tell(console, result, options.as_json)
            return result.failed

        batches = run_batches(
            desk, run, todo.todo, rate=options.rate, batch=options.batch, wait_s=options.wait, partitions=PARTITIONS,
            now_ms=wall_ms,
        )  # fmt: skip
        carried_out(console, folder_of(home), run, batches, _resuming(run), take, go_on=options.go_on or run.dry)
        _end(console, run, todo, done)


def _resuming(run: "LetterRun") -> str:
    return f"memsluice dead-letters replay --resume {run.run_id}"


def _new(result: "LetterReplay") -> str:
    """Return what became, or would become, of a letter."""
    if result.decided is not None:
        return f"{result.decided.decision} {' '.join(result.decided.reasons)}".rstrip()
    if not result.reason:
        return "authentic: the gate would decide it" if result.dry else "no answer"
    return f"{result.reason} again" if result.published else f"still {result.reason}, not published"


def _tell(console: Console, result: "LetterReplay", as_json: bool) -> None:
    from memsluice.operations.held.view import name

    letter = result.seen.letter
    if as_json:
        print(json.dumps(_as_data(result)))
        return
    told = f"{letter.letter_id}  claims {name(letter.claims.tenant or 'none')}  {name(letter.why.reason)} → "
    console.print(Text(told + _new(result), style="red" if result.failed else ""), soft_wrap=True)


def _as_data(result: "LetterReplay") -> dict[str, Any]:
    decided, letter = result.decided, result.seen.letter
    new = None if decided is None else {
        "decision": decided.decision, "reasons": list(decided.reasons), "place": list(decided.place),
    }  # fmt: skip
    return {"letter": letter.letter_id, "claimed_tenant": letter.claims.tenant, "old": {"reason": letter.why.reason},
            "published": result.published, "reason": result.reason, "detail": result.detail, "new": new}  # fmt: skip


def _end(console: Console, run: "LetterRun", todo: "RunPlan[LetterReview]", done: "list[LetterReplay]") -> None:
    counts = Counter(
        result.decided.decision if result.decided is not None
        else result.reason or ("authentic" if run.dry else "no answer")
        for result in done
    )  # fmt: skip
    told = ", ".join(f"{count} {what}" for what, count in counts.most_common())
    console.print(Text(f"{len(done)} of {len(todo.todo)} {'looked at' if run.dry else 'replayed'}: {told}"))
    if run.dry:
        return
    failed = [result for result in done if result.failed]
    if len(done) < len(todo.todo) or failed:
        told = f"remove the cause, then continue with: {_resuming(run)}"
        console.print(Text(told, style="yellow"), soft_wrap=True)
    missing = any(not result.reason for result in failed)
    if code := exit_codes.of_answers(missing=missing, refused=bool(failed)):
        raise typer.Exit(code)
