"""What the console's tests over the real broker share."""

import pytest
from tests.held.test_stack import HANG_S

from memsluice.console.pages import commands, proposals
from memsluice.operations.notices import sending


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the console wait for the gate's answer, and a notice for its receiver, as long as a busy machine needs: a
    page is told of a later answer, too, but in other words."""
    for module in (commands, proposals):
        monkeypatch.setattr(module, "WAIT_S", HANG_S)
    for name in ("SEND_S_MAX", "STEP_S_MAX"):
        monkeypatch.setattr(sending, name, HANG_S)
