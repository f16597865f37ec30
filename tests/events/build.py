"""Payloads, messages and hypothesis strategies shared by the tests of what travels."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from memsluice.client.build import Message, build
from memsluice.envelope.keys import HmacKey
from memsluice.events import limits
from memsluice.events.models import (
    Action,
    Command,
    Kind,
    Observation,
    Origin,
    Recall,
    Returned,
    Tier,
    Visibility,
    Write,
    Zone,
)

NOW = datetime(2026, 5, 4, 3, 2, 1, 123000, tzinfo=UTC)
SIGNER = HmacKey("producer-1", b"k" * 32)
PERSON = {"tenant": "acme", "agent": "assistant", "principal": "ada", "session": "s-1"}


def a_write(**fields: Any) -> Write:
    """Return a valid write."""
    return Write(**{"id": "e-1", "time": NOW, "content": "prefers tea", **PERSON, **fields})


def message(payload: Any = None, **options: Any) -> Message:
    """Return a signed message."""
    return build(payload or a_write(), [SIGNER], **{"source": "urn:test", **options})


_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)
_ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:~/@+-]{0,40}", fullmatch=True)
_names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=limits.NAME_CHARS_MAX)
_moments = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29)).map(lambda moment: moment.replace(tzinfo=UTC))
_digests = st.binary(min_size=32, max_size=32).map(bytes.hex)
_common = {"id": _ids, "tenant": st.from_regex(r"[a-z0-9][a-z0-9_-]{0,62}", fullmatch=True), "time": _moments}
_person = {**_common, "agent": _names, "principal": _names, "session": _names}
_returned = st.builds(
    Returned,
    object_id=st.uuids().map(str),
    version=st.integers(0, limits.OFFSET_MAX),
    event_id=_ids,
    tier=st.sampled_from(Tier),
    taint=st.booleans(),
)
WRITES = st.builds(
    Write,
    **_person,
    namespace=_names,
    key=st.none() | _names,
    visibility=st.sampled_from(Visibility),
    content=_text,
    kind=st.sampled_from(Kind),
    parents=st.lists(_ids, max_size=4).map(tuple),
    origin=st.none() | _names,
    claimed_tier=st.none() | st.sampled_from(Tier),
)
RECALLS = st.builds(
    Recall,
    **_person,
    namespace=_names,
    question=_text,
    zone=st.sampled_from(Zone),
    returned=st.lists(_returned, max_size=3).map(tuple),
    vector=st.none(),
)
OBSERVATIONS = st.builds(
    Observation, **_person, origin=st.sampled_from(Origin), digest=st.none() | _digests, content=st.none() | _text
)
COMMANDS = st.builds(
    Command,
    **_common,
    action=st.sampled_from(Action),
    target=_names,
    digest=st.none() | _digests,
    expires_at=_moments.map(lambda moment: moment + timedelta(days=1)),
    reason=_text,
    parameters=st.dictionaries(_names, _names, max_size=3),
)
PAYLOADS = st.one_of(WRITES, RECALLS, OBSERVATIONS, COMMANDS)
