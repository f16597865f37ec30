"""Plays the campaign of :mod:`memsluice_lab.demo.campaign` on a running stack, against its running workers."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from memsluice.client import requests
from memsluice.client.local import USERS
from memsluice.client.publisher import Publisher
from memsluice.client.requests import Session
from memsluice.clock import wall_ms
from memsluice.deployment.connection import Connection
from memsluice.envelope.registry import Role
from memsluice.errors import ConfigError, StackError
from memsluice.events.headers import EVENT_ID
from memsluice.events.models import AnyPayload, Channel, Origin
from memsluice.events.partition import partition_of
from memsluice.events.records import Record
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice.operations.commands.answers import Bookmark, follow
from memsluice.readers.kafka import KafkaTopic
from memsluice.topics.names import PARTITIONS
from memsluice_lab.demo import campaign
from memsluice_lab.demo.campaign import AGENT, TENANT, By, Line

DECIDED_S_MAX = 300.0
"""A guard against workers that do not run; nothing is measured by it."""
SCRAPED_S = 4.0
"""Between two waves: whoever counts by looking now and then has looked once more."""
ROLES: dict[str, tuple[Role, Channel]] = {
    "agent": (Role.PRODUCER, "agent"),
    "platform": (Role.RUNTIME, "agent"),
    "reader": (Role.READER, "agent"),
}
PEOPLE = (campaign.LENA, campaign.OMAR, campaign.INES)


def play(console: Console, home: Path | None, sleep: Callable[[float], None] = time.sleep) -> None:
    """Play the morning and the campaign, wave by wave, and say what was done.

    Raises ConfigError where the home has played it before, StackError where no worker decides.
    """
    connection, keys = Connection.load(home), KeyStore.init(home, wall_ms())
    issue(keys)
    audit = KafkaTopic.of(connection)
    with ExitStack() as closing:
        closing.callback(audit.close)
        writers = {
            name: closing.enter_context(
                Publisher(connection.confluent(USERS[role]), keys.credential_path(kid_of(name)))
            )
            for name, role in _sources().items()
        }
        told = (
            "an ordinary morning: {n} notes and questions by three people",
            "a page with a note for AI helpers, and {n} notes by the agent that read it",
            "Lena's app begins to write by itself: {n} notes",
            "it goes on, {n} notes, two of them Lena's own",
        )
        for number, (wave, words) in enumerate(zip(campaign.waves(), told, strict=True), 1):
            mark = Bookmark.at(audit, TENANT, PARTITIONS)
            for line in wave:
                for payload in payloads(line):
                    writers[source_of(line)].publish(payload).result(DECIDED_S_MAX)
            _await(audit, mark, {line.event_id for line in wave})
            said = sum(line.by is not By.PLATFORM for line in wave)
            console.print(f"{number}. {words.format(n=said)}", highlight=False)
            sleep(SCRAPED_S)


def kid_of(name: str) -> str:
    """Return the key id of one who says something."""
    return f"harbour.{name}"


def _sources() -> dict[str, Role]:
    return {name: role for name, (role, _) in ROLES.items()} | {f"{one}-app": Role.USER_CHANNEL for one in PEOPLE}


def issue(keys: KeyStore) -> None:
    """Make the clinic's credentials. Raises ConfigError where they are there: the campaign was played."""
    if kid_of("agent") in keys.load_keyring():
        raise ConfigError(f"the campaign against {TENANT} was played in {keys.home} before; take another home")
    for name, (role, channel) in ROLES.items():
        issue_credential(keys, role, channel, [TENANT], kid=kid_of(name), now_ms=wall_ms())
    for one in PEOPLE:
        issue_credential(
            keys, Role.USER_CHANNEL, "user", [TENANT], principals=[one], kid=kid_of(f"{one}-app"), now_ms=wall_ms()
        )


def source_of(line: Line) -> str:
    """Return whose credential signs a line."""
    return f"{line.principal}-app" if line.by is By.APP else line.by.value


def payloads(line: Line) -> list[AnyPayload]:
    """Return a line's event; before what a session saw, that it was opened."""
    now, agent = datetime.now(UTC), line.by in (By.AGENT, By.PLATFORM)
    who = AGENT if agent else "app"
    session = Session(TENANT, who, line.principal, f"{line.principal}-{who}")
    if line.by is By.READER:
        return [requests.recall(line.event_id, now, session, line.text, [])]
    if line.by is By.PLATFORM:
        opened = requests.observation(f"{line.event_id}-open", now, session, Origin.OPEN, None, None)
        return [opened, requests.observation(line.event_id, now, session, Origin.WEB, None, line.text)]
    return [requests.write(line.event_id, now, session, line.text, {})]


def _await(audit: KafkaTopic, mark: Bookmark, ids: set[str]) -> None:
    """Wait until a wave is decided."""
    waiting = {one.encode() for one in ids}

    def take(record: Record) -> None:
        waiting.discard(dict(record.headers).get(EVENT_ID) or b"")

    follow([(audit, [mark], take)], lambda: not waiting, DECIDED_S_MAX, monotonic=time.monotonic, sleep=time.sleep)
    if waiting:
        raise StackError(
            f"{len(waiting)} events of {TENANT} have no verdict (partition {partition_of(TENANT, PARTITIONS)}): does "
            "`memsluice work seal screen land` run?"
        )
