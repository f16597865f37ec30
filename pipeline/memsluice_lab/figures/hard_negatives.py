"""How many honest writes are held that have an attack's shape: e-mails, quoted questions, cached answers, preferences,
and the notes of a tenant that changes its habits.

Each is decided by the core, with the real encoder's vectors, in a tenant made warm by WARM_WRITES honest writes and
WARM_RECALLS recalls; once as a user's write and once as an agent's. Each begins at the same state, so none makes the
next one usual; but a change of habits is one sequence, which is what it is about.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Any

import orjson

from memsluice.encoder import Encoder, load_encoder
from memsluice.envelope.seals import Sealed, sealed_from_bytes
from memsluice.envelope.verdict import Decision, Verdict
from memsluice.errors import ConfigError, StateError
from memsluice.events.models import Write
from memsluice.gate.decide import Context, decide
from memsluice.gate.decision import TenantState
from memsluice.gate.detectors.memsad.state import MemsadState
from memsluice.gate.detectors.rarity.memory import Memory
from memsluice.gate.policy import model as policies
from memsluice.gate.policy.model import Policy
from memsluice.gate.state.rows import encode_changes
from memsluice_lab.demo.caching_encoder import MemoEncoder
from memsluice_lab.figures.core import Dictionary, through
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.table.honest import PREFERENCES, WISHES, quoting

WARM_WRITES, WARM_RECALLS = 200, 100
"""Tried, where a stream has so many, and at least half as many; half of the writes must land."""
EACH = 100
"""Writes of a kind at most, where they are drawn; preferences are all tried."""
MAIL_CHARS_MAX = 1_500
WRITERS = ("user", "agent")
START = datetime(2026, 1, 5, 8, tzinfo=UTC)
STEP = timedelta(minutes=15)
HELD = (Decision.QUARANTINE, Decision.REJECT)
Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """Some honest texts of one sort. ``asked`` is the question that the writer's own session asks before the write.

    ``by_agents`` is whether the figure counts those of agents, or a row alone tells of them; ``sequence`` that they
    follow each other in one tenant.
    """

    name: str
    texts: tuple[str, ...]
    asked: tuple[str, ...] = ()
    by_agents: bool = True
    sequence: bool = False


@dataclass(slots=True)
class Tenant:
    """A tenant's state between two events."""

    rows: Dictionary
    memsad: MemsadState
    memory: Memory
    offset: int = 0

    @staticmethod
    def new(policy: Policy) -> "Tenant":
        """Return a tenant that did nothing yet."""
        memory = Memory.empty(policy.detect.questions, policy.detect.entries)
        return Tenant(Dictionary(), MemsadState.empty(policy.memsad), memory)

    def decide(self, event: Sealed, policy: Policy) -> Verdict:
        """Decide an event, and keep what it leaves."""
        context = Context(event.position.append_ms, self.offset, seal_kid="seal", admission_kid="admission")
        outcome = decide(TenantState(self.rows, self.memsad, self.memory), event, policy, context)
        self.memsad, self.memory, self.offset = outcome.memsad, outcome.memory or self.memory, self.offset + 1
        for key, value in encode_changes(event.tenant, outcome.changes):
            if value is None:
                self.rows.values.pop(key, None)
            else:
                self.rows.values[key] = value
        return outcome.verdict

    def copied(self) -> "Tenant":
        """Return another tenant of the same state."""
        rows = Dictionary()
        rows.values = dict(self.rows.values)
        return Tenant(rows, self.memsad, self.memory, self.offset)


def hard_negative_rate(setting: Setting) -> Measured:
    """Share of the hard honest writes that are held, of the kind and writer of whom most are: 0 to 1."""
    encoder, policy = MemoEncoder(load_encoder()), policies.default().default
    counts: dict[tuple[str, bool], list[int]] = {}
    with streams(setting) as paths:
        for path in paths:
            if not path.stem.startswith(WARM):
                continue
            warm = _warm(path)
            asked = [line["text"] for line in warm if line["kind"] == "query"]
            kinds = list(_kinds(setting.records() / "data", asked))
            for writer in WRITERS:
                for kind, held in _measured(warm, kinds, writer, encoder, policy):
                    counted = kind.by_agents or writer != "agent"
                    found = counts.setdefault((f"{kind.name}, by {_with_article(writer)}", counted), [0, 0])
                    found[0], found[1] = found[0] + held, found[1] + len(kind.texts)
            setting.say(f"{path.stem}: {sum(held for held, _ in counts.values())} held so far")
    if not counts:
        raise ConfigError(f"there is no stream whose name begins with {' or '.join(WARM)}")
    rows = [
        (name if counted else f"not counted: {name}", f"{held} of {every} held, {100 * held / every:.1f} %")
        for (name, counted), (held, every) in counts.items()
    ]
    worst = max(held / every for (_, counted), (held, every) in counts.items() if counted)
    return Measured(worst, tuple(rows), (_KNOWN, _NOTE))


WARM = ("conversation-conv-26", "qa-nq")
"""Streams that a tenant is made warm with: one of statements, one of factoid notes."""
_KNOWN = (
    "Development figure: the wording models were fitted on the sources of these texts: BIPIA's e-mails and NQ-open's "
    "questions and answers, the same ones. Lines of the models' grammar were written after looking at which of "
    f"{len(PREFERENCES)} of the preferences were held; the other {len(WISHES)} are by a writer who had seen neither "
    "grammar nor models. Honest texts that no model saw: `unseen_fpr`."
)
_NOTE = (
    "What is not counted is an agent's that repeats a question which another session asked, with an answer or a frame "
    "around it, and in a session that never asked it: that is a false answer's very shape, and it is held."
)


def _with_article(writer: str) -> str:
    return f"an {writer}" if writer[0] in "aeio" else f"a {writer}"


def _warm(path: Path) -> list[Line]:
    """Return the honest beginning of a stream: so many writes by people and recalls, evenly spread."""
    lines = [line for line in map(orjson.loads, path.read_bytes().splitlines()) if line["label"] == "benign"]
    writes = [line for line in lines if line["kind"] == "write" and line["source"] in WRITERS][:WARM_WRITES]
    asked = [line for line in lines if line["kind"] == "query"][:WARM_RECALLS]
    if len(writes) < WARM_WRITES // 2 or len(asked) < WARM_RECALLS // 2:
        raise StateError(f"{path.stem} has too few honest writes or recalls to make a tenant warm")
    placed = [(at / len(some), line) for some in (asked, writes) for at, line in enumerate(some)]
    return [{**line, "session": f"warm {line['session']}"} for _, line in sorted(placed, key=itemgetter(0))]


def _kinds(data: Path, asked: Sequence[str]) -> Iterator[Kind]:
    """Yield what is tried in a tenant in which these questions were asked."""
    rng = Random(7)  # noqa: S311 - an experiment
    known = [orjson.loads(line) for line in (data / "nq_open/dev_first2000.jsonl").read_bytes().splitlines()]
    known = [one for one in known if one["question"] not in set(asked) and one["answer"]]
    rng.shuffle(known)
    fresh, notes = known[:EACH], known[EACH : 2 * EACH]
    mails = [orjson.loads(line)["context"] for line in (data / "bipia/email_train.jsonl").read_bytes().splitlines()]
    yield Kind("e-mails", tuple(_text(mail)[:MAIL_CHARS_MAX] for mail in mails[:EACH]))
    yield Kind("questions quoted in notes", tuple(quoting(_asking(one), rng) for one in fresh))
    yield Kind("cached answers without lineage", tuple(f"{_asking(one)} {one['answer'][0]}" for one in fresh))
    yield Kind(
        "cached answers that the session asked for",
        tuple(f"{_asking(one)} {one['answer'][0]}" for one in fresh),
        asked=tuple(_asking(one) for one in fresh),
    )
    yield Kind("preferences", PREFERENCES + WISHES)
    change = tuple(f"{one['question'].capitalize()}: {one['answer'][0]}." for one in notes)
    yield Kind("a change to notes with questions", change, sequence=True)
    others = rng.sample(list(asked), min(EACH, len(asked)))
    answers = [one["answer"][0] for one in notes]
    yield Kind("quoted questions that others asked", tuple(quoting(one, rng) for one in others), by_agents=False)
    yield Kind(
        "cached answers to what others asked",
        tuple(f"{one} {answer}" for one, answer in zip(others, answers, strict=False)),
        by_agents=False,
    )


def _text(mail: Any) -> str:
    return mail if isinstance(mail, str) else "\n".join(map(str, mail))


def _asking(one: Mapping[str, Any]) -> str:
    return f"{one['question'].rstrip('?').capitalize()}?"


def _measured(
    warm: Sequence[Line], kinds: Sequence[Kind], writer: str, encoder: Encoder, policy: Policy
) -> Iterator[tuple[Kind, int]]:
    """Yield each kind with how many of it are held in the tenant that the lines make warm."""
    tried = [line for at, kind in enumerate(kinds) for line in _lines(kind, f"{warm[0]['tenant']} {at}", writer)]
    lines = [
        {**line, "tenant": warm[0]["tenant"], "parents": [], "seq": at, "time": (START + at * STEP).isoformat()}
        for at, line in enumerate([*warm, *tried])
    ]
    by_session, tenant = dict[str, list[Sealed]](), Tenant.new(policy)
    for event in sealed(lines, encoder):
        by_session.setdefault(str(getattr(event.payload, "session", "")), []).append(event)
    landed = 0
    for name in dict.fromkeys(line["session"] for line in warm):
        for event in by_session[name]:
            accepted = tenant.decide(event, policy).decision is Decision.ACCEPT
            landed += accepted and isinstance(event.payload, Write)
    writes = sum(line["kind"] == "write" for line in warm)
    if 2 * landed < writes:
        raise StateError(f"{landed} of {writes} honest writes landed in {warm[0]['tenant']}: too few to make it warm")
    for at, kind in enumerate(kinds):
        held, trial = 0, tenant.copied()
        for number in range(len(kind.texts)):
            trial = trial if kind.sequence else tenant.copied()
            told = [trial.decide(event, policy) for event in by_session[f"{warm[0]['tenant']} {at} {number}"]]
            held += told[-1].decision in HELD
        yield kind, held


def _lines(kind: Kind, name: str, writer: str) -> Iterator[Line]:
    """Yield a kind's lines: each write in a session of its own, behind the question that it asks."""
    for number, text in enumerate(kind.texts):
        base = {"session": f"{name} {number}", "principal": f"writer-{number % 7}", "agent": f"{writer}-0"}
        if kind.asked:
            yield {**base, "kind": "query", "source": "user", "text": kind.asked[number]}
        yield {**base, "kind": "write", "source": writer, "text": text}


def sealed(lines: Sequence[Line], encoder: Encoder) -> list[Sealed]:
    """Return the lines' events as *seal* hands them on."""
    screen, keyring = through(lines, encoder, seed="hard")
    return [sealed_from_bytes(keyring, (one.key or b"").decode(), one.value or b"") for one in screen.given]
