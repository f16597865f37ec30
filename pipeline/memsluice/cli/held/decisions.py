"""``memsluice quarantine release · reject · reopen``: decisions about one held write, or several at once.

What is signed was printed before: every entry with its content and its reasons, and of several what differs in them.
"""

import json
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from memsluice.cli import exit_codes
from memsluice.cli.held.asking import FilterName, HeldTenant, Query
from memsluice.cli.held.choosing import Chosen, Entries, OfGroup, Wanted, check, choose
from memsluice.cli.held.desk import Offset, open_desk
from memsluice.cli.options import Home, Json, Wait, Why, Yes
from memsluice.clock import wall_ms
from memsluice.errors import ConfigError, InvalidArgument
from memsluice.escaping import visible

if TYPE_CHECKING:
    from memsluice.events.models import Action, Command
    from memsluice.operations.held.collect import HeldReview
    from memsluice.operations.held.desk import HeldDesk
    from memsluice.operations.review.decide import DecisionPlan, DecisionResult, Left

DespiteClaim = Annotated[
    bool, typer.Option("--despite-claim", help="Decide although another reviewer has claimed the write.")
]


def release(
    entry: Entries = None, tenant: HeldTenant = None, offset: Offset = None, group: OfGroup = None,
    query: Query = None, filter_name: FilterName = None, why: Why = "", yes: Yes = False, wait: Wait = 30.0,
    withdrawn: Annotated[bool, typer.Option("--withdrawn", help="Return an entry that look back withdrew.")] = False,
    despite_claim: DespiteClaim = False, as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """Release held writes: they land as if they had been accepted. Signed, bound to their content; taint stays.

    Each is printed with its content and reasons first, and of several what differs in them. The gate refuses one while
    a newer entry lies under the same key, and one that was decided after it was printed. A group or a query that is
    released is always asked about: nobody has named what is in it.
    """
    from memsluice.events.models import Action

    wanted = Wanted(entry or [], tenant, offset, group, query, filter_name)
    if withdrawn:
        from memsluice.cli.signed_command import give

        if len(wanted.entries) != 1 or wanted.many:
            raise InvalidArgument("--withdrawn returns one entry at a time: name one")
        give(Action.RELEASE, wanted.entries[0], tenant, (), why, None, home, yes=yes, wait_s=wait, as_json=as_json)
        return
    if wanted.many and yes:
        raise InvalidArgument("--yes: nothing is released unread: read what is printed, and answer the question")
    _decide(Action.RELEASE, wanted, why, yes, wait, despite_claim, as_json, home)


def reject(
    entry: Entries = None, tenant: HeldTenant = None, offset: Offset = None, group: OfGroup = None,
    query: Query = None, filter_name: FilterName = None, why: Why = "", yes: Yes = False, wait: Wait = 30.0,
    despite_claim: DespiteClaim = False, as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """Reject held or refused writes: no replay lets them in. Signed, bound to their content.

    A rejection can be taken back while the write is kept: `memsluice quarantine reopen ENTRY`.
    """
    from memsluice.events.models import Action

    wanted = Wanted(entry or [], tenant, offset, group, query, filter_name)
    _decide(Action.REJECT, wanted, why, yes, wait, despite_claim, as_json, home)


def reopen(
    entry: Entries = None, tenant: HeldTenant = None, offset: Offset = None, group: OfGroup = None,
    query: Query = None, filter_name: FilterName = None, why: Why = "", yes: Yes = False, wait: Wait = 30.0,
    as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """Take rejections back: the writes wait again, as long as the policy that held them says.

    Refused where the writer's share of the quarantine is full. What a policy had rejected waits for a replay again.
    """
    from memsluice.events.models import Action

    wanted = Wanted(entry or [], tenant, offset, group, query, filter_name)
    _decide(Action.REOPEN, wanted, why, yes, wait, False, as_json, home)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be decided about each entry; ``alone``: there is one."""

    action: "Action"
    why: str
    despite_claim: bool
    now_ms: int
    alone: bool


def _decide(
    action: "Action", wanted: Wanted, why: str, yes: bool, wait_s: float, despite_claim: bool, as_json: bool,
    home: Path | None,
) -> None:  # fmt: skip
    """Print what would be signed, ask, sign, and print what the gate made of each."""
    from memsluice.operations.review.decide import Came, decide, name_of

    console = Console(highlight=False, stderr=as_json)
    check(wanted)
    with open_desk(home) as desk:
        chosen = choose(desk, home, action, wanted)
        seen = chosen.seen
        asked = Asked(action, why, despite_claim, wall_ms(), alone=len(seen) == 1)
        ids = {name_of(one.entry): str(uuid.uuid4()) for one in seen}
        for number, one in enumerate(seen, 1):
            if not asked.alone:
                console.print(Text(f"{number} of {len(seen)}", style="bold"))
            _print_one(console, desk, one, asked, ids[name_of(one.entry)])
        todo = _planned(console, seen, asked)
        _tell_rest(console, chosen)
        if todo.todo and not yes:
            what = f"this {action.value}" if asked.alone else f"these {len(todo.todo)} commands: {action.value}"
            typer.confirm(f"Sign {what}?", abort=True, err=as_json)
        new_id = iter([ids[name_of(one.entry)] for one in todo.todo]).__next__
        results = decide(
            _telling(console, desk),
            todo,
            wait_s,
            despite_claim=despite_claim,
            clock=lambda: asked.now_ms,
            new_id=new_id,
        )
        if as_json:
            left = [_left(*one) for one in todo.left]
            print(json.dumps({"results": [_as_data(one) for one in results], "left": left, "more": chosen.more}))
        else:
            _print_results(console, results, wait_s, alone=asked.alone)
        missing = any(one.came is Came.NO_ANSWER for one in results)
        part = bool(todo.left or chosen.more or chosen.gone)
        if code := exit_codes.of_answers(missing=missing, refused=_refused(results), left=part):
            raise typer.Exit(code)


def _print_one(console: Console, desk: "HeldDesk", seen: "HeldReview", asked: Asked, command_id: str) -> None:
    """Print the command about an entry, why it is held, and its content.

    Raises ConfigError where one alone cannot be signed; of several, the others are.
    """
    from memsluice.cli.render.held import to_be_signed
    from memsluice.operations.held.commands import decision
    from memsluice.operations.held.entries import HeldState
    from memsluice.recall.show import moment

    now = datetime.fromtimestamp(asked.now_ms / 1_000, UTC)
    try:
        command = decision(seen, asked.action, command_id, now, asked.why, despite_claim=asked.despite_claim)
    except ConfigError as error:
        if asked.alone:
            raise
        console.print(Text(f"{visible(seen.entry.event_id, 160)}: {error}", style="yellow"), soft_wrap=True)
        return
    console.print(to_be_signed(seen, command, desk.signer(command.tenant), asked.now_ms))
    if seen.state is HeldState.LAPSED:  # the gate goes by the broker's clock and its own row, and has the last word
        lapsed = f"by this machine's clock it lapsed on {moment(seen.until_ms)}; the gate may know it no more"
        console.print(Text(lapsed, style="yellow"), soft_wrap=True)


def _planned(console: Console, seen: "Sequence[HeldReview]", asked: Asked) -> "DecisionPlan":
    """Return the plan of what was printed; of several print what differs in them, and which are left out.

    About one alone the gate has the last word, whatever became of it here.
    """
    from memsluice.cli.render.held import differing
    from memsluice.operations.held.commands import shown
    from memsluice.operations.review.decide import DecisionPlan, Differences, name_of, plan

    if asked.alone:
        return DecisionPlan(asked.action, asked.why, tuple(seen), (), Differences.within(seen))
    read = {name_of(one.entry): shown(one.entry.write.content) for one in seen if one.entry.write is not None}
    todo = plan(seen, asked.action, read, asked.why)
    console.print(differing(todo.differs, f"{len(todo.todo)} to be signed"))
    for one, left in todo.left:
        told = f"left out: {visible(one.entry.event_id, 160)} is {one.state.value}: {left.value}"
        console.print(Text(told, style="yellow"), soft_wrap=True)
    return todo


def _tell_rest(console: Console, chosen: Chosen) -> None:
    """Say what is asked for besides, and is not decided now."""
    gone = [f"left out: {visible(one, 160)}: its topic has its content no more" for one in chosen.gone]
    if chosen.more:
        gone.append(
            f"{chosen.more} more are asked for, and {len(chosen.seen)} are decided at once, the newest: run it again "
            "for them"
        )
    for told in gone:
        console.print(Text(told, style="yellow"), soft_wrap=True)


def _telling(console: Console, desk: "HeldDesk") -> "HeldDesk":
    """Return the desk, which also prints where the commands lie once the log has them."""

    def publish(commands: "Sequence[Command]") -> list[str]:
        places = desk.publish(commands)
        told = f"{len(places)} commands, the last one to {places[-1]}" if len(places) > 1 else f"to {places[0]}"
        console.print(Text(f"published {told}"))
        return places

    return replace(desk, publish=publish)


def _print_results(console: Console, results: "Sequence[DecisionResult]", wait_s: float, *, alone: bool) -> None:
    from memsluice.cli.render.held import answered
    from memsluice.operations.review.decide import Came

    if alone:
        (one,) = results
        unheard = Text(f"{one.came.value}: {one.told}", style="yellow")
        ruled = one.ruled is not None or one.came is Came.NO_ANSWER
        console.print(answered(one.ruled, one.command_id, wait_s) if ruled else unheard, soft_wrap=True)
        return
    for one in results:
        told = f"{visible(one.seen.entry.event_id, 160)}  {one.came.value}: {one.told}"
        console.print(Text(told, style="green" if one.came is Came.DONE else "red"), soft_wrap=True)
    counts = Counter(one.came.value for one in results)
    told = ", ".join(f"{many} {came}" for came, many in counts.most_common())
    console.print(Text(f"{len(results)} decided about: {told or 'nothing'}"))


def _refused(results: "Sequence[DecisionResult]") -> bool:
    from memsluice.operations.review.decide import Came

    return any(one.came in (Came.REFUSED, Came.CONFLICT, Came.NOT_SENT) for one in results)


def _as_data(one: "DecisionResult") -> dict[str, Any]:
    entry, ruled = one.seen.entry, one.ruled
    return {
        "tenant": entry.tenant,
        "event_id": entry.event_id,
        "offset": entry.offset,
        "command_id": one.command_id,
        "result": one.came.value.replace(" ", "_"),
        "outcome": None if ruled is None else ruled.outcome.value,
        "reasons": [] if ruled is None else list(ruled.reasons),
        "told": one.told,
        "between": "" if ruled is None else ruled.between,
        "object_id": None if ruled is None else ruled.object_id,
    }


def _left(seen: "HeldReview", left: "Left") -> dict[str, Any]:
    entry = seen.entry
    return {"tenant": entry.tenant, "event_id": entry.event_id, "offset": entry.offset, "state": seen.state.value,
            "told": left.value}  # fmt: skip
