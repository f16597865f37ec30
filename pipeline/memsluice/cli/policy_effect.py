"""What an activation changes, before it is signed: printed, and agreed to where more may happen than before."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.text import Text

from memsluice.errors import ConfigError
from memsluice.escaping import visible

if TYPE_CHECKING:
    from memsluice.events.models import Command
    from memsluice.keystore.store import KeyStore
    from memsluice.operations.policies.effect import Effect
    from memsluice.readers.base import TopicReader

OTHERS_SHOWN_MAX = 20
"""Changes that let nothing more happen and are listed. Of what gets looser everything is."""
NAME_CHARS_MAX = 160
UNKNOWN = (
    "It is not known what is in force: the beginning of the audit is past its retention, and a policy that was "
    "activated then would still be. So any limit may get looser."
)


def effect_at(audit: "TopicReader", keys: "KeyStore", command: "Command", home: Path | None) -> "Effect":
    """Return what an activation changes against what is in force; where nothing was activated, against the file of a
    home. Raises BrokerUnavailable, PolicyError."""
    from memsluice.operations.policies.effect import effect_of
    from memsluice.operations.policies.standing import of_home

    return effect_of(audit, keys.keyring(), command, of_home(home))


def accept(console: Console, effect: "Effect", *, loosen: bool, yes: bool) -> None:
    """Print what changes, loudly what gets looser, and have that agreed to: by ``loosen``, else by an answer.

    Raises ConfigError where ``yes`` says that nobody is there to answer, typer.Abort for a no.
    """
    console.print(_told(effect), soft_wrap=True)
    if loosen or not effect.to_accept:
        return
    many = len(effect.looser)
    what = f"{many} setting{'s get' if many > 1 else ' gets'} looser" if many else "What is in force is not known"
    if yes:
        raise ConfigError(
            f"{what}, and --yes does not agree to that, so nothing was signed: read the lines marked LOOSER, and add "
            "--loosen if they are meant"
            if many
            else f"{what}, so any limit may get looser, and nothing was signed: add --loosen if that is meant"
        )
    typer.confirm(f"{what}. Is that meant?", abort=True, err=console.stderr)


def _told(effect: "Effect") -> Text:
    from memsluice.operations.policies.loosening import value

    told = Text()
    where = "the policy file of this home, since nothing was activated" if effect.by_file else "in force now"
    lines = [(f"against {effect.was}, {where}", "")]
    if not effect.known:
        lines.append((UNKNOWN, "bold red"))
    looser = {id(one.change) for one in effect.looser}
    others = [one for one in effect.changes if id(one) not in looser]
    lines += [
        (f"  {visible(one.who, NAME_CHARS_MAX)}  {one.field}  {value(one.before)} → {value(one.after)}", "")
        for one in others[:OTHERS_SHOWN_MAX]
    ]
    if len(others) > OTHERS_SHOWN_MAX:
        lines.append((f"  and {len(others) - OTHERS_SHOWN_MAX} changes more, none of them looser", ""))
    lines += [
        (f"  LOOSER  {visible(one.change.who, NAME_CHARS_MAX)}  {one.change.field}  {one.words()}", "bold red")
        for one in effect.looser
    ]
    if not effect.changes:
        lines.append(("  it changes nothing", ""))
    for number, (text, style) in enumerate(lines):
        told.append(("\n" if number else "") + visible(text), style)
    return told
