"""One live worker a replica name: no broker is needed to refuse the second."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memsluice.errors import ConfigError
from memsluice.runtimes.kafka.replica import held
from memsluice.runtimes.kafka.spec import StageSpec
from memsluice.runtimes.kafka.worker import run_worker

from .dummies import Stamp
from .harness import HANG_S, NOWHERE

HOLD = """
import sys, time
from pathlib import Path
from memsluice.runtimes.kafka.replica import held
with held([Path(sys.argv[1])], "0"):
    print("held", flush=True)
    time.sleep(600)
"""


def _spec(app_id: str) -> StageSpec:
    return StageSpec(
        name="s",
        app_id=app_id,
        user="admin",
        inputs=("in",),
        outputs=("out",),
        kind="batch",
        stage=lambda: Stamp("out"),
    )


def test_a_second_worker_of_a_name_is_refused_and_told_of_the_first(tmp_path: Path) -> None:
    """Two of a name would fence each other: the second ends at once, and reads which process it is and what to do."""
    with (
        held([tmp_path / "two" / "0"], "0"),
        pytest.raises(ConfigError, match=rf"pid {os.getpid()}\).*replica '0'.*--replica"),
    ):
        run_worker([_spec("one"), _spec("two")], NOWHERE, data_dir=tmp_path)
    with held([tmp_path / "one" / "0", tmp_path / "two" / "0"], "0"):  # nothing of the refused one is left
        pass


def test_other_names_and_other_stages_do_not_meet(tmp_path: Path) -> None:
    """Replicas share partitions, and each stage may have a process of its own under the same name."""
    with (
        held([tmp_path / "seal" / "0"], "0"),
        held([tmp_path / "seal" / "1"], "1"),
        held([tmp_path / "land" / "0"], "0"),
    ):
        pass


def test_a_killed_worker_leaves_its_name_free(tmp_path: Path) -> None:
    """After kill -9 the next worker of the name starts: a lock belongs to a process, not to a file."""
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        with pytest.raises(ConfigError, match=f"pid {child.pid}"), held([tmp_path], "0"):
            pass
        child.kill()
        child.wait(HANG_S)
    with held([tmp_path], "0"):
        pass


@pytest.mark.parametrize("name", ["", "a/../../b", "..", "/elsewhere", "a b", "A", "x" * 64, "a\n", "\x1b]0;x"])
def test_a_replicas_name_stays_in_its_folder(tmp_path: Path, name: str) -> None:
    """A name is one folder below the stage's own; capitals, which Faust cannot tell apart, are no name either."""
    with pytest.raises(ConfigError, match="--replica"):
        run_worker([_spec("one")], NOWHERE, data_dir=tmp_path / "workers", replica=name)
    assert list(tmp_path.iterdir()) == []
