"""The exit codes of all commands: the one table that ``memsluice --help`` and the page of commands print."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

from memsluice.errors import BrokerUnavailable, InvalidArgument, NotDelivered, NotFound, StoreUnavailable


class ExitCode(IntEnum):
    """An exit code. Scripts may rely on the numbers: a code is never given another meaning."""

    DONE = 0
    ERROR = 1
    USAGE = 2
    REFUSED = 3
    DIFFERENT = 4
    NOT_FOUND = 5
    UNAVAILABLE = 6
    NO_ANSWER = 7
    INCOMPLETE = 8
    PROBLEM = 9
    WORKER_FAILED = 70
    WORKER_HUNG = 75
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """What it means, in a sentence."""
        return MEANINGS[self]


MEANINGS: dict[ExitCode, str] = {
    ExitCode.DONE: "The command did what it was asked to do.",
    ExitCode.ERROR: "The command failed, and one line on standard error says why; or the question before signing was "
    "answered with no.",
    ExitCode.USAGE: "The command line is not valid: an unknown command or option, or a value that does not fit. "
    "Nothing was done.",
    ExitCode.REFUSED: "The gate refused a command, or a record is not authentic; the output says which, and why.",
    ExitCode.DIFFERENT: "What was compared differs: two policies, the broker's topics and their files, or the "
    "vector store and its log.",
    ExitCode.NOT_FOUND: "Nothing was found: no such event, entry, group, filter, tenant, dead letter or run, or no "
    "descendant of it, or no such partition that is parked.",
    ExitCode.UNAVAILABLE: "The broker, the vector store or the local stack did not answer. The same command may "
    "succeed later.",
    ExitCode.NO_ANSWER: "The commands were published, but the gate did not answer all of them within --wait. It will "
    "still decide them, in their order. About a parked partition: no worker has answered; look at its status.",
    ExitCode.INCOMPLETE: "The result is a part: a limit was reached. The output says which, and how to continue.",
    ExitCode.PROBLEM: "A check found a problem, or a partition is parked; the output says which, and what to do.",
    ExitCode.WORKER_FAILED: "A worker stopped because a stage failed. Start it again: it continues after its commit.",
    ExitCode.WORKER_HUNG: "A worker was told to stop and did not end in time. Nothing is lost: start it again.",
    ExitCode.INTERRUPTED: "The command was interrupted by Ctrl-C, SIGTERM or SIGHUP.",
}
EVERYWHERE = (ExitCode.DONE, ExitCode.ERROR, ExitCode.USAGE, ExitCode.UNAVAILABLE, ExitCode.INTERRUPTED)
"""Codes that any command may exit with."""
_SIGNED = (ExitCode.REFUSED, ExitCode.NOT_FOUND, ExitCode.NO_ANSWER)
OF_COMMANDS: dict[str, tuple[ExitCode, ...]] = {
    "trace": (ExitCode.NOT_FOUND,),
    "lineage": (ExitCode.NOT_FOUND, ExitCode.INCOMPLETE),
    "blast-radius": (ExitCode.NOT_FOUND, ExitCode.INCOMPLETE),
    "revoke": (*_SIGNED, ExitCode.INCOMPLETE),
    "promote": _SIGNED,
    "declassify": _SIGNED,
    "renew": _SIGNED,
    "protect": _SIGNED,
    "approve": _SIGNED,
    "recall": (ExitCode.NOT_FOUND,),
    "quarantine list": (ExitCode.NOT_FOUND,),
    "quarantine groups": (ExitCode.NOT_FOUND,),
    "quarantine filters delete": (ExitCode.NOT_FOUND,),
    "review": (ExitCode.NO_ANSWER, ExitCode.NOT_FOUND),
    "quarantine show": (ExitCode.NOT_FOUND,),
    "quarantine release": (*_SIGNED, ExitCode.INCOMPLETE),
    "quarantine reject": (*_SIGNED, ExitCode.INCOMPLETE),
    "quarantine reopen": (*_SIGNED, ExitCode.INCOMPLETE),
    "quarantine note": _SIGNED,
    "quarantine replay": _SIGNED,
    "notices run": (ExitCode.PROBLEM,),
    "notices test": (ExitCode.PROBLEM,),
    "dead-letters show": (ExitCode.NOT_FOUND,),
    "dead-letters reject": _SIGNED,
    "dead-letters replay": _SIGNED,
    "calibration show": (ExitCode.NOT_FOUND,),
    "store verify": (ExitCode.DIFFERENT, ExitCode.INCOMPLETE, ExitCode.NOT_FOUND),
    "store repair": (ExitCode.NOT_FOUND, ExitCode.INCOMPLETE),
    "store rebuild": (ExitCode.NOT_FOUND, ExitCode.INCOMPLETE),
    "partition status": (ExitCode.PROBLEM,),
    "partition resume": (ExitCode.NOT_FOUND, ExitCode.NO_ANSWER, ExitCode.PROBLEM),
    "partition acknowledge-gap": (ExitCode.NOT_FOUND, ExitCode.NO_ANSWER, ExitCode.PROBLEM),
    "topics apply": (ExitCode.DIFFERENT,),
    "topics check": (ExitCode.DIFFERENT,),
    "policy check": (ExitCode.PROBLEM,),
    "policy diff": (ExitCode.DIFFERENT,),
    "policy activate": _SIGNED,
    "doctor": (ExitCode.PROBLEM,),
    "work": (ExitCode.WORKER_FAILED, ExitCode.WORKER_HUNG),
}
"""What else a command may exit with, by its name."""

_OF_ERRORS: tuple[tuple[type[Exception], ExitCode], ...] = (
    (InvalidArgument, ExitCode.USAGE),
    (NotFound, ExitCode.NOT_FOUND),
    (BrokerUnavailable, ExitCode.UNAVAILABLE),
    (StoreUnavailable, ExitCode.UNAVAILABLE),
    (NotDelivered, ExitCode.UNAVAILABLE),
)


def of_error(error: BaseException) -> ExitCode:
    """Return the exit code of a command that ends with an exception."""
    return next((code for kind, code in _OF_ERRORS if isinstance(error, kind)), ExitCode.ERROR)


def of_answers(*, missing: bool, refused: bool, left: bool = False) -> ExitCode:
    """Return the exit code of commands that were signed and published; what may yet change counts first."""
    if missing:
        return ExitCode.NO_ANSWER
    if refused:
        return ExitCode.REFUSED
    return ExitCode.INCOMPLETE if left else ExitCode.DONE


def listed(codes: Iterable[ExitCode]) -> str:
    """Return codes with their names: ``3 refused, 7 no answer``."""
    return ", ".join(f"{code.value} {code.name.lower().replace('_', ' ')}" for code in codes)


def attach(name: str, command: Any) -> None:
    """Let a command, and all below it, say in its help which exit codes it has besides those of every command."""
    if codes := OF_COMMANDS.get(name, ()):
        command.help = f"{(command.help or '').strip()}\n\nExit codes besides {listed(EVERYWHERE)}: {listed(codes)}."
    for part, inner in getattr(command, "commands", {}).items():
        attach(f"{name} {part}", inner)
