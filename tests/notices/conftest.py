"""Receivers that answer are waited for: on a busy machine a whole process may stand still for half a minute."""

import pytest

from memsluice.operations.notices import sending


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test of what takes too long sets limits of its own."""
    for name in ("SEND_S_MAX", "STEP_S_MAX"):
        monkeypatch.setattr(sending, name, 240.0)
