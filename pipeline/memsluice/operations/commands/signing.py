"""Signatures of one or several people under a command, also when they sit at different machines.

Whoever proposes a command writes its envelope, with one signature, to a file. Whoever approves it reads the same
command out of the same bytes and adds a signature over them: nothing that was signed is ever written anew.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson

from memsluice.client.credentials import check
from memsluice.deployment.paths import write_private
from memsluice.envelope import dsse
from memsluice.envelope.codec import from_json
from memsluice.envelope.keys import Keyring
from memsluice.errors import ConfigError, InputError
from memsluice.events.limits import RECORD_BYTES_MAX
from memsluice.events.models import Command, parse_payload
from memsluice.events.names import EventType, payload_type
from memsluice.keystore.files import SigningCredential

TYPE = payload_type(EventType.COMMAND.value)
COMMAND_VALID = timedelta(minutes=15)
"""How long a command holds: enough to pass a busy pipeline, too short for anybody to find it useful later."""


@dataclass(frozen=True, slots=True)
class Signed:
    """A command, and its envelope with every signature there is so far."""

    command: Command
    envelope: dict[str, Any]

    @property
    def kids(self) -> tuple[str, ...]:
        """Key ids of those who signed, in order."""
        return tuple(signature["keyid"] for signature in self.envelope["signatures"])

    def save(self, file: Path) -> None:
        """Write the envelope to a new file, for its owner alone: it may carry content. Raises ConfigError."""
        if file.exists():
            raise ConfigError(f"{file} exists already: choose another file for the proposal")
        write_private(file, orjson.dumps(self.envelope, option=orjson.OPT_INDENT_2).decode() + "\n")


def sign(command: Command, credentials: Sequence[SigningCredential], now_ms: int) -> Signed:
    """Return a command signed by each credential. Raises ExpiredKey, NotPermitted or CrossTenant as the gate would."""
    for credential in credentials:
        check(credential, EventType.COMMAND, command, now_ms)
    from memsluice.client.build import envelope_of

    return Signed(command, envelope_of(command, [credential.signer() for credential in credentials]))


def cosign(signed: Signed, credential: SigningCredential, now_ms: int) -> Signed:
    """Return it with one more signature, over the very bytes that the others signed.

    Raises ConfigError for a second signature of one key, and what :func:`sign` raises.
    """
    if credential.kid in signed.kids:
        raise ConfigError(
            f"key {credential.kid} has signed this command already, and an approval must come from another person"
        )
    check(credential, EventType.COMMAND, signed.command, now_ms)
    payload = dsse.parse(signed.envelope).payload
    added = dsse.sign(TYPE, payload, [credential.signer()])["signatures"]
    return Signed(signed.command, {**signed.envelope, "signatures": [*signed.envelope["signatures"], *added]})


def load(file: Path, keyring: Callable[[], Keyring]) -> Signed:
    """Read a proposed command, once every signature under it holds. Raises ConfigError, which says what is wrong."""
    try:
        data = file.read_bytes()
        if len(data) > 2 * RECORD_BYTES_MAX:
            raise ConfigError(f"{file} is too large to be a proposed command")
        envelope = from_json(data)
        payload = dsse.verify(dsse.parse(envelope), TYPE, keyring().direct)
        command = parse_payload(EventType.COMMAND, payload)
    except OSError as error:
        raise ConfigError(f"{file} is not a proposed command ({type(error).__name__})") from None
    except InputError as error:
        raise ConfigError(f"{file} is not a valid command under this home's keys: {error}") from None
    assert isinstance(command, Command)
    kept = {name: envelope[name] for name in ("payload", "payloadType", "signatures")}
    return Signed(command, kept)
