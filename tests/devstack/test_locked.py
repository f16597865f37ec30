"""One process at a time: the lock that a home's gate, a worker's folder and the stack's commands stand on."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.devstack.small_disk import Filler, mounted

from memsluice.deployment.locked import locked
from memsluice.errors import StateError

HOLDS = """
import sys, time
from pathlib import Path
from memsluice.deployment.locked import locked
with locked(Path(sys.argv[1]), lambda pid: RuntimeError(pid)):
    print("held", flush=True)
    time.sleep(1000)
"""


def test_a_lock_names_its_holder_and_ends_with_it(tmp_path: Path) -> None:
    """Whoever is second is told at once which process to look at; one that was killed holds nothing."""
    file = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLDS, str(file)], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        for _ in range(2):
            with pytest.raises(StateError, match=f"^{holder.pid}$"), locked(file, StateError):
                pass
    finally:
        holder.kill()
        holder.communicate()
    with locked(file, StateError), pytest.raises(StateError), locked(file, StateError):
        pass
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.mounts
def test_a_lock_is_held_on_a_full_disk(tmp_path: Path) -> None:
    """Its holder's number is a word for others: `stack down` must work where nothing can be written."""
    with mounted(tmp_path / "disk", 1) as disk:
        file = disk / "lock"
        with locked(file, StateError):
            pass
        file.write_bytes(b"")
        Filler(disk).leave(0)
        with locked(file, StateError), pytest.raises(StateError, match="not written yet"), locked(file, StateError):
            pass
