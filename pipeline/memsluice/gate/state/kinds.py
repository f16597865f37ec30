"""Every kind of state row: its name in a key, and the one frozen type of its values.

The type says both ways what a row is: :meth:`memsluice.gate.state.rows.RowKind.load` reads it and nothing else does,
:func:`memsluice.gate.state.rows.dump` writes it. A field with a default in a type that has ``omit_defaults`` is left
out where it has it, as rows that were written before there was such a field leave it out; a null that was written stays
one. Names in rows are short where rows are many.
"""

from typing import TypeVar, cast

from msgspec import UNSET, Struct, UnsetType, field

from memsluice.envelope.space import DEFAULT_DIMENSIONS, DEFAULT_MODEL
from memsluice.envelope.verdict import Decision
from memsluice.events.models import Tier, Zone
from memsluice.gate.state.graph_rows import ClaimRow, NodeRow, RelationRow
from memsluice.gate.state.rows import RowKind

Version = tuple[str | None, int]
"""An object's id and the version that lay there."""


class Gone(Struct, frozen=True):
    """The version of an entry that a command or look back took out, and when (Unix ms)."""

    was: Version
    ms: int


class Looked(Struct, frozen=True):
    """The recall whose look back took an entry out, and what the entry was before."""

    by: str
    taint: bool
    decision: Decision


class EntryRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The lineage of what was written: what later writes, recalls and commands go by, for as long as it lives.

    ``digest`` is of the payload, ``content`` of the content. ``causes`` are the first CAUSES_MAX. ``lifted`` and
    ``revoked`` name the command that last did so (None: another took that back), so do ``promoted`` and ``reviewed``.
    ``was`` is the version that a command moved or renewed last. ``reads`` is the share of honest texts that say as much
    to do, None where nobody asked, ``reader`` which wording models said so. ``expires_ms`` is Unix ms, None for ever.
    """

    tier: Tier
    taint: bool
    landed: bool
    decision: Decision
    object_id: str | None = field(name="object")
    zone: Zone | None
    version: int
    topic: str
    offset: int
    digest: str
    content: str = ""
    keyed: bool | None = None
    causes: tuple[str, ...]
    parents: tuple[str, ...] = ()
    lifted: str | None = ""
    revoked: str | None = ""
    promoted: str = ""
    reviewed: str = ""
    reads: float | None = None
    reader: str = ""
    was: Version | None = None
    gone: Gone | UnsetType | None = UNSET
    looked: Looked | UnsetType | None = UNSET
    expires_ms: int | None = field(name="x")


class Weighed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a rule on contents went by: the digest of its part of the policy, how strict that was
    (:func:`memsluice.gate.policy.parts.strictness`), and its numbers where it has some.

    ``also`` has digest and strictness of other policies by which the rule held the same write, replayed under them: a
    policy that is put back is one that somebody changed, and not one that lets in what it held.
    """

    part: str
    strict: tuple[float, ...] = ()
    score: float | None = None
    threshold: float | None = None
    p: float | None = None
    also: tuple[tuple[str, tuple[float, ...]], ...] = ()


class DeskRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What reviewers noted about a held write: how often, whom it is assigned to, and who claims it until when (Unix
    ms; by key id)."""

    notes: int = 0
    assignee: str = ""
    claimed_by: str = ""
    claim_until_ms: int = 0


class ReviewRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A held write: where it stands in the log, what it is by digests, why it is held, and what became of it.

    ``state`` is ``held``, ``refused`` (*screen* rejected it, and it is kept for a replay), ``released`` or
    ``rejected``; ``by`` is the command that decided it, ``appeal`` the one by which its writer asked for a review;
    ``lifted`` and ``revoked`` as of :class:`EntryRow`. ``weighed`` is what the rules on contents went by that held it,
    by module (rows of before have none); ``shown`` names the last runs of replays that showed it to a person. ``last``
    is the last command that decided it anew and left it waiting (rows of before have none).
    """

    topic: str
    offset: int
    digest: str
    content: str
    vector: str
    principal: str
    kid: str
    held_ms: int
    tier: Tier
    taint: bool
    causes: tuple[str, ...]
    codes: tuple[str, ...]
    state: str
    by: str
    appeal: str = ""
    lifted: str | None = ""
    revoked: str | None = ""
    weighed: dict[str, Weighed] = {}
    shown: tuple[str, ...] = ()
    last: str = ""
    desk: DeskRow | None = None
    expires_ms: int = field(name="x")


Labelled = TypeVar("Labelled", EntryRow, ReviewRow)
"""What has a label: commands change it alike in both."""


class HolderRow(Struct, frozen=True, kw_only=True):
    """Whose a keyed object is: the event that lies there now, and where its write stood in the log."""

    event: str
    offset: int
    expires_ms: int | None = field(name="x")


class ProtectedRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A key is immutable (iota = 1). One row has the key itself as its id; the other, whose id is that of the key's
    guidance object, has the ``key`` in it."""

    by: str
    key: str = ""


class Narrow(Struct, frozen=True, kw_only=True):
    """What narrower watermarks go by.

    ``turn`` and ``turn_worst`` are the causes and the worst tier since the platform last opened the session; ``seen``
    counts observations whose words are kept, ``hard`` says that something else tainted it; ``revoked`` is the cause by
    which an order distrusts it, which no scope narrows.
    """

    turn: tuple[str, ...] = ()
    turn_worst: int = 0
    hard: bool = False
    seen: int = 0
    revoked: str = ""


class SessionRow(Struct, frozen=True, kw_only=True):
    """One session. ``worst`` is the least trusted tier among what tainted it; ``causes`` the nearest, bounded.

    A row that is older than narrower watermarks has none of them: see :attr:`narrower`.
    """

    agent: str
    principal: str
    opened: bool = False
    taint: bool = False
    worst: int = 0
    causes: tuple[str, ...] = ()
    narrow: Narrow | None = None
    expires_ms: int = field(name="x", default=0)

    @property
    def narrower(self) -> Narrow:
        """What narrower watermarks go by; of a row that has none of them, all that it has."""
        return self.narrow or Narrow(turn=self.causes, turn_worst=self.worst, hard=self.taint)


class SeenRow(Struct, frozen=True, kw_only=True):
    """The words of one observation, as a sketch, its cause of taint and its tier."""

    words: str
    cause: str
    tier: int
    expires_ms: int = field(name="x")


class CountsRow(Struct, frozen=True, kw_only=True):
    """Counts over a sliding window, by the bucket's number."""

    buckets: dict[str, int] = field(name="n")
    expires_ms: int = field(name="x")


class LyingRow(Struct, frozen=True, kw_only=True):
    """How many entries of a tier and a zone lie in memory that expire within one span of time."""

    number: int = field(name="n")
    expires_ms: int | None = field(name="x")


class EventRow(Struct, frozen=True, kw_only=True):
    """One decided event: which record had the id and what it said, and how long that counts."""

    topic: str
    offset: int
    digest: str
    expires_ms: int = field(name="x")


class PolicyRow(Struct, frozen=True, kw_only=True):
    """The policy in force: its text, and the command that put it in force."""

    text: str
    by: str


class ChainRow(Struct, frozen=True, kw_only=True):
    """Number and digest of a tenant's last audit record, as it was sent."""

    seq: int
    digest: str


class PositionRow(Struct, frozen=True, kw_only=True):
    """How far an intake topic was decided (None: not begun), and screen's clock then (Unix ms)."""

    offset: int | None
    clock_ms: int


class QuestionRow(Struct, frozen=True, kw_only=True):
    """A question that the default detector remembers: its recall, who asked (a tag) in which sessions, its stems."""

    event_id: str = field(name="id")
    principal: str = field(name="p")
    sessions: tuple[str, ...] = field(name="s")
    stems: str = field(name="t")
    vector: str = field(name="v")


class LandedRow(Struct, frozen=True, kw_only=True):
    """An entry that the default detector remembers; ``exempt``: look back leaves it alone. Old rows name nobody."""

    event_id: str = field(name="id")
    stems: str = field(name="t")
    vector: str = field(name="v")
    exempt: bool = field(name="k")
    principal: str = field(name="p", default="")


class NamedValues(Struct, frozen=True, kw_only=True):
    """An entry's values as rows had them before they had to be short."""

    c: float
    q: float
    r: float
    w: float
    u: float
    g: float


Values = tuple[int, ...] | NamedValues
"""An entry's values, in whole ten-thousandths."""


class HabitRow(Struct, frozen=True, kw_only=True):
    """Which of the last screened writes carried a question, and whose (tags) those were."""

    flags: str = field(name="f")
    writers: tuple[str, ...] = field(name="p", default=())


class FloorRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """From which number on questions and entries count; ``turn`` as in :class:`EncoderRow`, of the kept vectors."""

    questions: int = field(name="q")
    entries: int = field(name="e")
    turn: int = field(name="t", default=0)


class CalibrationRow(Struct, frozen=True, kw_only=True):
    """The state of one calibration (:class:`memsluice.gate.detectors.calibration.state.State`)."""

    values: tuple[float, ...] = field(name="v")
    tags: str = field(name="t")
    held: tuple[tuple[int, str, float], ...] = field(name="h")
    screened: int = field(name="n")
    level: float | None = field(name="a")
    recent: str = field(name="r")


class EncoderRow(Struct, frozen=True, kw_only=True):
    """Whose vectors the tenant's detectors remember (:mod:`memsluice.gate.checks.encoder`). Absent: the default's.

    ``turn`` counts how often that changed: rows of an earlier turn hold vectors that nothing is compared with.
    """

    model: str
    dimensions: int
    turn: int


FIRST_ENCODER = EncoderRow(model=DEFAULT_MODEL, dimensions=DEFAULT_DIMENSIONS, turn=0)
"""What a tenant without a row has: the default encoder, of which all rows are that are older than the choice of one."""


class VectorRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question or a reference entry of MEMSAD: its number, its vector or the ``coarse`` one, a question's recall.

    ``turn`` is :class:`EncoderRow`'s when it was written.
    """

    number: int = field(name="n")
    vector: str = field(name="v", default="")
    coarse: str = field(name="c", default="")
    event_id: str | None = field(name="e", default=None)
    turn: int = field(name="t", default=0)


class LexicalRow(Struct, frozen=True, kw_only=True):
    """MEMSAD+'s baseline: packed counts, the entries learned from, and the divergences of the later ones."""

    baseline: str = field(name="b")
    learned: int = field(name="n")
    divergences: tuple[float, ...] = field(name="d")


class DriftRow(Struct, frozen=True, kw_only=True):
    """What one principal's last writes over one channel tell agents to do, added up, and how many those are."""

    total: float = field(name="s")
    steps: int = field(name="n")
    expires_ms: int = field(name="x")


EVENT = RowKind("event", EventRow)
ENTRY = RowKind("entry", EntryRow)
REVIEW = RowKind("review", ReviewRow)
HOLDER = RowKind("holder", HolderRow)
PROTECTED = RowKind("protected", ProtectedRow)
SESSION = RowKind("session", SessionRow)
SEEN = RowKind("seen", SeenRow)
RATE = RowKind("rate", CountsRow)
DRIFT = RowKind("drift", DriftRow)
HELD = RowKind("held", CountsRow)
"""Counts of what each principal has in the quarantine."""
REFUSED = RowKind("refused", CountsRow)
"""Counts of what each principal has there that was rejected."""
ALL_REFUSED = RowKind("all_refused", CountsRow)
"""Counts of what all principals of a tenant have there that was rejected: one row."""
LOOKED = RowKind("looked", CountsRow)
"""Counts of what each principal's recalls moved."""
LYING = RowKind("lying", LyingRow)
"""Of the partition, not of a tenant; so are positions."""
POSITION = RowKind("position", PositionRow)
CHAIN = RowKind("chain", ChainRow)
POLICY = RowKind("policy", PolicyRow)
QUESTION = RowKind("detect", QuestionRow, "q")
LANDED = RowKind("detect", LandedRow, "e")
VALUES: RowKind[Values] = RowKind("detect", cast("type[Values]", Values), "v")
HABIT = RowKind("detect", HabitRow, "h")
FLOOR = RowKind("detect", FloorRow, "b")
DETECT_CALIBRATION = RowKind("detect", CalibrationRow, "c")
ASKED = RowKind("memsad", VectorRow, "q")
REFERENCE = RowKind("memsad", VectorRow, "r")
MEMSAD_CALIBRATION = RowKind("memsad", CalibrationRow, "s")
LEXICAL = RowKind("memsad", LexicalRow, "c")
CLAIM = RowKind("graph", ClaimRow, "c")
RELATION = RowKind("graph", RelationRow, "r")
NODE = RowKind("graph", NodeRow, "n")
LINKS = RowKind("graph", CountsRow, "l")
"""Counts of one principal's links at a node, by what they would be."""
INNER = RowKind("graph", CountsRow, "i")
"""Counts of each principal's links among nodes of their own."""
ENCODER = RowKind("encoder", EncoderRow)
