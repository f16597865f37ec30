"""What a caller may ask: the rule that the gate has for its recalls, before anything is searched."""

from datetime import UTC, datetime

from memsluice.client.build import make
from memsluice.envelope.registry import Credential
from memsluice.events.models import Recall
from memsluice.events.names import EventType
from memsluice.recall.wire import EntriesRequest, RecallRequest


def check(asked: RecallRequest | EntriesRequest, caller: Credential, now_ms: int) -> None:
    """Raise NotPermitted or CrossTenant where the caller may not publish the recall that this would be.

    Raises MalformedEvent and LimitExceeded for what no recall can carry.
    """
    draft = make(
        Recall,
        id="draft",
        tenant=asked.tenant,
        time=datetime.fromtimestamp(now_ms / 1_000, UTC),
        agent=asked.agent,
        principal=asked.principal,
        session=asked.session,
        namespace=asked.namespace,
        question=asked.question,
        zone=asked.zone,
    )
    caller.check(EventType.RECALL, draft, now_ms)
