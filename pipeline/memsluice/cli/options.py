"""The arguments and options that several commands share, each declared once."""

from pathlib import Path
from typing import Annotated

import typer

from memsluice.clock import duration_ms as parsed
from memsluice.errors import InvalidArgument
from memsluice.escaping import visible
from memsluice.events.limits import NAME_CHARS_MAX

DELETE = 0x7F
"""The one control character beyond the first 32 that is of ASCII."""


def named_home(text: str) -> Path:
    """Return the home that is named. An empty name is refused: it would be the folder that one stands in."""
    if not text.strip():
        raise InvalidArgument(
            "--home is empty, so a variable in the command line may not be set: name a folder, or leave --home out"
        )
    return Path(text)


Home = Annotated[
    Path | None,
    typer.Option(
        "--home",
        help="Home directory. Default: MEMSLUICE_HOME, else ~/.memsluice.",
        show_default=False,
        parser=named_home,
        metavar="PATH",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Tenant = Annotated[
    str | None, typer.Option(help="Look at this tenant only: one partition is read.", show_default=False)
]
TenantOfEntry = Annotated[
    str | None,
    typer.Option("--tenant", help="The entry's tenant; needed where several tenants have the id.", show_default=False),
]
Entry = Annotated[str, typer.Argument(help="Event id of the entry.")]
Since = Annotated[
    str | None, typer.Option(help="Only since then: 30m, 24h or 7d ago, or a date and time.", show_default=False)
]
Until = Annotated[
    str | None, typer.Option(help="Only before then: 30m, 24h or 7d ago, or a date and time.", show_default=False)
]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="Rows at most; the oldest are shown.")]
Reason = Annotated[
    str | None,
    typer.Option(help="Only with this reason code, or with any code of a module, such as rates.", show_default=False),
]

Kids = Annotated[
    list[str] | None,
    typer.Option("--kid", help="Key id that signs; the default is the newest on this machine.", show_default=False),
]
KidsOfTwo = Annotated[
    list[str] | None,
    typer.Option(
        "--kid",
        help="Key id that signs; the default is the newest on this machine. If two people must sign, repeat --kid "
        "or use --propose.",
        show_default=False,
    ),
]
Why = Annotated[str, typer.Option("--why", help="The reason, for those who read the audit later; it is signed.")]
Yes = Annotated[bool, typer.Option("--yes", help="Sign without asking.")]
Loosen = Annotated[
    bool,
    typer.Option(
        "--loosen",
        help="Agree that a policy lets more happen than the one in force, as it is listed. --yes does not say so.",
    ),
]
Wait = Annotated[float, typer.Option(min=0, max=600, help="Seconds to wait for the gate's answer.")]
Propose = Annotated[
    Path | None,
    typer.Option(
        help="Sign once and write the command to this file, for `memsluice approve` by another person.",
        show_default=False,
    ),
]


def duration_ms(text: str, option: str) -> int:
    """Return the milliseconds of ``90s``, ``30m``, ``24h`` or ``7d``. Raises InvalidArgument, naming the option."""
    found = parsed(text)
    if found is None:
        raise InvalidArgument(f"{option}: {text[:40]!r} is not a duration: write it like 90s, 30m, 24h or 7d")
    return found


def check_name(name: str, option: str) -> None:
    """Raise InvalidArgument, naming the option, for a name that no event could have."""
    if not 0 < len(name) <= NAME_CHARS_MAX or any(ord(sign) < ord(" ") or ord(sign) == DELETE for sign in name):
        raise InvalidArgument(
            f"{option}: {visible(name, 80)!r} is not a name: write 1 to {NAME_CHARS_MAX} characters, and no control "
            "characters"
        )
