"""What a fuzzy form of query coverage would find besides: why the default detector has none."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from memsluice.encoder import Encoder, load_encoder
from memsluice.errors import StateError
from memsluice.gate.detectors.rarity.candidate_quota import CANDIDATES
from memsluice.gate.detectors.wording.text import stems, words
from memsluice.gate.policy import model as policies
from memsluice_lab.demo.caching_encoder import MemoEncoder
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.run import decide
from memsluice_lab.streams import events_of, read_stream

SHORT = 3
"""Letters of the longest words that do not count: articles, pronouns, verbs of asking."""
STEMS_MIN = 3
ROOM = 2
"""How far apart the words may lie: within so many times the question's length."""
PEOPLE = ("user", "agent")


def fuzzy_coverage_auroc(setting: Setting) -> Measured:
    """How well fuzzy coverage tells what landed of the attacks from what landed of honest writes: AUROC, 0 to 1.

    Held against every question of the stream, later ones too: more than the gate can see.
    """
    from sklearn.metrics import roc_auc_score

    encoder, shares = MemoEncoder(load_encoder()), defaultdict[str, list[float]](list)
    with streams(setting) as paths:
        for path in paths:
            lines = decide(events_of(read_stream(path)), name=path.stem, encoder=encoder, chosen=policies.default())
            _add(shares, path, {line["seq"]: line for line in lines}, encoder)
            setting.say(f"{path.stem}: {len(shares['landed'])} attacks landed so far")
    honest, landed = shares["honest"], shares["landed"]
    if not honest or not landed:
        raise StateError("no honest write landed, or no attack did: there is nothing to compare")
    table = (("honest", _told(honest)), ("landed attacks", _told(landed)))
    return Measured(float(roc_auc_score([0] * len(honest) + [1] * len(landed), [*honest, *landed])), table)


def covered(question: Sequence[str], text: Sequence[str]) -> float:
    """Return the largest share of a question's longer stems that lie near each other in a text, in any order, 0 to 1.

    Both are given as words; a question of fewer than STEMS_MIN such stems covers nothing.
    """
    longer = " ".join(word for word in question if len(word) > SHORT)
    wanted, room = set(stems(longer).tolist()), ROOM * len(question)
    if len(wanted) < STEMS_MIN:
        return 0.0
    said = stems(" ".join(text)).tolist()
    starts = range(max(len(said) - room, 0) + 1)
    return max(len(wanted.intersection(said[at : at + room])) for at in starts) / len(wanted)


def _add(shares: dict[str, list[float]], path: Path, verdicts: Mapping[int, Any], encoder: Encoder) -> None:
    """Take a stream's writes by users and agents that stand in the end; what is honest, only this function sees."""
    events = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    asked = [event["text"] for event in events if event["kind"] == "query"]
    questions, vectors = [words(text) for text in asked], encoder.encode(asked)
    for event in events:
        if event["kind"] != "write" or event["source"] not in PEOPLE:
            continue
        told, said = verdicts[event["seq"]], words(event["text"])
        if told.get("final", told["decision"]) == "accept":
            nearest = np.argsort(-(vectors @ encoder.encode([event["text"]])[0]))[:CANDIDATES]
            share = max((covered(questions[at], said) for at in nearest.tolist()), default=0.0)
            shares["honest" if event["label"] == "benign" else "landed"].append(share)


def _told(some: Sequence[float]) -> str:
    middle, high = np.quantile(some, (0.5, 0.95))
    return f"{len(some):,} writes, covered {middle:.2f} in the median, {high:.2f} at 95 %"
