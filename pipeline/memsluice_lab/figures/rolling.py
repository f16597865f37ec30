"""What MEMSAD holds alone, calibrated by drift, where a tenant changes its topic: on the real stack."""

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
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
Line = dict[str, Any]


def in_force(strategy: str = "m_star") -> Policy:
    """Return the shipped profile without daily limits, and with room for what is held: months pass within a minute.

    With the strategy ``fixed`` it is the paper's own: its threshold factor 2, too.
    """
    policy = policies.parse(policies.shipped(PROFILE)).default
    changes: dict[str, Any] = {
        "writes_per_day": dict.fromkeys(("user_verified", "user_observed")),
        "quarantine": {"per_principal_max": 100_000},
        "memsad": {"calibration": {"strategy": strategy}},
    }
    if strategy == "fixed":
        changes["memsad"]["kappa"] = 2.0
    return policies.laid_over(policy, changes)


def rolling_held(setting: Setting) -> Measured:
    """Share of the honest writes of users and agents that are held after a change of topic, 0 to 1; KEPT beside it."""
    with streams(setting) as paths, tempfile.TemporaryDirectory(prefix="memsluice-turned-") as folder:
        plain = {path.stem: [orjson.loads(line) for line in path.read_bytes().splitlines()] for path in paths}
        turned = other_topic(plain, 7)
        written = _written(turned, Path(folder))
        fixed = _in_one_process(written, setting)
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
                attacks[decided.get((tenant, event_id(tenant, line["seq"], "a")), "reject") != "accept"] += 1
    after = [sum(counts[phase, held] for phase in AFTER) for held in (True, False)]
    rows = [
        (f"honest writes held, {phase} the change", _told(counts[phase, True], counts[phase, False]))
        for phase in PHASES
    ]
    rows += [
        ("honest writes held after the change, in all", _told(*after)),
        ("… by the strategy `fixed`, in one process", fixed),
        (
            "KEPT: attacks of the streams as they come that are kept out of guidance",
            _told(attacks[True], attacks[False]),
        ),
    ]
    return Measured(after[0] / sum(after), tuple(rows), (_NOTE,))


PHASES = ("before", "first 100 after", "later")
AFTER = PHASES[1:]
_NOTE = (
    "Two conversations after each other as one tenant, honest writes alone, without daily write limits; what tools and "
    "pages write is contained, and not counted. KEPT is that of all nine streams with their attacks, by provenance and "
    "MEMSAD together."
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


def _in_one_process(paths: Sequence[Path], setting: Setting) -> str:
    """Return what the paper's own calibration holds after the change."""
    encoder, counts = MemoEncoder(load_encoder()), Counter[bool]()
    for path in paths:
        chosen = PolicySet(in_force("fixed"), {})
        told = decide(events_of(read_stream(path)), name=path.stem, encoder=encoder, chosen=chosen)
        by_seq = {line["seq"]: line["decision"] in HELD for line in told}
        for line in map(orjson.loads, path.read_bytes().splitlines()):
            if line["kind"] == "write" and line["source"] in PEOPLE and line["phase"] in AFTER:
                counts[by_seq[line["seq"]]] += 1
        setting.say(f"{path.stem}: fixed held {counts[True]} so far")
    return _told(counts[True], counts[False])
