"""A committed offset that could not be read is none: aiokafka takes "not now" for "this group never committed".

From version 2 on, the answer to OffsetFetch carries an error of the group beside the partitions, and with one the list
of partitions is empty (KIP-88): COORDINATOR_LOAD_IN_PROGRESS from a broker that has just started, NOT_COORDINATOR from
one that gave the group away. aiokafka 0.14 looks at the partitions alone. The stage would begin at the log's start, and
everything that the log still has would be taken, and told, a second time.
"""

from typing import Any

from aiokafka import errors
from aiokafka.consumer import consumer
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.protocol.commit import OffsetFetchRequest


class CommittedCoordinator(GroupCoordinator):  # type: ignore[misc]
    """aiokafka's coordinator, which asks again where the group's offsets could not be read."""

    async def _send_req(self, request: Any) -> Any:
        answer = await super()._send_req(request)
        if isinstance(request, OffsetFetchRequest) and (code := getattr(answer, "error_code", 0)):
            error = errors.for_code(code)
            if error is errors.NotCoordinatorForGroupError:
                self.coordinator_dead()
            raise error(self.group_id)  # whoever asks waits, and asks again, where it may be over by then
        return answer


def install() -> None:
    """Let every aiokafka consumer of this process ask that way. Doing it again changes nothing."""
    consumer.GroupCoordinator = CommittedCoordinator
