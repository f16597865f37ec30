"""``memsluice dead-letters``: input that could not be authenticated: list, show, replay, dismiss."""

import json
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from memsluice.cli import exit_codes
from memsluice.cli.dead_letters.desk import (
    All,
    ClaimedTenant,
    LetterId,
    Letters,
    Partition,
    Topic,
    build_filter,
    find,
    look_at,
    open_letters,
    sum_up,
)
from memsluice.cli.dead_letters.replay import replay
from memsluice.cli.options import Home, Json, Limit, Reason, Since, Until, Wait, Yes
from memsluice.clock import wall_ms
from memsluice.errors import InvalidArgument

app = typer.Typer(
    no_args_is_help=True, add_completion=False,
    help="Input that could not be authenticated: list, show, replay, dismiss.",
)  # fmt: skip
LISTED_MAX = 100
DISMISSED_MAX = 500
NO_RELEASE = (
    "A dead letter cannot be released, because nothing in it is authenticated: remove the cause, then publish it again "
    "with `memsluice dead-letters replay`"
)


@app.command("list")
def list_(
    reason: Reason = None, topic: Topic = None, partition: Partition = None, since: Since = None, until: Until = None,
    tenant: ClaimedTenant = None, everything: All = False,
    limit: Limit = LISTED_MAX,
    as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """List dead letters, oldest first: the reason, the age, and what they claim, which is not verified."""
    from memsluice.cli.render.dead_letters import as_data, entries

    wanted = build_filter(reason, topic, partition, since, until, tenant, everything=everything)
    with open_letters(home) as desk:
        found = look_at(desk, wanted)
        if as_json:
            print(json.dumps(as_data(found, limit)))
            return
        console = Console(highlight=False)
        if found.seen:
            console.print(entries(found.seen[:limit], wall_ms()))
        sum_up(console, found, desk, limit)


@app.command()
def show(letter: LetterId, as_json: Json = False, home: Home = None) -> None:
    """Show one dead letter: the reason, what it claims, and its key, headers and value.

    Control, zero-width and bidirectional characters are written out: <U+202E>. Bytes that are not text are in hex.
    """
    from memsluice.cli.render.dead_letters import one_as_data, review

    with open_letters(home) as desk:
        (seen,) = find(desk, [letter], whole=True)
        if as_json:
            print(json.dumps(one_as_data(seen, whole=True)))
        else:
            Console(highlight=False).print(review(seen, wall_ms()))


@app.command()
def stats(since: Since = None, as_json: Json = False, home: Home = None) -> None:
    """Count dead letters: by state, and what is open by reason, intake topic, partition and claimed tenant."""
    from memsluice.cli.render.dead_letters import counts
    from memsluice.operations.dead_letters.collect import stats as count

    with open_letters(home) as desk:
        found = look_at(desk, build_filter(None, None, None, since, None, None, everything=True))
        told = count(found)
        if as_json:
            by = {name: dict(getattr(told, name)) for name in told.__slots__ if name != "oldest_ms"}
            print(json.dumps({**by, "oldest_ms": told.oldest_ms, "damaged": found.damaged}))
            return
        console = Console(highlight=False)
        console.print(counts(told, wall_ms()))
        sum_up(console, found, desk, len(found.seen))


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="New file to write, mode 0600: it will hold content.")],
    reason: Reason = None, topic: Topic = None, partition: Partition = None, since: Since = None, until: Until = None,
    tenant: ClaimedTenant = None, everything: All = False, home: Home = None,
) -> None:  # fmt: skip
    """Write dead letters with their bytes (base64) to a file: one JSON object per line, in ASCII."""
    from memsluice.cli.render.dead_letters import one_as_data
    from memsluice.operations.dead_letters.collect import look_whole

    wanted = build_filter(reason, topic, partition, since, until, tenant, everything=everything)
    with open_letters(home) as desk:
        found = look_at(desk, wanted)
        file.touch(mode=0o600, exist_ok=False)
        with file.open("w", encoding="ascii") as out:
            for seen in look_whole(desk.letters, desk.desk.keys.keyring(), found.seen, desk.intake):
                out.write(json.dumps(one_as_data(seen, whole=True)) + "\n")
        sum_up(Console(stderr=True, highlight=False), found, desk, len(found.seen))


@app.command()
def release(letter: LetterId, home: Home = None) -> None:
    """Always refused, because nothing in a dead letter is authenticated: remove the cause, then replay it."""
    raise InvalidArgument(NO_RELEASE)


@app.command()
def reject(
    letters: Letters,
    why: Annotated[str, typer.Option("--why", help="The reason, for those who read the audit later; it is signed.")],
    yes: Yes = False, wait: Wait = 30.0, home: Home = None,
) -> None:  # fmt: skip
    """Dismiss dead letters with a reason: `list` no longer shows them. A reviewer of all tenants signs.

    Nothing is deleted, and the command is in the audit.
    """
    from memsluice.cli.render.dead_letters import answered, to_be_signed
    from memsluice.events.names import EVERYBODY
    from memsluice.operations.commands.answers import Bookmark
    from memsluice.operations.dead_letters.commands import dismissal
    from memsluice.operations.held.commands import answers
    from memsluice.operations.held.entries import CommandOutcome
    from memsluice.topics.names import PARTITIONS

    console = Console(highlight=False)
    named = list(dict.fromkeys(letters))
    if len(named) > DISMISSED_MAX:
        raise InvalidArgument(
            f"{len(named)} dead letters were named, and at most {DISMISSED_MAX} are dismissed at once"
        )
    with open_letters(home) as desk:
        seen = find(desk, named)
        commands = [dismissal(one.letter, str(uuid.uuid4()), datetime.now(UTC), why) for one in seen]
        console.print(to_be_signed(seen, commands, desk.desk.signer(EVERYBODY)))
        if not yes:
            typer.confirm(f"Sign {len(commands)} dismissal{'s' * (len(commands) > 1)}?", abort=True)
        since = Bookmark.at(desk.desk.audit, EVERYBODY, PARTITIONS)
        desk.desk.publish(commands)
        desk.desk.settle()
        told = answers(desk.desk.audit, desk.desk.keys.keyring(), commands, [since], wait)
        for one, command in zip(seen, commands, strict=True):
            answer = told.get(command.id)
            ruled = None if answer is None else answer.ruled
            console.print(answered(one.letter.letter_id, ruled, answer is not None, wait), soft_wrap=True)
        refused = any(a.ruled is not None and a.ruled.outcome is not CommandOutcome.DISMISSED for a in told.values())
        if code := exit_codes.of_answers(missing=len(told) < len(commands), refused=refused):
            raise typer.Exit(code)


app.command()(replay)
