"""Partitions and health in the console: what stands where, to whom, and that the checks are doctor's own."""

import re

import pytest
from tests.console_pages.place import Place
from tests.console_pages.test_audit import said
from typer.testing import CliRunner

from memsluice.cli.doctor import app as doctor


def test_an_operator_of_all_sees_stages_and_that_nothing_is_parked(place: Place) -> None:
    """Each stage stands there with what it is behind; an embedded log says why it has no parked partition."""
    text = said(place.browser("operator-all").get("/health").text)
    assert all(f" {stage} " in text for stage in ("seal", "screen", "land"))
    assert "An embedded log has no workers that could park a partition." in text
    assert "They were not run since the console started." in text


@pytest.mark.parametrize("kid", ["reader-all", "reviewer-all", "operator-acme"])
def test_others_are_told_that_it_is_not_theirs(place: Place, kid: str) -> None:
    """Roles without operations, and operators of some tenants, get 403 from the page and from what it sends to."""
    browser = place.browser(kid)
    for answer in (browser.get("/health"), browser.sent("/health/checks", {}), browser.sent("/partitions/orders", b"")):
        assert answer.status_code == 403, answer.url


def numberless(text: str) -> str:
    """Return a text without its numbers: how much room a disk has is another from second to second."""
    return re.sub(r"[\d,.]+", "#", text)


def test_the_checks_are_doctor_s(place: Place) -> None:
    """What the button runs stands on the page: the very sentences that ``memsluice doctor`` prints."""
    browser = place.browser("operator-all")
    assert browser.sent("/health/checks", {}).status_code == 303
    text = said(browser.get("/health").text)
    printed = CliRunner().invoke(doctor, ["--home", str(place.home.path)], env={"NO_COLOR": "1"}).stdout
    lines = [numberless(line[15:].strip()) for line in printed.splitlines() if line[:1] in "✓!✗"]
    assert len(lines) >= 6
    assert [line for line in lines if line.split(":")[0] not in numberless(text)] == []


def test_a_check_that_runs_is_not_begun_again(place: Place) -> None:
    """A second run meanwhile is refused in words, and begins nothing."""
    from memsluice.console.pages.health import _checked

    with _checked(place.serving).running:
        answer = place.browser("operator-all").sent("/health/checks", {})
    assert (answer.status_code, "running already" in answer.text) == (400, True)


def test_an_order_that_does_not_verify_reaches_no_topic(place: Place) -> None:
    """What is no order, and an order on a log without workers, is refused in words."""
    answer = place.browser("operator-all").sent("/partitions/orders", b"{}")
    assert (answer.status_code, "does not verify" in answer.text) == (403, True)


def test_a_form_of_the_console_s_own_page_is_taken_though_it_names_no_origin(place: Place) -> None:
    """Without a referrer a browser calls a form's origin null: it counts where the browser says that it is ours."""
    browser = place.browser("operator-all")
    answers = {
        site: browser.post(
            "/health/checks", data={"csrf": browser.csrf}, headers={"Origin": "null", "Sec-Fetch-Site": site}
        ).status_code
        for site in ("same-origin", "cross-site", "same-site", "none")
    }
    assert answers == {"same-origin": 303, "cross-site": 403, "same-site": 403, "none": 403}
