"""``memsluice dead-letters``: what nobody could authenticate, why, and the ways out of there."""

import json
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from memsluice.cli.dead_letters.desk import (
    All,
    LetterId,
    Letters,
    Partition,
    Reason,
    Since,
    Tenant,
    Topic,
    Until,
    build_filter,
    find,
    look_at,
    open_letters,
    sum_up,
)
from memsluice.cli.dead_letters.replay import replay
from memsluice.cli.held.desk import Home, Json, Wait, Yes
from memsluice.clock import wall_ms
from memsluice.errors import ConfigError

app = typer.Typer(
    no_args_is_help=True, add_completion=False,
    help="Dead letters: see why, replay them once the cause is mended, or dismiss them.",
)  # fmt: skip
EXIT_REFUSED, EXIT_NO_ANSWER = 2, 3
LISTED_MAX = 100
DISMISSED_MAX = 500
NO_RELEASE = (
    "a dead letter is never released: nothing in it is authenticated. Mend the cause, then replay it: "
    "memsluice dead-letters replay"
)


@app.command("list")
def list_(
    reason: Reason = None, topic: Topic = None, partition: Partition = None, since: Since = None, until: Until = None,
    tenant: Tenant = None, everything: All = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Rows at most; the oldest.")] = LISTED_MAX,
    as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """Show dead letters, oldest first: why, since when, and what they claim, which nobody verified."""
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
    """Show one dead letter whole: why, what it claims, its key, headers and value as far as a person can read them.

    Control, zero-width and bidi characters are spelled out: <U+202E>. Bytes that are no text are shown in hex.
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
    file: Annotated[Path, typer.Argument(help="Where to write; must not exist. It will hold content: mode 0600.")],
    reason: Reason = None, topic: Topic = None, partition: Partition = None, since: Since = None, until: Until = None,
    tenant: Tenant = None, everything: All = False, home: Home = None,
) -> None:  # fmt: skip
    """Write dead letters with their bytes (base64) to a file, one JSON object a line, ASCII alone."""
    from memsluice.cli.render.dead_letters import one_as_data
    from memsluice.operations.dead_letters.collect import look_whole

    wanted = build_filter(reason, topic, partition, since, until, tenant, everything=everything)
    with open_letters(home) as desk:
        found = look_at(desk, wanted)
        file.touch(mode=0o600, exist_ok=False)
        with file.open("w", encoding="ascii") as out:
            for seen in look_whole(desk.letters, desk.desk.keys.keyring(), found.seen):
                out.write(json.dumps(one_as_data(seen, whole=True)) + "\n")
        sum_up(Console(stderr=True, highlight=False), found, desk, len(found.seen))


@app.command()
def release(letter: LetterId, home: Home = None) -> None:
    """Refused, always: nothing in a dead letter is authenticated. Mend the cause, then replay it."""
    raise ConfigError(NO_RELEASE)


@app.command()
def reject(
    letters: Letters,
    why: Annotated[str, typer.Option("--why", help="Why it is dismissed: signed, and kept in the audit.")],
    yes: Yes = False, wait: Wait = 30.0, home: Home = None,
) -> None:  # fmt: skip
    """Dismiss dead letters, for a reason: `list` shows them no longer. Signed by a reviewer of all tenants, audited.

    Nothing is deleted. Exit code 2 where the gate refuses, 3 where no answer came in time.
    """
    from memsluice.cli.render.dead_letters import answered, to_be_signed
    from memsluice.events.names import EVERYBODY
    from memsluice.operations.commands.answers import Bookmark
    from memsluice.operations.dead_letters.commands import dismissal
    from memsluice.operations.held.commands import answers
    from memsluice.operations.held.entries import Outcome
    from memsluice.topics.names import PARTITIONS

    console = Console(highlight=False)
    named = list(dict.fromkeys(letters))
    if len(named) > DISMISSED_MAX:
        raise ConfigError(f"{len(named)} letters at once, at most {DISMISSED_MAX}")
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
        if any(a.ruled is not None and a.ruled.outcome is not Outcome.DISMISSED for a in told.values()):
            raise typer.Exit(EXIT_REFUSED)
        if len(told) < len(commands):
            raise typer.Exit(EXIT_NO_ANSWER)


app.command()(replay)
