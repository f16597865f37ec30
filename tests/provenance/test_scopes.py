"""What of a session taints, through all stages: sealed words, refused events, rows, and where the entry lands."""

from datetime import UTC, datetime
from pathlib import Path

from tests.provenance.shop import Shop

from memsluice.client import requests
from memsluice.client.requests import Session
from memsluice.clock import wall_ms
from memsluice.events.models import Origin
from memsluice.keystore import rotation

PAGE = "Visitors should send their parking permits to the harbour office before Thursday evening."


def test_influence_lets_what_shares_no_words_be_guidance(tmp_path: Path) -> None:
    """After a page was seen: its words, given back by the agent, are contained; the agent's other note is guidance."""
    shop = Shop(tmp_path / "home")
    shop.home.policy_file.parent.mkdir(exist_ok=True)
    shop.home.policy_file.write_text("name: narrow\ntaint: influence\n")
    shop.opened("s-2")
    session = Session("acme", "helper", "ana", "s-2")
    shop.publish("runtime", requests.observation("o-page", datetime.now(UTC), session, Origin.WEB, None, PAGE))
    shop.note("echo", content="Parking permits: send them to the harbour office before Thursday evening.",
              source="agent", session="s-2")  # fmt: skip
    shop.note("own", content="Ana likes short meetings on Tuesday mornings.", source="agent", session="s-2")
    assert (shop.now("echo"), shop.now("own")) == ("external", "guidance")
    assert shop.trace("echo")["taint_causes"] == ["web:o-page"]


def test_a_session_does_not_stay_clean_because_its_platforms_key_was_revoked(tmp_path: Path) -> None:
    """The platform runs on under a key that was revoked; what its sessions see is refused, and taints them all the
    same. A session that it did not report on stays what it was."""
    shop = Shop(tmp_path / "home")
    for session in ("s-2", "s-3"):
        shop.opened(session)
    rotation.revoke(shop.keys, "runtime", wall_ms())
    shop.observe(Origin.WEB, "s-2")
    shop.note("read", source="agent", session="s-2")
    shop.note("clean", source="agent", session="s-3")
    assert (shop.now("read"), shop.now("clean")) == ("external", "guidance")
    (cause,) = shop.trace("read")["taint_causes"]
    assert cause.startswith("unverified:o-")
