"""The security key as a second word of the same person, with Chromium's own virtual authenticator."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from tests.console.signing.rig import Person, Rig, console
from tests.console.signing.test_keys_and_sessions import DECIDE, about

from memsluice.console.stepup import FILE, SINGLE_MAX
from memsluice.console.visitors import Visitor
from memsluice.envelope.registry import Role

REGISTER = """
const stepup = await import("/static/stepup.js");
const key = (await keys.held()).signer(given.kid);
return stepup.register(key).then(() => "registered", (error) => error.message);
"""
CONFIRMED = """
const stepup = await import("/static/stepup.js");
const key = (await keys.held()).signer(given.kid);
const envelopes = [];
for (const one of given.entries) {
  const shown = await commands.sha256(commands.utf8(one.content));
  const made = commands.decision({ ...one.entry, shown }, "reject", { id: one.id, nowMs: Date.now() });
  envelopes.push(await commands.envelope(made, key));
}
try {
  const about = given.other ? envelopes.slice(0, 1) : envelopes;
  const step_up = await stepup.confirmed(about);
  const told = await sending.post("/commands", { envelopes, step_up });
  return [step_up !== null, ...told.items.map((one) => one.came)];
} catch (error) { return error.message }
"""


@pytest.fixture
def strict(chromium: Browser, tmp_path_factory) -> Iterator[Rig]:
    """Give a console that wants a security key for every command; WebAuthn wants a name, and no bare address."""
    with console(chromium, tmp_path_factory.mktemp("home"), step_up="always") as rig:
        rig.url = rig.url.replace("127.0.0.1", "localhost")
        rig.office.write(event_id="w-1")
        rig.office.write(event_id="w-2")
        yield rig


def with_key(person: Person) -> Person:
    """Give a person's browser a security key that is touched whenever it is asked."""
    session = person.context.new_cdp_session(person.page)
    session.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "usb", "hasUserVerification": True, "isUserVerified": True}
    session.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return person


def both(rig: Rig, person: Person, **more: Any) -> dict[str, Any]:
    """Return what CONFIRMED is given about the held writes."""
    made = [{**about(one, person.credential.kid), "id": f"c-{one.event_id}"} for one in rig.held()]
    return {"kid": person.credential.kid, "entries": made, **more}


def test_nothing_is_published_without_the_security_key(strict) -> None:
    """A signature alone is not enough: the page says what to do, and the log has no command."""
    ana = strict.person("ana")
    told = ana.evaluate(DECIDE, about(strict.held()[0], ana.credential.kid))
    assert (told["status"], "security key" in told["told"]) == (403, True)
    assert "register yours" in ana.evaluate(CONFIRMED, both(strict, ana))
    assert strict.commands() == 0


def test_what_the_security_key_confirmed_is_published(strict) -> None:
    """Registered once, by its owner's signature; then each batch is confirmed, and the gate hears of it."""
    ana = with_key(strict.person("ana"))
    assert ana.evaluate(REGISTER, {"kid": ana.credential.kid}) == "registered"
    assert (strict.office.home.path / FILE).stat().st_mode & 0o777 == 0o600
    assert ana.evaluate(CONFIRMED, both(strict, ana)) == [True, "done", "done"]
    assert set(strict.states().values()) == {"rejected"}


def test_a_confirmation_counts_for_its_own_commands_alone(strict) -> None:
    """What was confirmed for one command lets no other one through beside it."""
    ana = with_key(strict.person("ana"))
    assert ana.evaluate(REGISTER, {"kid": ana.credential.kid}) == "registered"
    assert "has not confirmed these commands" in ana.evaluate(CONFIRMED, both(strict, ana, other=True))
    assert strict.commands() == 0


def test_a_stolen_session_registers_no_security_key(strict) -> None:
    """The thief's own security key needs a signature by the owner's key, which he has not."""
    ana, thief = strict.person("ana"), with_key(strict.person("mallory", enters=False))
    thief.context.add_cookies([ana.cookie])
    thief.page.goto(f"{strict.url}/")
    assert "not this key's" in thief.evaluate(REGISTER, {"kid": ana.credential.kid})
    assert "your own key" in thief.evaluate(REGISTER, {"kid": thief.credential.kid})
    assert not (strict.office.home.path / FILE).exists()


def test_a_person_has_one_security_key_however_he_comes_in(strict) -> None:
    """Whoever takes over a browser, key and all, gets around no security key by coming in another way: by another key
    of the same person, or by the key where the person came in by an identity provider."""
    ana, again = with_key(strict.person("ana")), with_key(strict.person("ana"))
    ben = with_key(strict.person("ben"))
    assert ana.evaluate(REGISTER, {"kid": ana.credential.kid}) == "registered"
    assert "is registered" in again.evaluate(REGISTER, {"kid": again.credential.kid})
    assert ben.evaluate(REGISTER, {"kid": ben.credential.kid}) == "registered"
    provided = Visitor("ana", Role.REVIEWER, frozenset({"acme"}))
    token, _ = strict.serving.sessions.begin(provided)
    again.context.add_cookies([{**again.cookie, "value": token}])
    again.page.goto(f"{strict.url}/keys")
    expect(again.page.locator("#keyring")).to_have_attribute("data-registered", "yes")
    assert "is registered" in again.evaluate(REGISTER, {"kid": again.credential.kid})
    told = again.evaluate(DECIDE, about(strict.held()[0], again.credential.kid))
    assert (told["status"], strict.commands()) == (403, 0)


def test_one_by_one_is_no_way_around_a_confirmation_of_many(chromium, tmp_path_factory) -> None:
    """Where only many at once want a touch, so many one after another want one too, until the key was touched."""
    with console(chromium, tmp_path_factory.mktemp("home"), step_up="bulk") as rig:
        rig.url = rig.url.replace("127.0.0.1", "localhost")
        rig.office.write(event_id="w-1")
        rig.office.write(event_id="w-2")
        ana = with_key(rig.person("ana"))
        assert ana.evaluate(REGISTER, {"kid": ana.credential.kid}) == "registered"
        single = both(rig, ana)
        first, second = single["entries"]
        assert ana.evaluate(CONFIRMED, single | {"entries": [first]}) == [False, "done"]
        (name,) = rig.serving.unconfirmed
        rig.serving.unconfirmed[name] = SINGLE_MAX
        assert ana.evaluate(DECIDE, about(rig.held()[0], ana.credential.kid))["status"] == 403
        assert ana.evaluate(CONFIRMED, single | {"entries": [second]}) == [True, "done"]
        assert rig.serving.unconfirmed[name] == 0


def test_the_page_of_keys_shows_and_registers(strict) -> None:
    """A person sees under which id his key is known, registers a security key by a button, and is offered it once."""
    ana = with_key(strict.person("ana"))
    ana.page.goto(f"{strict.url}/keys")
    expect(ana.page.locator("#signing-key")).to_contain_text(f"The registry knows it as {ana.credential.kid}.")
    ana.page.click("#register")
    expect(ana.page.locator("#keyring")).to_have_attribute("data-registered", "yes")
    expect(ana.page.locator("#register")).to_have_count(0)
    assert ana.failures == []
