"""The figure of warm tenants: what it counts, and what it says of its texts."""

import pytest

from memsluice.envelope.verdict import Decision
from memsluice.gate.policy.model import default
from memsluice_lab.figures import warm
from memsluice_lab.figures.hard_negatives import Tenant
from memsluice_lab.figures.registry import FIGURES, Setting


def test_an_injection_that_a_warm_tenant_lets_in_counts_once_and_the_note_says_whose_texts_these_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Held cold, and not held in two of the warm tenants: one. The models were fitted on these texts, so nobody reads
    the figure as what becomes of unknown ones."""
    tenants = [(landed, Tenant.new(default().default)) for landed in (0, 29, 30)]
    held = [{0, 1, 2}, {0, 2, 3}, {0, 2}]
    at = [(hostile, place) for place in held for hostile in range(4)]
    decided = iter([Decision.QUARANTINE if hostile in place else Decision.ACCEPT for hostile, place in at])
    for name, value in {
        "HONEST": 0,
        "INJECTIONS": 4,
        "_filled": lambda label, count: ["text"] * count,
        "load_encoder": lambda: None,
        "sealed": lambda lines, encoder: [],
        "_warm": lambda honest, policy: tenants,
        "_decided": lambda tenant, events, policy: next(decided),
    }.items():
        monkeypatch.setattr(warm, name, value)
    found = warm.warm_releases(Setting(None, lambda told: None))
    assert found.value == 1
    assert [row for _, row in found.rows][1:] == [
        "3 of 4 held, 1 of those held cold are not, 1 others are",
        "2 of 4 held, 1 of those held cold are not, 0 others are",
    ]
    assert found.notes[0].startswith("Development figure: ")


@pytest.mark.parametrize("name", ["hard_negative_rate", "warm_releases"])
def test_a_figure_of_texts_that_the_models_know_is_called_so(name: str) -> None:
    """Whoever reads the page or the list is told that it is a development figure."""
    assert "Development figure: " in FIGURES[name].meaning
