"""The vocabulary of the sample's script: scenes in order of the clock, and what kinds of attack there are."""

from dataclasses import dataclass
from enum import StrEnum

from memsluice.events.models import Visibility


class Act(StrEnum):
    """What happens in a scene. The first six are events that a credential signs; the rest is done by attackers."""

    OPEN = "open"
    WRITE = "write"
    ASK = "ask"
    SEE = "see"
    COMMAND = "command"
    FORGE = "forge"
    """A right key id, signed with a secret that is not its own."""
    UNKNOWN_KEY = "unknown_key"
    TAMPER = "tamper"
    """Signed rightly, then one word changed on the way."""
    REPLAY = "replay"
    """An earlier message, byte for byte, sent once more."""
    REUSE_ID = "reuse_id"
    """Another content under an event id that was used."""
    CROSS_TENANT = "cross_tenant"
    """A good credential, of another tenant."""
    EXPIRED_KEY = "expired_key"
    GARBAGE = "garbage"
    """Bytes that are no event at all."""
    WRONG_ROLE = "wrong_role"
    """A credential that publishes what its role may not."""
    FOREIGN_COMMAND = "foreign_command"
    """A command that no operator signed."""
    STORE_INSERT = "store_insert"
    STORE_TAMPER = "store_tamper"
    STORE_ROLLBACK = "store_rollback"


class Attacker(StrEnum):
    """The rows of the threat model's table that a working day can show."""

    OUTSIDER = "outsider without a credential"
    CONTENT = "web page, e-mail or tool result"
    USER = "user of the same platform"
    PEER = "peer agent, compromised"
    PATIENT = "patient attacker"
    STORE = "holder of store access"
    OPERATOR = "operator's mistake"
    KEYHOLDER = "holder of a wrong key"


@dataclass(frozen=True, slots=True)
class Scene:
    """One thing that happens. ``minute`` counts from the start of the day; ``seq`` orders what shares a minute.

    ``tag`` names a write so that later scenes can use it (``parents``, ``about``); parents ``*`` means: what the
    session's last question was answered with. ``attacker`` is what the script knows and the gate never sees.
    """

    minute: float
    tenant: str
    act: Act
    session: str = ""
    agent: str = ""
    principal: str = ""
    source: str = "agent"
    text: str = ""
    origin: str = ""
    tag: str = ""
    parents: tuple[str, ...] = ()
    about: str = ""
    key: str | None = None
    visibility: Visibility = Visibility.PRINCIPAL
    attacker: Attacker | None = None
    seq: int = 0
