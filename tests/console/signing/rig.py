"""A console over a home with an embedded log, and people in browsers of their own who come to it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page
from tests.held.desk import Office

from memsluice.console.app import create_app
from memsluice.console.serving import Serving, opened
from memsluice.console.settings import Settings
from memsluice.envelope.registry import Credential, Role
from memsluice.operations.held.entries import HeldWrite
from memsluice.operations.review.index import ReviewIndex
from memsluice.operations.review.query import HeldQuery
from memsluice.topics.names import COMMANDS
from memsluice_lab.desk.consoles import SETTINGS, enrolled, enter, listening


@dataclass
class Person:
    """Somebody with a browser of his own, in which his key lies."""

    name: str
    context: BrowserContext
    page: Page
    credential: Credential
    failures: list[str] = field(default_factory=list)

    @property
    def cookie(self) -> dict[str, Any]:
        """The cookie of his session."""
        (found,) = self.context.cookies()
        return dict(found)

    def evaluate(self, script: str, given: Any = None) -> Any:
        """Run the body of a function of ``given`` in his page, with the console's modules at hand."""
        head = "".join(
            f'const {name} = await import("/static/{name}.js");' for name in ("commands", "keys", "sending", "login")
        )
        return self.page.evaluate(f"async (given) => {{ {head} {script} }}", given)


@dataclass
class Rig:
    """A console at ``url`` over an office's home. ``index`` is another opening of its index: a feeder has one alone."""

    office: Office
    serving: Serving
    index: ReviewIndex
    url: str
    browser: Browser
    people: list[Person] = field(default_factory=list)

    def person(
        self, name: str, role: Role = Role.REVIEWER, tenants: tuple[str, ...] = ("acme",), *, enters: bool = True
    ) -> Person:
        """Give somebody who made a key in his browser and had it enrolled, and who logged in."""
        context = self.browser.new_context()
        page = context.new_page()
        credential = enrolled(page, self.url, self.office.keys, name, role, tenants)
        person = Person(name, context, page, credential)
        page.on("pageerror", lambda error: person.failures.append(str(error)))
        page.on("console", lambda told: person.failures.append(told.text) if told.type == "error" else None)
        self.people.append(person)
        if enters:
            enter(page, self.url)
        return person

    def feed(self) -> None:
        """Have the index take in what the topics hold."""
        with self.serving.desk() as desk:
            self.index.feed(desk)

    def states(self) -> dict[str, str]:
        """Return what became of each held write, by its event id, as the topics say."""
        self.feed()
        found = self.index.page(HeldQuery.parse("state:any"), tenants=None, limit=1_000)
        return {row.event_id: row.state.value for row in found.rows}

    def held(self) -> list[HeldWrite]:
        """Return the held writes, oldest first, with their contents."""
        self.feed()
        found = self.index.page(HeldQuery.parse("state:any"), tenants=None, limit=1_000)
        with self.serving.desk() as desk:
            return [self.index.opened(desk, row).entry for row in reversed(found.rows)]

    def commands(self) -> int:
        """Return how many commands were published."""
        return len(self.office.records(COMMANDS))

    def close(self) -> None:
        """Close every browser."""
        for person in self.people:
            person.context.close()


@contextmanager
def console(browser: Browser, home: Path, **settings: Any) -> Iterator[Rig]:
    """Serve a console over a new home."""
    with console_of(browser, Office(home), **settings) as rig:
        yield rig


@contextmanager
def console_of(browser: Browser, office: Office, **settings: Any) -> Iterator[Rig]:
    """Serve a console over an office's home."""
    told = Settings.checked({**SETTINGS, **settings}, "test")
    with (
        opened(office.home.path, told) as serving,
        ReviewIndex.open(office.home.path) as index,
        listening(create_app(serving)) as url,
    ):
        rig = Rig(office, serving, index, url, browser)
        try:
            yield rig
        finally:  # a page that is open keeps the server from ending
            rig.close()
