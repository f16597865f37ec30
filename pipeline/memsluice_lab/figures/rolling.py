"""What MEMSAD holds alone, calibrated by drift, where a tenant changes its topic: on the real stack."""

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from memsluice.encoder import load_encoder
from memsluice.gate.policy import model as policies
from memsluice.gate.policy.model import Policy, PolicySet
from memsluice_lab.demo.caching_encoder import MemoEncoder
from memsluice_lab.figures.accounted import through
from memsluice_lab.figures.bed import bed
from memsluice_lab.figures.ledger import read
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.run import decide
from memsluice_lab.streams import event_id, events_of, read_stream, tenant_of
from memsluice_lab.table.changes import other_topic

PROFILE = "published-rolling"
HELD = ("quarantine", "reject")
PEOPLE = ("user", "agent")
PAPER_KAPPA = 2.0
Line = dict[str, Any]


def in_force(strategy: str = "m_star", **memsad: Any) -> Policy:
    """Return the shipped profile without daily limits, and with room for what is held: months pass within a minute.

    With the strategy ``fixed`` it is the paper's own: its threshold factor 2, too, unless ``memsad``, which is laid
    over MEMSAD's settings, says otherwise.
    """
    policy = policies.parse(policies.shipped(PROFILE)).default
    paper = {"kappa": PAPER_KAPPA} if strategy == "fixed" else {}
    changes: dict[str, Any] = {
        "writes_per_day": dict.fromkeys(("user_verified", "user_observed")),
        "quarantine": {"per_principal_max": 100_000},
        "memsad": {"calibration": {"strategy": strategy}, **paper, **memsad},
    }
    return policies.laid_over(policy, changes)


def rolling_held(setting: Setting) -> Measured:
    """Share of the honest writes of users and agents that are held after a change of topic, 0 to 1; KEPT beside it."""
    with streams(setting) as paths, tempfile.TemporaryDirectory(prefix="memsluice-turned-") as folder:
        plain = {path.stem: [orjson.loads(line) for line in path.read_bytes().splitlines()] for path in paths}
        turned = other_topic(plain, 7)
        written = _written(turned, Path(folder))
        encoder = MemoEncoder(load_encoder())
        fixed, alone = _held_by_fixed(written, encoder, setting), _kept_without(paths, encoder)
        with bed(setting, policy=in_force().model_dump(mode="json")) as running:
            sent = through(running, [*written, *paths])
            ledger = read(running)
            running.stop(*running.workers)
    decided = {
        name: ledger.verdicts[place].decision.value for name, place in sent.places.items() if place in ledger.verdicts
    }
    counts = Counter[tuple[str, bool]]()
    for name, lines in turned.items():
        for line in lines:
            if line["kind"] == "write" and line["source"] in PEOPLE:
                tenant = tenant_of(f"turned-{name}")
                counts[line["phase"], decided[tenant, event_id(tenant, line["seq"], "a")] in HELD] += 1
    attacks = Counter[bool]()
    for lines in plain.values():
        for line in lines:
            if line["label"] == "attack":
                tenant = tenant_of(line["tenant"])
                attacks[decided[tenant, event_id(tenant, line["seq"], "a")] != "accept"] += 1
    after = [sum(counts[phase, held] for phase in AFTER) for held in (True, False)]
    rows = [(f"honest writes held, {phase}", _told(counts[phase, True], counts[phase, False])) for phase in PHASES]
    rows += [
        (f"honest writes held after the change, in all, κ = {in_force().memsad.kappa:g}", _told(*after)),
        *fixed,
        (
            "KEPT: attacks of the streams as they come that are kept out of guidance",
            _told(attacks[True], attacks[False]),
        ),
        ("… by provenance alone, MEMSAD disabled, in one process", alone),
    ]
    return Measured(after[0] / sum(after), tuple(rows), (_NOTE,))


PHASES = ("before", "first 100 after", "later")
"""Parts of a stream whose topic changes."""
AFTER = PHASES[1:]
_NOTE = (
    "Two conversations after each other as one tenant, honest writes alone, without daily write limits; what tools and "
    "pages write is contained, and not counted. The paper's own calibration is `fixed` with κ = 2. KEPT is that of all "
    "nine streams with their attacks, by provenance and MEMSAD together; provenance alone, in one process, beside it."
)


def _told(some: int, others: int) -> str:
    return f"{some:,} of {some + others:,}, {100 * some / max(some + others, 1):.2f} %"


def _written(turned: Mapping[str, Sequence[Line]], folder: Path) -> list[Path]:
    """Write streams as files, each of a tenant of its own."""
    paths = []
    for name, lines in turned.items():
        path = folder / f"turned-{name}.jsonl"
        path.write_bytes(b"".join(orjson.dumps({**line, "tenant": path.stem}) + b"\n" for line in lines))
        paths.append(path)
    return paths


def _held_by_fixed(paths: Sequence[Path], encoder: MemoEncoder, setting: Setting) -> list[tuple[str, str]]:
    """Return what the paper's own calibration holds after the change: by its κ, and by that of the profile."""
    rows = []
    for policy in (in_force("fixed"), in_force("fixed", kappa=in_force().memsad.kappa)):
        held = Counter(
            decision in HELD
            for line, decision in _decided(paths, policy, encoder)
            if line["source"] in PEOPLE and line["phase"] in AFTER
        )
        name = f"… by the strategy `fixed`, κ = {policy.memsad.kappa:g}, in one process"
        rows.append((name, _told(held[True], held[False])))
        setting.say(": ".join(rows[-1]))
    return rows


def _kept_without(paths: Sequence[Path], encoder: MemoEncoder) -> str:
    """Return what provenance keeps of the attacks by itself."""
    kept = Counter(
        decision != "accept"
        for line, decision in _decided(paths, in_force(enabled=False), encoder)
        if line["label"] == "attack"
    )
    return _told(kept[True], kept[False])


def _decided(paths: Sequence[Path], policy: Policy, encoder: MemoEncoder) -> Iterator[tuple[Line, str]]:
    """Yield each write of some streams and what a policy decides of it, in one process."""
    for path in paths:
        told = decide(events_of(read_stream(path)), name=path.stem, encoder=encoder, chosen=PolicySet(policy, {}))
        by_seq = {line["seq"]: line["decision"] for line in told}
        for line in map(orjson.loads, path.read_bytes().splitlines()):
            if line["kind"] == "write":
                yield line, by_seq[line["seq"]]
