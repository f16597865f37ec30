"""Commands that wait for another person's signature: an envelope a file in the home, as ``memsluice approve`` reads it.

They outlive the server. A file says nothing that its signatures do not: it is verified whenever it is read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import orjson

from memsluice.console import orders
from memsluice.console.serving import Serving
from memsluice.console.visitors import Visitor
from memsluice.envelope import dsse
from memsluice.errors import ConfigError, ForgedSignature, InvalidArgument, LimitExceeded, NotFound, NotPermitted
from memsluice.keystore.files import write_atomic
from memsluice.operations.commands.signing import Signed, load

FOLDER = "proposals"
PROPOSALS_MAX = 1_000
OF_ONE_MAX = 100
"""Proposals of one key that wait at once: nobody takes the place of all others."""
NAME_DIGITS = 32


@dataclass(frozen=True, slots=True)
class Proposal:
    """A command with the signatures that it has; ``name`` stands in its page's address."""

    name: str
    signed: Signed

    @property
    def wanted(self) -> int:
        """How many people have to sign it."""
        return orders.approvals(self.signed.command.action)


def name_of(signed: Signed) -> str:
    """Return the name of a proposal: of its tenant and id, so that one command is one proposal."""
    command = signed.command
    return sha256(f"{command.tenant}\0{command.id}".encode()).hexdigest()[:NAME_DIGITS]


def add(serving: Serving, signed: Signed) -> Proposal:
    """Keep a command that was checked. Raises InvalidArgument where one signature is enough, or it is there already."""
    proposal = Proposal(name_of(signed), signed)
    if proposal.wanted < 2:
        raise InvalidArgument(f"a {signed.command.action.value} needs no second signature: it is not proposed")
    folder = serving.home / FOLDER
    if _file(folder, proposal.name).exists():
        raise InvalidArgument("this command is proposed already")
    waiting = [one.signed.kids[0] for one in every(serving, None)]
    if waiting.count(signed.kids[0]) >= OF_ONE_MAX:
        raise LimitExceeded(f"{OF_ONE_MAX} proposals of yours wait already: have some of them signed or withdrawn")
    if len(waiting) >= PROPOSALS_MAX:
        raise LimitExceeded(f"{PROPOSALS_MAX} proposals wait already: have some of them signed or withdrawn")
    write_atomic(_file(folder, proposal.name), orjson.dumps(signed.envelope, option=orjson.OPT_INDENT_2) + b"\n")
    return proposal


def every(serving: Serving, visitor: Visitor | None) -> Iterator[Proposal]:
    """Yield the proposals that a visitor may sign or has signed (None: all), newest first; what is void is removed."""
    found = []
    for file in (serving.home / FOLDER).glob("*.json"):
        try:
            proposal = _read(serving, file)
        except ConfigError:  # a key was revoked since, or the file was changed: nobody could sign it
            continue
        if int(proposal.signed.command.expires_at.timestamp() * 1_000) <= serving.clock():
            file.unlink(missing_ok=True)
        elif visitor is None or concerns(proposal, visitor):
            found.append(proposal)
    yield from sorted(found, key=lambda one: one.signed.command.time, reverse=True)


def find(serving: Serving, visitor: Visitor, name: str) -> Proposal:
    """Return a proposal that the visitor may see. Raises NotFound."""
    file = _file(serving.home / FOLDER, name)
    lost = NotFound("there is no such proposal for you: it was signed, withdrawn, or is over")
    if len(name) != NAME_DIGITS or not name.isalnum() or not file.exists():
        raise lost
    try:
        proposal = _read(serving, file)
    except ConfigError:
        raise lost from None
    if not concerns(proposal, visitor):
        raise lost
    return proposal


def concerns(proposal: Proposal, visitor: Visitor) -> bool:
    """Whether a visitor may give such a command himself: then he may see it, and sign it.

    What is for every tenant has what is said of each of them, and is for who sees all.
    """
    command = proposal.signed.command
    return visitor.may(command.action) and visitor.sees_tenant(command.tenant)


def same(proposal: Proposal, signed: Signed) -> None:
    """Raise ForgedSignature where a command that was signed further is not the proposed one, byte for byte."""
    before, after = dsse.parse(proposal.signed.envelope), dsse.parse(signed.envelope)
    kept = after.signatures[: len(before.signatures)] == before.signatures
    if before.payload != after.payload or not kept:
        raise ForgedSignature("these are not the bytes that were proposed", field="payload")


def remove(serving: Serving, proposal: Proposal) -> None:
    """Forget a proposal: it was published, or taken back."""
    _file(serving.home / FOLDER, proposal.name).unlink(missing_ok=True)


def withdraw(serving: Serving, visitor: Visitor, proposal: Proposal, origin: str, kid: str, signature: bytes) -> None:
    """Take a proposal back, by a signature of one of its signers'. Raises NotPermitted, ForgedSignature."""
    serving.keys.refresh()
    if kid not in proposal.signed.kids or not visitor.owns(kid, serving.keys.registry()):
        raise NotPermitted("only who signed it takes it back", field="kid")
    said = "\n".join(("memsluice console withdraw v1", origin, kid, proposal.name)).encode()
    if not serving.keys.keyring().direct(kid).verify(said, signature):
        raise ForgedSignature("the signature is not this key's over this withdrawal", field="signature")
    remove(serving, proposal)


def _read(serving: Serving, file: Path) -> Proposal:
    return Proposal(file.stem, load(file, serving.keys.keyring))


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"
