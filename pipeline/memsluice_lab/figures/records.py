"""The real streams, built by their own program from the real records into a folder that is gone afterwards."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memsluice.errors import ConfigError
from memsluice_lab.figures.registry import Setting
from memsluice_lab.streams import streams_in

BUILD_S_MAX = 300


def build(source: Path, folder: Path, *, seed: int | None = None) -> list[Path]:
    """Build the streams of ``source`` (``data/``, ``bench/``) into a folder. Raises ConfigError where that fails.

    ``seed`` chooses another draw of the same records; None is the program's own.
    """
    program = source / "bench" / "build_streams.py"
    for needed in (program, source / "data"):
        if not needed.exists():
            raise ConfigError(f"there is no {needed.relative_to(source)} in {source}")
    command = [sys.executable, str(program), str(source / "data"), str(folder)]
    command += [] if seed is None else ["--seed", str(seed)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_S_MAX, check=False)
    if built.returncode != 0:
        raise ConfigError(f"build_streams.py failed: {built.stderr.strip()[-500:]}")
    return streams_in(folder)


@contextmanager
def streams(setting: Setting) -> Iterator[list[Path]]:
    """Yield the paths of all streams. Raises ConfigError where the records are absent or their program fails."""
    source = setting.records()
    with tempfile.TemporaryDirectory(prefix="memsluice-streams-") as folder:
        paths = build(source, Path(folder))
        setting.say(f"{len(paths)} streams built: {', '.join(path.stem for path in paths)}")
        yield paths
