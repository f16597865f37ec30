"""What there is to tell people, of what waits for them, and in which words. Pure.

A notice has counts, times, tenants, ids and reason codes, and a link to the page that shows the rest: no content, which
is for those alone who prove who they are. What was told is remembered by its subject (``grew/TENANT/GROUP``), with the
time up to which it was: the same is not told twice.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any
from urllib.parse import quote, urlencode

from memsluice.escaping import visible
from memsluice.operations.notices.settings import Rules

FORM = 1
"""Version of what a webhook is sent."""
ID_DIGITS = 32
NAME_CHARS_MAX = 160
HOUR_MS = 3_600_000
MINUTE_MS = 60_000


class NoticeKind(StrEnum):
    """Why people are told."""

    GREW = "group_grew"
    PENDING = "pending_over"
    APPEAL = "appeal"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class GroupSeen:
    """A group of held writes: how many of it were held since ``since_ms``, and when the newest was (Unix ms)."""

    tenant: str
    group: str
    reason: str
    count: int
    since_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class OverdueSeen:
    """A group's writes that have waited too long: how many, and when the oldest and the newest of them were held."""

    tenant: str
    group: str
    reason: str
    count: int
    oldest_ms: int
    newest_ms: int


@dataclass(frozen=True, slots=True)
class AppealSeen:
    """A held write whose writer asked for a review, and when (Unix ms). ``offset`` is its intake offset."""

    tenant: str
    event_id: str
    offset: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to tell. ``id`` is the same whenever the same is found again; ``subject`` is what is remembered, and
    ``up_to_ms`` up to when it is told with this. ``path`` is the console's page, without its address."""

    id: str
    kind: NoticeKind
    subject: str
    up_to_ms: int
    tenant: str
    title: str
    text: str
    path: str
    count: int

    def as_data(self, console: str, now_ms: int) -> dict[str, Any]:
        """Return what a webhook is sent, as JSON values."""
        return {
            "version": FORM,
            "id": self.id,
            "kind": self.kind.value,
            "tenant": self.tenant,
            "title": self.title,
            "text": self.text,
            "count": self.count,
            "link": console + self.path,
            "at": _moment(now_ms),
        }


def grew(seen: Iterable[GroupSeen], rules: Rules) -> list[Notice]:
    """Return notices of groups that grew by as many as the rule says, each counted from when it was last told."""
    rule = rules.group_grew
    if rule is None:
        return []
    return [
        _notice(
            NoticeKind.GREW, _subject("grew", one.tenant, one.group), one.last_ms, one.tenant,
            f"{one.count} similar writes are held in {_name(one.tenant)}",
            f"A group of held writes grew by {one.count} in {_span(one.last_ms - one.since_ms)}. Held for: "
            f"{_name(one.reason)}.",
            group_path(one.group), one.count,
        )
        for one in seen
        if one.count >= rule.by
    ]  # fmt: skip


def overdue(seen: Iterable[OverdueSeen], rules: Rules, told: Mapping[str, int], now_ms: int) -> list[Notice]:
    """Return notices of groups in which something waits longer than the rule says, and began to since that was told.

    ``told`` is up to when each subject was told. One group is told of once in so long as the rule's age.
    """
    age_ms = rules.pending_over_ms
    if age_ms is None:
        return []
    found = []
    for one in seen:
        subject = _subject("pending", one.tenant, one.group)
        last_ms = told.get(subject)
        if last_ms is not None and (now_ms - last_ms < age_ms or one.newest_ms + age_ms <= last_ms):
            continue
        found.append(
            _notice(
                NoticeKind.PENDING, subject, now_ms, one.tenant,
                f"{one.count} held writes wait for longer than {_span(age_ms)} in {_name(one.tenant)}",
                f"The oldest of {one.count} held writes of a group has waited for {_span(now_ms - one.oldest_ms)}. "
                f"Held for: {_name(one.reason)}.",
                group_path(one.group), one.count, name=f"{one.newest_ms}",
            )
        )  # fmt: skip
    return found


def appealed(seen: Iterable[AppealSeen], rules: Rules, told: Mapping[str, int]) -> list[Notice]:
    """Return a notice for each tenant in which somebody asked for a review since that was told."""
    by_tenant: dict[str, list[AppealSeen]] = {}
    for one in seen:
        if rules.appeal and one.at_ms > told.get(_subject("appeal", one.tenant), -1):
            by_tenant.setdefault(one.tenant, []).append(one)
    found = []
    for tenant, those in sorted(by_tenant.items()):
        many, newest_ms = len(those), max(one.at_ms for one in those)
        (first, *_) = those
        path = entry_path(tenant, first.event_id, first.offset) if many == 1 else appeals_path(tenant)
        what = "A writer asks" if many == 1 else f"The writers of {many} held writes ask"
        found.append(
            _notice(
                NoticeKind.APPEAL, _subject("appeal", tenant), newest_ms, tenant,
                f"{what} for a review in {_name(tenant)}",
                f"{what} for a review; the last one at {_moment(newest_ms)}.",
                path, many,
            )
        )  # fmt: skip
    return found


def trial(now_ms: int) -> Notice:
    """Return a notice that says that notices arrive."""
    return _notice(
        NoticeKind.TEST, "test", now_ms, "", "memsluice: notices arrive here",
        "Somebody asked for this test. Nothing is wrong, and nothing needs to be done.", "/held", 0,
    )  # fmt: skip


def subject_of_group(kind: str, tenant: str, group: str) -> str:
    """Return the subject of what is told of a group (``grew``, ``pending``)."""
    return _subject(kind, tenant, group)


def group_path(group: str) -> str:
    """Return the console's page of a group."""
    return f"/held/groups/{_quoted(group)}"


def entry_path(tenant: str, event_id: str, offset: int) -> str:
    """Return the console's page of one held write."""
    return f"/held/entries/{_quoted(tenant)}/{_quoted(event_id)}?{urlencode({'offset': offset})}"


def appeals_path(tenant: str) -> str:
    """Return the console's page of a tenant's held writes whose review was asked for."""
    return f"/held/entries?{urlencode({'q': f'tenant:{tenant} appeal:yes'})}"


def _notice(
    kind: NoticeKind, subject: str, up_to_ms: int, tenant: str, title: str, text: str, path: str, count: int,
    name: str = "",
) -> Notice:  # fmt: skip
    called = "\0".join((subject, name or str(up_to_ms))).encode("utf-8", "surrogatepass")
    return Notice(sha256(called).hexdigest()[:ID_DIGITS], kind, subject, up_to_ms, tenant, title, text, path, count)


def _subject(*parts: str) -> str:
    return "/".join(map(_quoted, parts))


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="surrogatepass")


def _name(text: str) -> str:
    return visible(text, NAME_CHARS_MAX)


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat(timespec="seconds")


def _span(span_ms: int) -> str:
    """Return a span in words: minutes, or hours from two on."""
    minutes = max(1, round(span_ms / MINUTE_MS))
    return f"{minutes} min" if span_ms < 2 * HOUR_MS else f"{span_ms / HOUR_MS:.0f} h"
