"""What taint costs honest people: their writes, and their agents', that lose their place in guidance by it alone."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from memsluice.encoder import Encoder, load_encoder
from memsluice.errors import ConfigError
from memsluice.gate import policy as policies
from memsluice.gate.policy import Policy, PolicySet
from memsluice.lab.figures.records import streams
from memsluice.lab.figures.registry import Measured, Setting
from memsluice.lab.run import decide
from memsluice.lab.streams import events_of, read_stream

CONVERSATIONS = "conversation-"
HONEST = ("user", "agent")


def overtaint_rate(setting: Setting) -> Measured:
    """Percent of the honest writes of users and agents in the conversation streams that are tainted, by default."""
    encoder = load_encoder()
    with streams(setting) as paths:
        chosen = [path for path in paths if path.stem.startswith(CONVERSATIONS)]
        if not chosen:
            raise ConfigError(f"there is no stream whose name begins with {CONVERSATIONS}")
        by_scope = {name: _over(chosen, setting, encoder, policy) for name, policy in scopes().items()}
    rows = []
    for name, counts in by_scope.items():
        writes = sum(counts[source, "all"] for source in HONEST)
        tainted = sum(counts[source, "tainted"] for source in HONEST)
        rows.append((f"{name}", f"{tainted:,} of {writes:,} honest writes, {100 * tainted / writes:.2f} %"))
        rows += [
            (f"{name}: {source}s'", f"{counts[source, 'tainted']:,} of {counts[source, 'all']:,}") for source in HONEST
        ]
        kept = counts["attack", "all"] - counts["attack", "accept"]
        rows.append((f"{name}: direct and laundered attacks kept out", f"{kept} of {counts['attack', 'all']}"))
    default = next(iter(by_scope.values()))
    value = sum(default[source, "tainted"] for source in HONEST) / sum(default[source, "all"] for source in HONEST)
    return Measured(100 * value, tuple(rows), (_NOTE,))


_NOTE = "Counted is every honest write whose label is tainted, whatever else was found. The first scope is the default."


def scopes() -> Mapping[str, Policy]:
    """Return the policies compared: how far back what a session saw taints what its agent writes."""
    return {"session": policies.default().default}


def _over(paths: list[Path], setting: Setting, encoder: Encoder, policy: Policy) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for path in paths:
        lines = decide(events_of(read_stream(path)), name=path.stem, encoder=encoder, chosen=PolicySet(policy, {}))
        _count(counts, path, {line["seq"]: line for line in lines})
        setting.say(f"{path.stem}: {sum(counts[source, 'tainted'] for source in HONEST)} tainted so far")
    return counts


def _count(counts: Counter[tuple[str, str]], path: Path, verdicts: Mapping[int, Any]) -> None:
    """Count a stream's writes; what is honest and what is not, only this function sees."""
    for event in map(orjson.loads, path.read_bytes().splitlines()):
        if event["kind"] != "write":
            continue
        verdict = verdicts[event["seq"]]
        if event["label"] == "benign" and event["source"] in HONEST:
            counts[event["source"], "all"] += 1
            counts[event["source"], "tainted"] += verdict["taint"]
        elif event["channel"] in ("direct", "laundered"):
            counts["attack", "all"] += 1
            counts["attack", "accept"] += verdict["decision"] == "accept"
