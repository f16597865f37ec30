"""How a worker is a member of its group, where aiokafka 0.14 leaves it hanging or takes "not now" for an answer.

* A committed offset that could not be read is none. From version 2 on, the answer to OffsetFetch carries an error of
  the group beside the partitions, and with one the list of partitions is empty (KIP-88): COORDINATOR_LOAD_IN_PROGRESS
  from a broker that has just started, NOT_COORDINATOR from one that gave the group away. aiokafka looks at the
  partitions alone. The stage would begin at the log's start, and everything that the log still has would be taken, and
  told, a second time.
* A group whose members divide the partitions in another way takes nobody in until the last of them is gone, and one
  that was stopped stays for its session: static members do not leave. aiokafka gives up at the first refusal.
* What else ends the membership is kept for a caller who asks, and nothing is joined until it was. Faust never asks.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

from aiokafka import errors
from aiokafka.consumer import consumer
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.protocol.commit import OffsetFetchRequest

from memsluice.log import get_logger

LOG = get_logger(__name__)
JOIN_AGAIN_S: Final = 1.0
"""Pause before a group that refused this worker is asked again."""


class StageCoordinator(GroupCoordinator):  # type: ignore[misc]
    """aiokafka's coordinator, which asks again where the answer may be another one by then, and tells of the rest."""

    broken: Callable[[BaseException], None] | None = None
    """Called with what ended the membership. Nothing is joined after that."""
    _refused_since_s: float | None = None

    async def _send_req(self, request: Any) -> Any:
        answer = await super()._send_req(request)
        if isinstance(request, OffsetFetchRequest) and (code := getattr(answer, "error_code", 0)):
            error = errors.for_code(code)
            if error is errors.NotCoordinatorForGroupError:
                self.coordinator_dead()
            raise error(self.group_id)  # whoever asks waits, and asks again, where it may be over by then
        return answer

    async def _do_rejoin_group(self, subscription: Any) -> bool:
        try:
            joined = bool(await super()._do_rejoin_group(subscription))
        except errors.InconsistentGroupProtocolError:
            self._refused()
            await asyncio.wait([self._closing], timeout=JOIN_AGAIN_S)
            return False
        if joined and self._refused_since_s is not None:
            LOG.warning(
                "the group has taken this worker in",
                group=self.group_id,
                after_s=round(time.monotonic() - self._refused_since_s, 1),
            )
            self._refused_since_s = None
        return joined

    def _refused(self) -> None:
        if self._refused_since_s is None:
            self._refused_since_s = time.monotonic()
            LOG.warning(
                "the group has workers of another version, which divides its partitions in another way: stop them; "
                "this one joins by itself when their sessions are over",
                group=self.group_id,
                session_s=self._session_timeout_ms / 1000,
            )

    def _push_error_to_user(self, exc: BaseException) -> Any:
        self._tell(exc)
        return super()._push_error_to_user(exc)

    async def _coordination_routine(self) -> None:
        try:
            await super()._coordination_routine()
        except Exception as error:
            self._tell(error)
            raise

    def _tell(self, error: BaseException) -> None:
        if self.broken is not None:
            self.broken(error)


def install() -> None:
    """Let every aiokafka consumer of this process be a member that way. Doing it again changes nothing."""
    consumer.GroupCoordinator = StageCoordinator
