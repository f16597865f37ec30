"""What the tests of the commands share: a home with a played day, and a command in a process of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.trace.command import run

from memsluice.deployment.home import Home
from memsluice.envelope.seals import open_
from memsluice.events.names import VERDICT
from memsluice.keystore.store import KeyStore
from memsluice.runtimes.embedded import LocalLog
from memsluice.topics.names import AUDIT


@dataclass(frozen=True)
class Played:
    home: Path
    verdicts: Sequence[dict[str, Any]]

    def reported(self, code: str) -> str:
        """Return the id of the first event with a finding, whatever was decided."""
        found = (v["event_id"] for v in self.verdicts if code in {one["code"] for one in v["findings"]})
        return str(next(found))

    def first(self, code: str) -> str:
        """Return the id of the first event that a reason was given for."""
        return str(next(verdict["event_id"] for verdict in self.verdicts if code in verdict["reasons"]))


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """A home with what one tenant's day of the demo left."""
    home = tmp_path_factory.mktemp("played")
    code, _, said = run("demo", "--home", str(home), "--tenant", "casa-lindqvist")
    assert code == 0, said
    keyring, log = KeyStore(home).keyring(), LocalLog(Home(home).log_file)
    verdicts = [open_(keyring, (one.key or b"").decode(), VERDICT, one.value or b"") for one in log.read(AUDIT)]
    log.close()
    return Played(home, verdicts)
