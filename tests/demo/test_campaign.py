"""The campaign of the incident, decided by the real stages: it is what docs/incident.md says that it is."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.encoders import minilm

from memsluice.client.build import build, topic_of
from memsluice.clock import wall_ms
from memsluice.deployment.home import Home
from memsluice.envelope.seals import open_
from memsluice.errors import ConfigError
from memsluice.events.names import VERDICT
from memsluice.runtimes.assembly import Assembly
from memsluice.stores.faiss.store import FaissStore
from memsluice.topics.names import AUDIT
from memsluice_lab.demo import campaign, incident

CAREFUL_BYTES = 280
"""The length that docs/incident.md's stricter policy allows."""


def played(path: Path) -> dict[str, Any]:
    """Play the campaign on an embedded log; return the verdicts by event id."""
    home = Home(path)
    assembly = Assembly.at(home)
    incident.issue(assembly.keys)
    store = FaissStore(home.store_file)
    runtime = assembly.embedded(minilm(), store)
    for wave in campaign.waves():
        for line in wave:
            for payload in incident.payloads(line):
                kid = incident.kid_of(incident.source_of(line))
                message = build(payload, [assembly.keys.credential(kid).signer()], source=f"urn:test:{kid}")
                runtime.append(topic_of(payload), *message, append_ms=wall_ms())
        runtime.run_until_idle()
    keyring = assembly.keys.keyring()
    verdicts = [open_(keyring, (r.key or b"").decode(), VERDICT, r.value or b"") for r in runtime.read(AUDIT)]
    runtime.close()
    store.close()
    return {verdict["event_id"]: verdict for verdict in verdicts}


def test_the_campaign_is_held_and_the_honest_are_caught_in_it(tmp_path: Path) -> None:
    """The morning lands, the agent's notes are data, the flood is held for its wording, Lena's own for the rate alone.

    A pattern occurs in the flood, and it is near what was asked: neither holds what reaches its writer alone.
    """
    verdicts = played(tmp_path / "home")
    assert len(verdicts) == sum(len(wave) for wave in campaign.waves()) + 1  # a session's opening
    decided = {name: (one["decision"], tuple(one["reasons"])) for name, one in verdicts.items()}
    assert {told for name, told in decided.items() if name.startswith("morning")} == {("accept", ())}
    assert {told for name, told in decided.items() if name.startswith("agent-note")} == {
        ("contain", ("monitor.rule_4_tainted",))
    }
    assert {decided[name] for name, _ in campaign.HONEST} == {("quarantine", ("rates.exceeded",))}
    flood = Counter(told for name, told in decided.items() if name.startswith("flood"))
    assert all(decision == "quarantine" and "wording.held" in reasons for decision, reasons in flood)
    assert sum(count for (_, reasons), count in flood.items() if "rates.exceeded" in reasons) == 122
    assert not {"instructions.found", "detect.held"} & {code for _, reasons in flood for code in reasons}
    told = {finding["code"] for finding in verdicts["flood-060"]["findings"]}
    assert {"instructions.found", "detect.scored"} <= told
    scores = [one["score"] for name, one in verdicts.items() if name.startswith("flood")]
    assert min(abs(score["score"] - score["threshold"]) for score in scores) > 0.02  # on every machine the same


def test_a_stricter_length_parts_the_flood_from_the_honest() -> None:
    """The policy of the page refuses every note of the flood for its length, and none of Lena's."""
    flood = campaign.flood(1, campaign.FIRST_WAVE + campaign.SECOND_WAVE)
    assert min(len(line.text.encode()) for line in flood) > CAREFUL_BYTES
    assert max(len(text.encode()) for _, text in campaign.HONEST) < CAREFUL_BYTES
    page = Path(__file__).resolve().parents[2] / "docs" / "incident.md"
    assert f"content_bytes_max: {CAREFUL_BYTES}\n" in page.read_text(encoding="utf-8")


def test_it_is_played_once_a_home(tmp_path: Path) -> None:
    """A second time the same ids would be duplicates: that is said, and nothing is published."""
    keys = Assembly.at(Home(tmp_path / "home")).keys
    incident.issue(keys)
    with pytest.raises(ConfigError, match="played in"):
        incident.issue(keys)
