"""As :mod:`tests.patience`, for tests that administer a stack besides: its start, its topics, its users and roles."""

import pytest
from tests.patience import HANG_S, unhurry

START_S = 900.0
LIMITS = (
    "memsluice.devstack.roles.REQUEST_TIMEOUT_S",
    "memsluice.devstack.users.TIMEOUT_S",
    "memsluice.topics.plan.ANSWER_TIMEOUT_S",
    "memsluice.topics.plan.REQUEST_TIMEOUT_S",
    "memsluice.topics.plan.SETTLE_TIMEOUT_S",
)


def be_patient(patch: pytest.MonkeyPatch) -> None:
    """Have this process wait long for broker and store, whatever it asks them: the machine may stand still."""
    unhurry(patch)
    for limit in LIMITS:
        patch.setattr(limit, HANG_S)
    patch.setattr("memsluice.devstack.control.READY_TIMEOUT_S", START_S)
