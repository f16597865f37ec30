"""The table of attacks on facts as a graph, on one town and in a few sizes."""

import pytest
from tests.encoders import minilm

from memsluice_lab.attacks import graphs


def test_a_town_is_founded_and_attacked_in_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Honest facts are told of by every rule; large attacks are found, small ones and one person's word are not."""
    monkeypatch.setattr(graphs, "TRIES", 1)
    monkeypatch.setattr(graphs, "PEOPLE", graphs.PEOPLE[:14])
    monkeypatch.setattr(
        graphs,
        "ATTACKS",
        {
            "contradicts {}": (graphs.contradicted, (1, 2)),
            "reworded {}": (graphs.reworded, (2,)),
            "hub {}": (graphs.hub, (3, 13)),
            "hijack {}": (graphs.hijack, (2, 7)),
            "cluster {}": (graphs.cluster, (4, 12)),
        },
    )
    rows = dict[str, list[bool]]()
    graphs.play(1, minilm(), rows)
    honest = {name: some for name, some in rows.items() if name.startswith("right")}
    assert sorted(honest) == sorted(f"right facts: {rule}" for rule in graphs.RULES)
    assert sum(honest["right facts: claims.corroborated"]) > 0
    assert {name: sum(some) for name, some in rows.items() if "facts:" not in name} == {
        "contradicts 1": 0, "contradicts 2": 1, "reworded 2": 0, "hub 3": 0, "hub 13": 1, "hijack 2": 0, "hijack 7": 1,
        "cluster 4": 0, "cluster 12": 1,
    }  # fmt: skip
