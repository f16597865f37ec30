"""A recaller at the other end of HTTP: the questions and answers of :class:`.recaller.Recaller`, and no gate key."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import httpx
from opentelemetry.propagate import inject
from pydantic import ValidationError

from memsluice.client import arguments
from memsluice.client.credentials import Credentials, source_of
from memsluice.client.options import SECONDS_MAX, SECONDS_MIN
from memsluice.client.session import AgentSession
from memsluice.clock import wall_ms
from memsluice.errors import (
    EarlierFailed,
    InvalidArgument,
    LimitExceeded,
    MalformedEvent,
    MemsluiceError,
    NotPermitted,
    OverQuota,
    RecallFailed,
    ScopeTooLarge,
    StoreUnavailable,
)
from memsluice.events.models import Tier, Zone
from memsluice.recall.bearer import mint
from memsluice.recall.recaller import Named, Narrow, Publish, Question, Recalled
from memsluice.recall.wire import ENTRIES_PATH, LINES, PATH, TOO_MANY, Entry, RecallAnswer, RestOfAnswer

SESSION_S = 30.0
"""How long a recall in a session waits for the session's earlier events."""


class RemoteRecaller:
    """Asks a recall service. InvalidArgument for a value out of range.

    Attributes are none; ``url`` is the service's, http or https, without a path; ``credential`` a reader's, its file,
    or a function that gives the one in force; ``timeout_s`` in seconds, for connecting and for each part of an answer.
    """

    def __init__(
        self,
        url: str,
        credential: Credentials,
        *,
        timeout_s: float = 30.0,
        now_ms: Callable[[], int] = wall_ms,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        arguments.instance("url", url, str, "the address of a recall service, a string")
        arguments.number("argument timeout_s", timeout_s, SECONDS_MIN, SECONDS_MAX)
        if not url.startswith(("http://", "https://")):
            raise InvalidArgument("argument url must be an http or https address")
        self._credential = source_of(credential, now_ms)
        self._now_ms = now_ms
        self._client = httpx.Client(base_url=url, timeout=timeout_s, transport=transport, follow_redirects=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def recall(
        self,
        tenant: str,
        question: str,
        *,
        agent: str,
        principal: str,
        session: str,
        namespace: str = "default",
        k: int = 5,
        zone: Zone = Zone.GUIDANCE,
        tier_max: Tier = Tier.EXTERNAL_WEB,
    ) -> Recalled:
        """As :meth:`memsluice.recall.recaller.Recaller.recall`.

        Raises MalformedEvent, LimitExceeded, NotPermitted (a credential that the service does not take, too),
        OverQuota, StoreUnavailable where the service, its store or its broker does not answer, and RecallFailed.
        """
        return self.ask(Question(tenant, question, agent, principal, session, namespace, zone, k, tier_max))

    def recall_in(
        self,
        session: AgentSession,
        question: str,
        *,
        namespace: str = "default",
        k: int = 5,
        zone: Zone = Zone.GUIDANCE,
        tier_max: Tier = Tier.EXTERNAL_WEB,
    ) -> Recalled:
        """As :meth:`recall`, for an agent's session, once all that was called in it before is acknowledged.

        Raises EarlierFailed where one of those failed, or was not acknowledged in SESSION_S.
        """
        left = session.flush(SESSION_S)
        if (failure := session.failure) is not None or left:
            why = f"{left} earlier events were not acknowledged in time" if failure is None else "an earlier one failed"
            raise EarlierFailed(f"the recall was not asked: {why}", event_id="")
        whose = session.session
        return self.ask(
            Question(whose.tenant, question, whose.agent, whose.principal, whose.session, namespace, zone, k, tier_max)
        )

    def ask(self, question: Question, publish: Publish | None = None, *, narrow: Narrow = tuple) -> Recalled:
        """As :meth:`recall`. The service has published the answer, whatever ``publish`` would: ``narrow`` then says
        which of it is returned."""
        return _narrowed(self._answered(PATH, _request(question)), narrow)

    def look_up(
        self,
        question: Question,
        ids: Sequence[str] | None = None,
        publish: Publish | None = None,
        *,
        narrow: Narrow = tuple,
    ) -> Recalled:
        """As :meth:`memsluice.recall.recaller.Recaller.look_up`; ``publish`` and ``narrow`` as in :meth:`ask`."""
        wanted = {name: value for name, value in _request(question).items() if name not in ("k", "tier_max")}
        return _narrowed(self._answered(ENTRIES_PATH, {**wanted, "ids": None if ids is None else list(ids)}), narrow)

    def lies(self, question: Question, ids: Sequence[str]) -> tuple[Named, ...]:
        """As :meth:`memsluice.recall.recaller.Recaller.lies`, of a session that is told of as having read them."""
        found = self.look_up(question, ids).entries
        return tuple(Named(entry.admission.object_id, entry.admission.event_id) for entry in found)

    def _answered(self, path: str, asked: dict[str, Any]) -> Recalled:
        headers = {"authorization": f"Bearer {mint(self._credential(), self._now_ms())}", "accept": LINES}
        inject(headers)
        try:
            with self._client.stream("POST", path, json=asked, headers=headers) as response:
                body = response.read()
        except httpx.HTTPError as error:
            raise StoreUnavailable(f"the recall service did not answer ({type(error).__name__})") from None
        if response.status_code != httpx.codes.OK:
            raise error_of(response)
        return _answer(body.removesuffix(b"\n").split(b"\n"))


def _narrowed(answer: Recalled, narrow: Narrow) -> Recalled:
    return replace(answer, entries=tuple(narrow(answer.entries)))


def _request(question: Question) -> dict[str, Any]:
    return {
        "tenant": question.tenant,
        "question": question.text,
        "agent": question.agent,
        "principal": question.principal,
        "session": question.session,
        "namespace": question.namespace,
        "k": question.k,
        "zone": question.zone.value,
        "tier_max": int(question.tier_max),
    }


def _answer(lines: Sequence[bytes]) -> Recalled:
    """Return the answer of a body in lines. Raises RecallFailed for one that was cut off, or is none."""
    try:
        entries = [Entry.model_validate_json(line) for line in lines[:-1]]
        rest = RestOfAnswer.model_validate_json(lines[-1])
    except ValidationError:
        raise RecallFailed("the recall service's answer was cut off, or is no answer") from None
    if rest.entries_given != len(entries):
        raise RecallFailed(f"the recall service gave {rest.entries_given} entries, of which {len(entries)} came")
    return RecallAnswer(entries=entries, **rest.model_dump(exclude={"entries_given"})).answer()


def error_of(response: httpx.Response, service: str = "recall") -> MemsluiceError:
    """Return the error that a service's problem says."""
    try:
        said = json.loads(response.content)
    except ValueError:
        said = None
    problem: Mapping[str, Any] = said if isinstance(said, dict) else {}
    detail, field = str(problem.get("detail", f"HTTP status {response.status_code}")), str(problem.get("field", ""))
    match response.status_code:
        case 400 if problem.get("code") == TOO_MANY:
            return ScopeTooLarge(detail)
        case 400 | 413 if problem.get("code") == LimitExceeded.code:
            return LimitExceeded(detail, field=field)
        case 400 | 409 | 422:
            return MalformedEvent(detail, field=field)
        case 401 | 403:
            return NotPermitted(detail, field=field)
        case 429:
            return OverQuota(detail)
        case 503:
            return StoreUnavailable(detail)
    return RecallFailed(f"the {service} service answered with HTTP status {response.status_code}: {detail}")
