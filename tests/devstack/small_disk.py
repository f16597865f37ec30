"""A real disk that is small enough to be filled: a file system in memory, mounted for one test."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memsluice.deployment.space import Room

PIECE = 1 << 20


@contextmanager
def mounted(folder: Path, mib: int) -> Iterator[Path]:
    """Give a file system of that size. Skips, with the reason, where this user may mount none."""
    folder.mkdir()
    tried = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=0700", "memsluice-test", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode != 0:
        pytest.skip(f"needs a disk that can be filled, and this user may mount none: {tried.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def may_mount() -> bool:
    """Tell whether this user may mount a file system: tests of a full disk are deselected where it may not."""
    with tempfile.TemporaryDirectory() as folder:
        tried = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "memsluice-test", folder], capture_output=True, check=False
        )
        if tried.returncode == 0:
            subprocess.run(["umount", "-l", folder], check=True)
        return tried.returncode == 0


class Filler:
    """A file that takes what room there is."""

    def __init__(self, disk: Path) -> None:
        self._path = disk / "filler"
        self._disk = disk

    def leave(self, free: int) -> None:
        """Write until at most so many bytes are free."""
        with self._path.open("ab", buffering=0) as file:
            while (left := Room.of(self._disk).free - free) > 0:
                try:
                    file.write(b"\0" * min(PIECE, left))
                except OSError:  # others write too
                    return

    def free(self) -> None:
        """Give all of it back."""
        self._path.unlink()
