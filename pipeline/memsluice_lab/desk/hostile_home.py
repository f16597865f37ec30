"""A home in which everything that somebody else chose attacks the page that shows it."""

from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path

from memsluice.client import requests
from memsluice.client.requests import Session
from memsluice.console import proposals
from memsluice.encoder import Encoder
from memsluice.events.limits import REASON_CHARS_MAX
from memsluice.events.models import Action, Origin
from memsluice.operations.held.commands import decision
from memsluice.operations.provenance.commands import PROPOSED_VALID
from memsluice.operations.review.index import ReviewIndex
from memsluice.operations.review.query import HeldQuery
from memsluice.topics.names import PARTITIONS
from memsluice_lab.desk.consoles import Desk
from memsluice_lab.desk.homes import Premises
from memsluice_lab.desk.texts import VECTORS, contents, name

TENANTS = ("acme", "globex")
WRITERS = 20
"""People who write; the first write of each lands, and is hostile as well."""
POLICY_FILE = "name: stricter\ncontent_bytes_max: 8000\n"


def filled(path: Path, encoder: Encoder, count: int) -> Premises:
    """Make a home in which so many hostile contents are held, and others landed, are dead letters, and are commands."""
    home = Premises.make(path, encoder, TENANTS)
    some = contents(count)
    people = [name(text) for text in some[:WRITERS]]
    for number, who in enumerate(people):
        home.write(some[-1 - number % count], Session(TENANTS[0], name(some[number]), who, f"s-{number}"))
    for number, text in enumerate(some):
        session = Session(TENANTS[number % 7 == 0], name(text), people[number % WRITERS], name(some[-1 - number]))
        options = {"key": name(text), "origin": name(text)} if number % 3 == 0 else {}
        home.write(text, session, event_id=f"h-{number:04}", **options)
    few = list(islice(cycle(some), max(10, count // 20)))
    for number, text in enumerate(few):
        session = Session(TENANTS[0], name(text), f"web-{number}", f"web-{number}")
        seen = requests.observation(f"o-{number}", datetime.now(UTC), session, Origin.WEB, None, text[:2_000])
        home.put(seen, "runtime")
        home.write(text, session, source="web", event_id=f"web-{number}")
        kind, told = text.encode("utf-8", "replace"), ((name(text)[:30], text.encode("utf-8", "replace")[:4_000]),)
        home.letter(kind[:200], b'{"id":' + kind if number % 2 else kind, told, number % PARTITIONS)
        home.put(requests.appeal(f"a-{number}", datetime.now(UTC), TENANTS[0], f"h-{number:04}"), "user")
    home.activate(POLICY_FILE, TENANTS[1], some[0][:REASON_CHARS_MAX])
    home.settle()
    return home


def decorated(home: Premises, desk: Desk, count: int = 20) -> None:
    """Have hostile notes written on what is held, hostile commands proposed, and filters of hostile names kept."""
    desk.feed()
    some = contents(count)
    index: ReviewIndex = desk.serving.index
    rows = index.page(HeldQuery.parse(f"tenant:{TENANTS[0]}"), tenants=None, limit=count).rows
    commands = []
    with desk.serving.desk() as held:
        opened = index.opened_all(held, rows)
        for number, (seen, text) in enumerate(zip(opened.values(), some, strict=False)):
            said = {"assignee": name(text)[:60], "claim_s": "600"} if number % 2 else {}
            noted = decision(
                seen, Action.NOTE, f"n-{number}", datetime.now(UTC), text[:REASON_CHARS_MAX], parameters=said
            )
            commands.append(noted)
        held.publish(commands)
        held.settle()
    desk.feed()
    for text in VECTORS[:10]:
        # As long as a proposal holds by default: the walk of a thousand contents takes longer than other commands do.
        proposed = home.proposed(POLICY_FILE, TENANTS[1], text[:REASON_CHARS_MAX], PROPOSED_VALID)
        proposals.add(desk.serving, proposed)
    for text in some:
        if (kept := name(text)[:60]).isprintable():
            index.saved.save(kept, HeldQuery.parse(f"tenant:{TENANTS[0]} state:any"), tenants=None)
