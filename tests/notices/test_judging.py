"""What people are told, and what they are not told twice."""

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile_text.texts import TEXTS

from memsluice.errors import ConfigError
from memsluice.operations.notices.journal import ATTEMPTS_MAX, FILE, Journal, wait_ms
from memsluice.operations.notices.judging import AppealSeen, GroupSeen, OverdueSeen, appealed, entry_path, grew, overdue
from memsluice.operations.notices.settings import NoticeSettings, Rules, load

NOW, HOUR = 1_800_000_000_000, 3_600_000
RULES = Rules.model_validate({"group_grew": {"by": 3, "within": "10m"}, "pending_over": "4h"})
WEBHOOK = "webhook: {url: 'https://hooks.example.org/x', secret: {environment: HOOK}}\n"


def group(count: int, last_ms: int = NOW) -> GroupSeen:
    """Return a group that grew."""
    return GroupSeen("acme", "0123abcd", "wording.held", count, NOW - HOUR // 10, last_ms)


def test_a_group_is_told_of_once_it_grew_by_as_many() -> None:
    """Fewer are no news; the link leads to the group, and the same growth has the same id."""
    assert grew([group(2)], RULES) == []
    (told,) = grew([group(3)], RULES)
    assert (told.path, told.count, told.up_to_ms) == ("/held/groups/0123abcd", 3, NOW)
    assert told.title == "3 similar writes are held in acme"
    assert grew([group(3)], RULES)[0].id == told.id != grew([group(3, NOW + 1)], RULES)[0].id
    assert grew([group(3)], Rules(group_grew=None)) == []


def test_one_that_waits_is_told_of_once_in_its_age_however_many_follow() -> None:
    """A flood passes the age entry by entry, and is one notice; what began to wait too long since is told later."""
    first = OverdueSeen("acme", "0123abcd", "rates.exceeded", 1, NOW - 5 * HOUR, NOW - 5 * HOUR)
    (told,) = overdue([first], RULES, {}, NOW)
    assert told.text.startswith("The oldest of 1 held writes of a group has waited for 5 h.")
    known = {told.subject: NOW}
    more = OverdueSeen("acme", "0123abcd", "rates.exceeded", 9, NOW - 5 * HOUR, NOW - 4 * HOUR + 1_000)
    assert overdue([more], RULES, known, NOW + HOUR) == []
    assert len(overdue([more], RULES, known, NOW + 4 * HOUR)) == 1
    assert overdue([first], RULES, known, NOW + 40 * HOUR) == []
    assert overdue([first], Rules(pending_over=None), {}, NOW) == []


def test_reviews_that_are_asked_for_are_one_notice_a_tenant() -> None:
    """One leads to its entry, several to the list of them; what was told is not told again."""
    asked = [AppealSeen("acme", f"w/{n}?#", n, NOW + n) for n in range(3)]
    (one,) = appealed(asked[:1], RULES, {})
    assert one.path == "/held/entries/acme/w%2F0%3F%23?offset=0"
    (several,) = appealed(asked, RULES, {})
    assert (several.path, several.count) == ("/held/entries?q=tenant%3Aacme+appeal%3Ayes", 3)
    assert [told.count for told in appealed(asked, RULES, {several.subject: NOW + 1})] == [1]
    assert appealed(asked, RULES, {several.subject: several.up_to_ms}) == []
    assert len(appealed([*asked, AppealSeen("globex", "x", 1, NOW)], RULES, {})) == 2


@given(st.sampled_from(list(TEXTS.values())), st.text(max_size=200))
def test_no_name_that_somebody_chose_acts_in_a_notice(hostile: str, other: str) -> None:
    """Titles are one line of what can be seen, links ASCII without blanks: they break no header and no page."""
    asked = AppealSeen(other, hostile, 1, NOW)
    for one in (*appealed([asked], RULES, {}), *grew([GroupSeen(other, hostile, hostile, 9, NOW, NOW)], RULES)):
        assert not {unicodedata.category(letter) for letter in one.title + one.text} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
        assert one.path.isascii()
        assert not set(one.path) & set(" \r\n<>\"'")
        json.dumps(one.as_data("https://desk.example.org", NOW))


def test_an_id_with_what_no_text_has_still_makes_a_link() -> None:
    """A lone surrogate in an event id is no reason to tell nobody."""
    with pytest.raises(UnicodeEncodeError):
        "\ud800".encode()
    assert entry_path("acme", "w\ud800", 1).isascii()


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "empty or no mapping"),
        ("rules: {}\n", "nobody would be told"),
        (WEBHOOK + "webhok: {}\n", "webhok: Extra inputs"),
        ("webhook: {url: 'http://example.org/', secret: {environment: X}}\n", "webhook.url: must begin with https"),
        ("webhook: {url: 'https://me:pw@example.org/', secret: {environment: X}}\n", "no user, password"),
        ("webhook: {url: 'https://x/', secret: {}}\n", "webhook.secret: name either a file or"),
        ("mail: {host: mx.example.org, from: a@b, to: [c]}\n", "mail.to: 'c' is not an address"),
        ("mail: {host: mx.example.org, from: a@b, to: ['c@d\\r\\nBcc: e@f']}\n", "is not an address"),
        ("mail: {host: mx.example.org, from: a@b, to: [c@d], tls: none}\n", "mail: tls: none is for a mail server on"),
        ("mail: {host: mx.example.org, from: a@b, to: [c@d], user: x}\n", "user and password go together"),
        (WEBHOOK + "rules: {pending_over: soon}\n", "rules.pending_over: is not a duration"),
        (WEBHOOK + "rules: {group_grew: {by: 0}}\n", "rules.group_grew.by: Input should be greater"),
        (WEBHOOK + "console: 'desk.example.org'\n", "console: is not an address"),
        ("a: [\n", "is no YAML"),
    ],
)
def test_settings_that_do_not_hold_name_the_field_and_the_reason(text: str, wrong: str, tmp_path: Path) -> None:
    """No line is ignored and no value quoted: a password may stand in the wrong place."""
    file = tmp_path / "notices.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=wrong) as told:
        load(file)
    assert "me:pw" not in str(told.value)


def test_settings_of_a_few_lines_have_rules_from_the_start(tmp_path: Path) -> None:
    """A webhook alone is enough; a rule that is null is off."""
    file = tmp_path / "notices.yaml"
    file.write_text(WEBHOOK + "rules: {group_grew: null}\n")
    told = load(file)
    assert (told.rules.group_grew, told.rules.pending_over_ms, told.rules.appeal) == (None, 4 * HOUR, True)
    assert told.console == "http://127.0.0.1:8714"


def test_a_secret_that_others_can_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of mode 0644 is no secret, and an empty variable none either; the message is what to do."""
    file = tmp_path / "secret"
    file.write_text("sesame\n")
    settings = NoticeSettings.model_validate({"webhook": {"url": "https://x/", "secret": {"file": str(file)}}})
    assert settings.webhook is not None
    with pytest.raises(ConfigError, match="chmod 600"):
        settings.webhook.secret.read()
    file.chmod(0o600)
    assert settings.webhook.secret.read().get_secret_value() == "sesame"
    monkeypatch.delenv("HOOK", raising=False)
    named = NoticeSettings.model_validate({"webhook": {"url": "https://x/", "secret": {"environment": "HOOK"}}})
    assert named.webhook is not None
    with pytest.raises(ConfigError, match="HOOK has no secret in it"):
        named.webhook.secret.read()


def test_what_was_told_is_remembered_with_what_is_to_be_sent(tmp_path: Path) -> None:
    """Both or neither; added again, a notice is no second delivery; a failed one waits longer each time, then ends."""
    journal, (notice,) = Journal(tmp_path), grew([group(3)], RULES)
    assert journal.add([notice], ["a", "b"], NOW) == 1
    assert journal.add([notice], ["a", "b"], NOW) == 0
    assert journal.told() == {notice.subject: NOW}
    assert [(one.channel, one.notice) for name in "ab" for one in journal.due(name, NOW)] == [
        ("a", notice),
        ("b", notice),
    ]
    journal.sent(journal.due("a", NOW)[0], NOW)
    assert journal.due("a", NOW) == []
    at_ms, waits = NOW, []
    while due := journal.due("b", at_ms):
        again = journal.failed(due[0], at_ms)
        waits.append(wait_ms(due[0].attempts + 1))
        at_ms += waits[-1]
    assert not again
    assert (len(waits), waits[:3], max(waits)) == (ATTEMPTS_MAX, [30_000, 60_000, 120_000], HOUR)
    journal.close()
    opened = Journal(tmp_path)
    assert (opened.told(), opened.waiting()) == ({notice.subject: NOW}, (0, None))
    opened.forget(at_ms + 61 * 24 * HOUR)
    assert opened.told() == {}
    opened.close()


def test_a_damaged_journal_is_said_and_nothing_is_told_twice_in_silence(tmp_path: Path) -> None:
    """It holds the only word on what was told; whoever deletes it is told what that means."""
    (tmp_path / FILE).write_bytes(b"no database at all, but long enough to be taken for one" * 100)
    with pytest.raises(ConfigError, match="damaged: delete it, and what is open is told once more"):
        Journal(tmp_path)
