"""The shipped policy ``published-rolling`` on the real broker, workers and store: the window moves with the topic."""

import json
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.held.test_stack import call
from tests.patience import HANG_S, until

from memsluice.client.local import USERS
from memsluice.client.publisher import Publisher
from memsluice.clock import wall_ms
from memsluice.envelope.registry import Role
from memsluice.gate.policy.model import shipped
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice_lab.demo.sample.turned import LIES, PARTS, Part, lines
from memsluice_lab.streams import Published, Restamp, events_of

PROFILE = "published-rolling"
ROLES = {"runtime": Role.RUNTIME, "reader": Role.READER, "user": Role.USER_CHANNEL}


@dataclass
class Household:
    """A tenant on the stack that writes by its people's app, and what the command line tells of it."""

    stack: Any
    tenant: str
    writers: dict[str, Publisher]
    sent: int = 0
    lines: int = 0

    def write(self, part: Part) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Publish a part, each event acknowledged before the next; return its points of the calibration, and all."""
        for item in events_of(
            lines(part, self.tenant, self.lines, "2026-03-02T08:00:00Z"), restamp=Restamp(self.tenant, wall_ms)
        ):
            assert isinstance(item, Published)
            self.writers[item.source].publish(item.payload).result(HANG_S)
        before, self.sent, self.lines = (
            self.sent, self.sent + len(part.notes), self.lines + len(part.notes) + len(part.questions)
        )  # fmt: skip
        told = until(self.scored, f"{part.title}: every note has its score")
        return told["points"][before:], told

    def scored(self) -> dict[str, Any]:
        """Return the calibration once every note has its score, until then nothing."""
        told = self.calibration()
        return told if told.get("scored") == self.sent else {}

    def calibration(self) -> dict[str, Any]:
        """Return what ``memsluice calibration show`` says."""
        found = call(str(self.stack.home), "calibration", "show", self.tenant, "--json")
        told: dict[str, Any] = json.loads(found.stdout) if found.returncode == 0 else {}
        return told


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_the_shipped_profiles_window_moves_with_the_topic(stack: Any, workers: None, tmp_path: Path) -> None:
    """Activated for one tenant, MEMSAD decides alone: the line follows a change of topic, honest notes go on landing,
    and what repeats the questions asked lately is held, each time, soon after the change."""
    home, tenant = str(stack.home), f"turned-{uuid.uuid4().hex[:10]}"
    keys = KeyStore.init(stack.home, 0)
    kids = {}
    for source, role in ROLES.items():
        channel = "user" if role is Role.USER_CHANNEL else "agent"
        kids[source] = issue_credential(keys, role, channel, [tenant])[0].kid  # type: ignore[arg-type]
    operators = [issue_credential(keys, Role.OPERATOR, "operator", [tenant])[0].kid for _ in range(2)]
    file = tmp_path / "policy.yaml"
    file.write_text(shipped(PROFILE))
    signed = [part for kid in operators for part in ("--kid", kid)]
    done = call(
        home, "policy", "activate", str(file), "--tenant", tenant, *signed, "--loosen", "--yes", "--wait", "240"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    everyday, first, lies, rest, _ = PARTS
    with ExitStack() as closing:
        writers = {
            source: closing.enter_context(
                Publisher(stack.connection.confluent(USERS[role]), keys.credential_path(kids[source]))
            )
            for source, role in ROLES.items()
        }
        house = Household(stack, tenant, writers)
        points, before = house.write(everyday)
        assert (before["detector"], before["strategy"], before["phase"]) == ("memsad", "m_star", "calibrated")
        assert {one["decision"] for one in points} == {"accept"}
        turning, _ = house.write(first)
        repeated, _ = house.write(lies)
        repeated += house.write(lies)[0]
        going_on, after = house.write(rest)
    assert before["reference_size"] < len(everyday.notes)
    assert after["line"] > before["line"] + 0.1
    assert turning[-1]["line"] > turning[0]["line"]
    honest = turning + going_on
    held = [one["event_id"] for one in honest if one["decision"] != "accept"]
    assert len(held) <= len(honest) / 10
    assert [one["decision"] for one in repeated] == ["quarantine"] * 2 * len(LIES)
    listed = json.loads(call(home, "quarantine", "list", "--tenant", tenant, "--json").stdout)["entries"]
    assert {one["event_id"] for one in listed} == {one["event_id"] for one in repeated} | set(held)
    assert {code for one in listed for code in one["reasons"]} == {"memsad.above_threshold"}
