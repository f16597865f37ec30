"""Policies in the console: what is in force and what differs, by the commands' own rules; two people activate."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.console_pages.place import Place
from tests.console_pages.test_audit import said
from tests.stages import holding
from typer.testing import CliRunner

from memsluice.cli.policy import app as policy
from memsluice.gate.commands.activation import digest_of
from memsluice.gate.policy.model import document


def text(**changes: Any) -> str:
    """Return the home's policy file with other values in it."""
    return orjson.dumps({**document(holding.text()), **changes}).decode()


def compared(place: Place, kid: str = "operator-all", **fields: str) -> Any:
    """Send a policy file, as the form does."""
    given = {"before": "in-force", "after": "text", "policy": text(content_bytes_max=32_000), **fields}
    return place.browser(kid).sent("/policies/compare", given)


@pytest.fixture
def office(tmp_path: Path) -> Any:
    """A place of one's own, for what activates."""
    made = Place(tmp_path)
    made.write("The early train leaves at seven.", event_id="first")
    yield made
    made.close()


def activate(place: Place, file: Path, *options: str) -> None:
    """Activate a policy file as two operators do."""
    done = CliRunner().invoke(
        policy,
        ["activate", str(file), "--kid", "operator-all", "--kid", "operator-too", "--yes", "--loosen", "--home",
         str(place.home.path), *options],
    )  # fmt: skip
    assert done.exit_code == 0, done.output


def test_where_nothing_was_activated_the_home_s_file_is_named(place: Place) -> None:
    """The page says that each worker uses its file, and which digest that of this home has."""
    html = said(place.browser("operator-all").get("/policies").text)
    assert "Nothing was activated: each worker uses the policy file of its home." in html


def test_what_is_in_force_says_since_when_and_by_whom(office: Place, tmp_path: Path) -> None:
    """After two operators activated one, the page has both keys and the digest; a version before can be compared."""
    file = tmp_path / "new.yaml"
    file.write_text(text(name="second"))
    activate(office, file)
    file.write_text(text(name="own", content_bytes_max=9_000))
    activate(office, file, "--tenant", "acme")
    html = office.browser("operator-all").get("/policies").text
    assert all(word in html for word in ("operator-all", "operator-too", "every tenant", "second@", "own@"))
    assert html.count('value="activated:') == 4
    narrow = office.browser("operator-acme").get("/policies").text
    assert "own@" in narrow
    ended = office.browser("operator-acme").get("/policies/end?tenant=acme").text
    assert 'data-command="activate"' in ended
    assert "data-policy" not in ended


def test_the_difference_is_the_command_s(place: Place, tmp_path: Path) -> None:
    """Every field that ``memsluice policy diff`` names stands on the page, and what it calls looser is called so."""
    file = tmp_path / "candidate.yaml"
    file.write_text(text(content_bytes_max=32_000))
    html = place.browser("operator-all").get("/policies/compare?before=shipped:default&after=home").text
    env = {"COLUMNS": "300", "NO_COLOR": "1"}
    home = ["--home", str(place.home.path), "--json"]
    printed = orjson.loads(CliRunner().invoke(policy, ["diff", str(place.home.policy_file), *home], env=env).stdout)
    assert printed
    assert [one["field"] for one in printed if f"<code>{one['field']}</code>" not in html] == []
    assert html.count("LOOSER") == sum(one["looser"] for one in printed)


def test_activating_what_is_looser_says_so_and_asks(place: Place) -> None:
    """The form to sign names the policy's own digest and text, says what gets looser, and wants that agreed to."""
    html = compared(place).text
    command = html.partition('data-command="activate"')[2].partition(">")[0]
    assert 'data-send="/proposals"' in command
    assert 'data-tenant="*"' in command
    assert "content_bytes_max" in html
    assert 'name="accepted" required' in html
    assert "2 operators sign." in said(html)


def test_the_text_that_is_signed_is_the_one_that_was_sent(place: Place) -> None:
    """The command's policy is the file's canonical text, and its digest is over that text."""
    from html import unescape

    html = compared(place, tenant="acme").text
    signed = unescape(html.partition('data-policy="')[2].partition('"')[0])
    assert orjson.loads(signed)["content_bytes_max"] == 32_000
    assert f'data-digest="{digest_of(signed)}"' in html


def test_a_file_with_overrides_is_no_tenant_s_own(place: Place) -> None:
    """It is compared, and the page says why it cannot be activated for a tenant."""
    html = compared(place, tenant="acme", policy=text(tenants={"globex": {"content_bytes_max": 10}})).text
    assert "a tenant's own policy has no overrides" in said(html)
    assert 'data-command="activate"' not in html
    assert "globex" not in said(html.partition("<details>")[0])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"policy": "content_bytes_max: many"}, "content_bytes_max"),
        ({"policy": "- a\n- b"}, ""),
        ({"after": "shipped:nothing"}, "no policy of that name ships"),
        ({"after": "elsewhere"}, "after: there is no policy elsewhere"),
        ({"before": "activated:none"}, "before: there is no policy activated:none"),
    ],
)
def test_a_policy_that_cannot_be_read_is_refused_in_words(place: Place, fields: dict[str, str], words: str) -> None:
    """A mistake in the file, or a policy that is not there, is answered below 500 and says what is wrong."""
    answer = compared(place, **fields)
    assert answer.status_code in (400, 404)
    assert words in said(answer.text)


def test_who_sees_some_tenants_compares_for_these_alone(place: Place) -> None:
    """An operator of one tenant compares as that tenant has it; every tenant's, and another's, are not his."""
    assert 'data-tenant="acme"' in compared(place, "operator-acme").text
    assert compared(place, "operator-acme", tenant="globex").status_code == 403
    answer = compared(place, "operator", tenant="")
    assert (answer.status_code, "tenant: name one of yours" in said(answer.text)) == (400, True)


@pytest.mark.parametrize("kid", ["reader-all", "reviewer-all"])
def test_policies_are_operators_alone(place: Place, kid: str) -> None:
    """Other roles are refused by the server on every address."""
    browser = place.browser(kid)
    assert browser.get("/policies").status_code == browser.get("/policies/end?tenant=acme").status_code == 403
    assert compared(place, kid).status_code == browser.sent("/policies/evaluate", {}).status_code == 403


def test_an_evaluation_decides_history_again_and_publishes_nothing(office: Place) -> None:
    """A released and a rejected write are its labels; the events are counted; the log is as it was."""
    good, bad = office.write(event_id="good"), office.write(event_id="bad")
    for decision, one in (("release", good), ("reject", bad)):
        assert office.run(decision, one, "--yes", "--why", "tried").exit_code == 0
    before = len(office.records("memory.events.v1"))
    fields = {"after": "text", "policy": text(), "tenant": "acme"}
    html = said(office.browser("operator-all").sent("/policies/evaluate", fields).text)
    assert "n = " in html
    assert "events were decided again" in html
    assert len(office.records("memory.events.v1")) == before
