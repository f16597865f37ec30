"""What taint costs honest people: their writes, and their agents', that lose their place in guidance by it alone."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from memsluice.encoder import Encoder, load_encoder
from memsluice.errors import ConfigError
from memsluice.gate.policy import model as policies
from memsluice.gate.policy.model import Policy, PolicySet
from memsluice_lab.demo.caching_encoder import MemoEncoder
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.run import decide
from memsluice_lab.streams import events_of, read_stream

CONVERSATIONS = "conversation-"
SCOPES = ("session", "turn", "influence", "parents")
HONEST = ("user", "agent")
DECLARED = ("parent", "unknown", "not_landed")
"""What begins a cause that comes from a write's own parents."""
Counts = Counter[tuple[str, str]]


def overtaint_rate(setting: Setting) -> Measured:
    """Percent of the honest writes in the conversation streams that taint keeps out of guidance, by default.

    The rows tell what their session did from what they declare, and say the same of every other scope.
    """
    encoder = MemoEncoder(load_encoder())
    with streams(setting) as paths:
        chosen = [path for path in paths if path.stem.startswith(CONVERSATIONS)]
        if not chosen:
            raise ConfigError(f"there is no stream whose name begins with {CONVERSATIONS}")
        by_scope = {name: _over(chosen, setting, encoder, policy) for name, policy in scopes().items()}
    rows = [row for name, counts in by_scope.items() for row in _rows(name, counts)]
    default = by_scope[policies.default().default.taint]
    return Measured(100 * _share(default, "session", "declared"), tuple(rows), (_NOTE,))


_NOTE = (
    "The first scope is the default, and the figure is all that it taints of what honest users and their agents wrote, "
    "whatever the reason. Tainted by their session alone are writes of which nothing says that they were made of "
    "something from outside; honest writers of these streams tell the truth. What declares outside content, or a "
    "parent that is held, is counted apart."
)


def _share(counts: Counts, *reasons: str) -> float:
    return sum(counts[who, reason] for who in HONEST for reason in reasons) / sum(counts[who, "all"] for who in HONEST)


def _rows(name: str, counts: Counts) -> list[tuple[str, str]]:
    def told(*reasons: str) -> str:
        number = sum(counts[who, reason] for who in HONEST for reason in reasons)
        return f"{number:,} of {sum(counts[who, 'all'] for who in HONEST):,}, {100 * _share(counts, *reasons):.2f} %"

    kept = counts["attack", "all"] - counts["attack", "accept"]
    return [
        (f"{name}: tainted by their session alone", told("session")),
        (f"{name}: … of these users' own words", f"{counts['user', 'session']}"),
        (f"{name}: tainted by a parent that they declare", told("declared")),
        (f"{name}: tainted in all", told("session", "declared")),
        (f"{name}: direct and laundered attacks kept out", f"{kept} of {counts['attack', 'all']}"),
    ]


def scopes() -> Mapping[str, Policy]:
    """Return the policies compared: how far back what a session saw taints what its agent writes."""
    default = policies.default().default
    order = (default.taint, *(scope for scope in SCOPES if scope != default.taint))
    return {scope: default.model_copy(update={"taint": scope}) for scope in order}


def _over(paths: list[Path], setting: Setting, encoder: Encoder, policy: Policy) -> Counts:
    counts: Counts = Counter()
    for path in paths:
        lines = decide(events_of(read_stream(path)), name=path.stem, encoder=encoder, chosen=PolicySet(policy, {}))
        _count(counts, path, {line["seq"]: line for line in lines})
        setting.say(f"{path.stem}: {sum(counts[source, 'session'] for source in HONEST)} over-tainted so far")
    return counts


def _count(counts: Counts, path: Path, verdicts: Mapping[int, Any]) -> None:
    """Count a stream's writes; what is honest and what is not, only this function sees."""
    for event in map(orjson.loads, path.read_bytes().splitlines()):
        if event["kind"] != "write":
            continue
        told = verdicts[event["seq"]]
        if event["label"] == "benign" and event["source"] in HONEST:
            counts[event["source"], "all"] += 1
            if told["taint"]:
                declared = any(cause.split(":")[0] in DECLARED for cause in told["causes"])
                counts[event["source"], "declared" if declared else "session"] += 1
        elif event["channel"] in ("direct", "laundered"):
            counts["attack", "all"] += 1
            counts["attack", "accept"] += told["decision"] == "accept"
