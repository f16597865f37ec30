"""A home with an embedded log that is filled for a console to show: writes, dead letters, commands, activations."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from memsluice.client import requests
from memsluice.client.build import Message, build, topic_of
from memsluice.client.requests import Session
from memsluice.clock import wall_ms
from memsluice.deployment.home import Home
from memsluice.encoder import Encoder
from memsluice.envelope.registry import Role
from memsluice.events.models import AnyPayload, Command
from memsluice.events.names import EVERYBODY
from memsluice.gate.policy.model import shipped
from memsluice.keystore.store import issue_credential
from memsluice.operations.commands.signing import COMMAND_VALID, Signed, sign
from memsluice.operations.policies.commands import activation
from memsluice.runtimes.assembly import Assembly
from memsluice.topics.names import EVENTS

POLICY: dict[str, Any] = {
    "name": "desk",
    "writes_per_day": {"user_observed": 1},
    "quarantine": {"per_principal_max": 100_000},
}
"""Holds, besides what the default holds, all but the first write of each person, for its rate."""
SOURCES = {
    "user": (Role.USER_CHANNEL, "user"),
    "agent": (Role.PRODUCER, "agent"),
    "web": (Role.PRODUCER, "web"),
    "runtime": (Role.RUNTIME, "agent"),
    "reviewer": (Role.REVIEWER, "operator"),
    "operator": (Role.OPERATOR, "operator"),
    "operator-two": (Role.OPERATOR, "operator"),
}


def holding() -> str:
    """Return a policy that holds whatever has the form of an instruction, whatever the trained weights make of it: the
    shipped one, with another budget."""
    return re.sub(r"(with_pattern(?:_own)?): [0-9.]+", r"\1: 0.999999", shipped("default"))


@dataclass
class Premises:
    """One home. What is put in waits until :meth:`settle` has the stages decide all of it, in order."""

    home: Home
    encoder: Encoder
    tenants: tuple[str, ...]
    _waiting: list[tuple[str, Message, int | None]] = field(default_factory=list)
    _count: int = 0

    @classmethod
    def make(
        cls, path: Path, encoder: Encoder, tenants: tuple[str, ...], policy: dict[str, Any] | None = None
    ) -> "Premises":
        """Make a home with a policy and with keys of every kind of source."""
        made = cls(Home(path), encoder, tenants)
        made.home.policy_file.parent.mkdir(parents=True, exist_ok=True)
        made.home.policy_file.write_text(yaml.safe_dump(policy or POLICY), encoding="utf-8")
        for kid, (role, channel) in SOURCES.items():
            issue_credential(made.assembly.keys, role, channel, [*tenants], kid=kid)  # type: ignore[arg-type]
        issue_credential(made.assembly.keys, Role.READER, "agent", [EVERYBODY], kid="reader")
        return made

    @cached_property
    def assembly(self) -> Assembly:
        """What the home's parts are made of."""
        return Assembly.at(self.home)

    def name(self) -> str:
        """Return the next event's id."""
        self._count += 1
        return f"w-{self._count:04}"

    def write(self, content: str, who: Session, *, source: str = "user", **options: Any) -> str:
        """Put in a write; return its event id."""
        event_id = str(options.pop("event_id", "")) or self.name()
        self.put(requests.write(event_id, datetime.now(UTC), who, content, options), source)  # type: ignore[arg-type]
        return event_id

    def put(self, payload: AnyPayload, *sources: str) -> None:
        """Put in an event, signed by the keys of these sources."""
        signers = [self.assembly.keys.credential(one).signer() for one in sources]
        self._waiting.append((topic_of(payload), build(payload, signers, source="urn:memsluice:desk"), None))

    def letter(self, key: bytes, value: bytes, headers: tuple[tuple[str, bytes], ...], partition: int) -> None:
        """Put in a record that nobody signed."""
        self._waiting.append((EVENTS, Message(key, value, headers), partition))

    def activate(self, text: str, tenant: str, why: str) -> None:
        """Put in the command of two operators that puts a tenant's policy in force."""
        command = activation(text, tenant, f"c-{self.name()}", datetime.now(UTC), why)
        self.put(command, "operator", "operator-two")

    def proposed(self, text: str, tenant: str, why: str, valid: timedelta = COMMAND_VALID) -> Signed:
        """Return the same, signed by one of the two."""
        command = activation(text, tenant, f"c-{self.name()}", datetime.now(UTC), why, valid)
        return self.signed(command, "operator")

    def signed(self, command: Command, kid: str) -> Signed:
        """Return a command signed by a key of the home."""
        return sign(command, [self.assembly.keys.credential(kid)], wall_ms())

    def settle(self) -> None:
        """Have the stages decide everything that was put in."""
        waiting: Iterable[tuple[str, Message, int | None]]
        waiting, self._waiting = self._waiting, []
        store = self.assembly.local_store()
        runtime = self.assembly.embedded(self.encoder, store)
        for topic, (key, value, headers), partition in waiting:
            runtime.append(topic, key, value, headers, append_ms=wall_ms(), partition=partition)
        runtime.run_until_idle()
        runtime.close()
        store.close()
