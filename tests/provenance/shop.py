"""A home with an embedded log and what a shop wrote into it: clean, contained, descended, read by sessions."""

from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.held.desk import PEOPLE, Office
from typer.testing import CliRunner, Result

from memsluice.cli.main import PARTS
from memsluice.client import requests
from memsluice.client.requests import Session
from memsluice.clock import wall_ms
from memsluice.envelope.registry import Role
from memsluice.events.models import Origin, Returned, Zone
from memsluice.keystore.store import issue_credential
from memsluice.operations.trace.collect import trace
from memsluice.operations.trace.life import Life
from memsluice.readers.local import LocalTopic

WEB, READER, SECOND = "web", "reader", "reviewer-2"


class Shop(Office):
    """Writes get short ids; ``run`` runs the whole command line on this home."""

    def __init__(self, path: Path, tenants: tuple[str, ...] = ("acme", "globex")) -> None:
        super().__init__(path, tenants)
        issue_credential(self.keys, Role.PRODUCER, "web", tenants, kid=WEB)
        issue_credential(self.keys, Role.READER, "agent", tenants, kid=READER)
        issue_credential(self.keys, Role.REVIEWER, "operator", tenants, kid=SECOND)

    def note(self, event_id: str, content: str = "The door code changes on Monday.", **options: Any) -> str:
        """Publish a user's write of this id, and return the id."""
        return self.write(f"{content} ({event_id})", event_id=event_id, **options)

    def recalled(self, session: str, *event_ids: str, zone: Zone = Zone.GUIDANCE) -> None:
        """Publish that a session was given entries, in the versions that they have in the audit."""
        told = [self.trace(event_id) for event_id in event_ids]
        returned = [
            Returned(object_id=one["object_id"], version=one["sealed_offset"], event_id=name, tier=one["tier"],
                     taint=one["taint"])
            for one, name in zip(told, event_ids, strict=True)
        ]  # fmt: skip
        self._count += 1
        people = Session("acme", **{**PEOPLE, "session": session})  # type: ignore[arg-type]
        asked = requests.recall(f"r-{self._count}", datetime.now(UTC), people, "Which code?", returned, zone=zone)
        self.publish(READER, asked)

    def opened(self, session: str) -> None:
        """Have the platform open a session."""
        self.observe(Origin.OPEN, session)

    def trace(self, event_id: str) -> Any:
        """Return the verdict that placed an entry."""
        return self._life(event_id).placing.verdict.to_json()

    def now(self, event_id: str) -> str:
        """Return where an entry is."""
        return self._life(event_id).standing(wall_ms()).value

    def _life(self, event_id: str) -> Life:
        log = self.assembly.local_log()
        (life,) = trace(LocalTopic(log, name="log"), self.keys.keyring(), event_id, "acme", 8).lives
        log.close()
        return life

    def command(self, *arguments: str, input: str = "") -> Result:
        """Run ``memsluice`` on this home."""
        variables = {"COLUMNS": "160", "NO_COLOR": "1"}
        app = import_module(PARTS[arguments[0]][0]).app
        return CliRunner().invoke(app, [*arguments[1:], "--home", str(self.home.path)], input=input, env=variables)
