"""``memsluice quarantine note``: what reviewers tell each other about a held write."""

import uuid
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from memsluice.cli import exit_codes
from memsluice.cli.held.desk import HeldEntry, Offset, find_one, open_desk
from memsluice.cli.options import Home, Tenant, Wait, check_name, duration_ms
from memsluice.errors import InvalidArgument
from memsluice.events.limits import REASON_CHARS_MAX

Note = Annotated[str, typer.Argument(metavar="[TEXT]", help="What to note; it is signed, and stays in the audit.")]
Assign = Annotated[
    str | None,
    typer.Option(
        "--assign", help="Reviewer to assign the write to, by name or key id; - for nobody.", show_default=False
    ),
]
Claim = Annotated[
    str | None,
    typer.Option(
        "--claim",
        help="Keep other reviewers from deciding for so long (15m, 8h at most); 0s gives it back.",
        show_default=False,
    ),
]


def note(
    entry: HeldEntry, text: Note = "", assign: Assign = None, claim: Claim = None,
    despite_claim: Annotated[bool, typer.Option("--despite-claim", help="Claim what another reviewer has.")] = False,
    tenant: Tenant = None, offset: Offset = None, wait: Wait = 30.0, home: Home = None,
) -> None:  # fmt: skip
    """Note something about a held write, assign it, or claim it for a while. It decides nothing; `show` has the notes.

    Write no memory content into a note: it stays in the audit when the write is gone.
    """
    from datetime import UTC, datetime

    from memsluice.cli.render.held import answered
    from memsluice.events.models import Action
    from memsluice.gate.commands.notes import ASSIGNEE_PARAMETER, CLAIM_PARAMETER, CLAIM_S_MAX
    from memsluice.operations.commands.answers import Bookmark
    from memsluice.operations.held.commands import answers, decision
    from memsluice.operations.held.entries import CommandOutcome
    from memsluice.operations.verdict_words import note_words
    from memsluice.topics.names import PARTITIONS

    if not text and assign is None and claim is None:
        raise InvalidArgument("nothing to note: write a text, or use --assign or --claim")
    if len(text) > REASON_CHARS_MAX:
        raise InvalidArgument(f"the note has {len(text)} characters, and may have {REASON_CHARS_MAX}")
    said = dict[str, str]()
    if assign is not None:
        check_name(assign, "--assign")
        said[ASSIGNEE_PARAMETER] = assign
    if claim is not None:
        seconds = duration_ms(claim, "--claim") // 1_000
        if seconds > CLAIM_S_MAX:
            raise InvalidArgument(f"--claim: {CLAIM_S_MAX // 3_600} hours at most")
        said[CLAIM_PARAMETER] = str(seconds)
    console = Console(highlight=False)
    with open_desk(home) as desk:
        seen = find_one(desk, home, entry, tenant, offset)
        command = decision(
            seen, Action.NOTE, str(uuid.uuid4()), datetime.now(UTC), text, despite_claim=despite_claim, parameters=said
        )
        since = Bookmark.at(desk.audit, command.tenant, PARTITIONS)
        desk.publish([command])
        desk.settle()
        told = answers(desk.audit, desk.keys.keyring(), [command], [since], wait).get(command.id)
        ruled = None if told is None else told.ruled
        if ruled is not None and ruled.outcome is CommandOutcome.NOTED:
            left = {"assignee": ruled.assignee, "claimed_by": ruled.claimed_by, "claim_until_ms": ruled.claim_until_ms}
            console.print(Text(f"noted: it is {note_words(left)}", style="green"), soft_wrap=True)
            return
        console.print(answered(ruled, command.id, wait), soft_wrap=True)
        raise typer.Exit(exit_codes.of_answers(missing=ruled is None, refused=True))
