"""The table of attacks on facts as a graph, on a small town of our own."""

from pathlib import Path

import orjson
import pytest

from memsluice.encoder import load_encoder
from memsluice_lab.attacks import graphs

PEOPLE = ("ana", "ben", "cleo")


def stream(folder: Path) -> Path:
    """Write a stream of sixty facts about twelve houses, and of lines that are none."""
    facts = [
        {"text": f"House{number % 12} has {thing} number {number}.", "principal": PEOPLE[number % 3]}
        for number, thing in enumerate(("a door", "a window", "a roof", "a garden", "a cellar") * 12)
    ]
    fixed = {"kind": "write", "category": "fact", "label": "benign"}
    lines = [fixed | fact for fact in facts]
    lines += [fixed | {"text": "Short.", "principal": "ana"}, fixed | {"label": "attack", "text": "It has a trap now."}]
    lines.append({"kind": "query", "category": None, "label": "benign", "text": "Which house has a roof?"})
    path = folder / "town.jsonl"
    path.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    return path


def test_a_town_is_attacked_in_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Honest facts are all read and none is flagged; large attacks are found, small ones and one person's word not."""
    monkeypatch.setattr(graphs, "TRIES", 2)
    monkeypatch.setattr(
        graphs,
        "ATTACKS",
        {
            "contradicts {}": (graphs.contradicted, (1,)),
            "hub {}": (graphs.hub, (2, 32)),
            "hijack {}": (graphs.hijack, (1, 16)),
            "cluster {}": (graphs.cluster, (3, 8)),
        },
    )
    path, rows = stream(tmp_path), dict[str, list[bool]]()
    assert len(list(graphs.facts_of(path))) == 60
    graphs._play(path, load_encoder(threads=1), rows)
    assert {name: sum(found) for name, found in rows.items() if name.startswith("honest")} == {
        f"honest facts, {rule}": 0 for rule in graphs.RULES
    }
    assert all(len(found) == 60 for name, found in rows.items() if name.startswith("honest"))
    found = {name: sum(some) for name, some in rows.items() if not name.startswith("honest")}
    assert found == {
        "contradicts 1": 0, "hub 2": 0, "hub 32": 2, "hijack 1": 0, "hijack 16": 2, "cluster 3": 0, "cluster 8": 2,
    }  # fmt: skip
