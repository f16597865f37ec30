"""What escapes from the console's pages where all that others chose attacks them, in a real browser."""

import tempfile
from pathlib import Path

from memsluice.encoder import load_encoder
from memsluice_lab.demo.caching_encoder import MemoEncoder
from memsluice_lab.desk.consoles import chromium, served
from memsluice_lab.desk.escapes import SIZES, escapes_of
from memsluice_lab.desk.hostile_home import decorated, filled
from memsluice_lab.figures.registry import Measured, Setting

CONTENTS = 1_000
SHOWN_MAX = 20


def console_escapes(setting: Setting, count: int = CONTENTS) -> Measured:
    """Return how many escapes there are. Raises StateError where a page of the console could not be looked at."""
    with tempfile.TemporaryDirectory(prefix="memsluice-escapes-") as folder:
        encoder = MemoEncoder(load_encoder())
        home = filled(Path(folder) / "home", encoder, count)
        setting.say(f"{count:,} hostile contents were decided by the gate")
        with served(home.home.path) as desk, chromium() as browser:
            desk.serving.kept["encoder"] = encoder
            decorated(home, desk)
            states = desk.serving.index.counts(tenants=None).states
            escapes = escapes_of(browser, desk, count)
            version = browser.version
    rows = [
        ("different contents; held writes of them that wait", f"{count:,}; {states['pending']:,}"),
        ("pages of the console; loads", f"{len(escapes.opened)}; {escapes.loads:,}"),
        ("sizes of the window", ", ".join(f"{name} {width} x {height}" for name, (width, height) in SIZES.items())),
        *((f"… {path}", f"{times:,}") for path, times in sorted(escapes.opened.items())),
        *((f"escape: {kind}", f"{many:,}") for kind, many in escapes.kinds().most_common(SHOWN_MAX)),
        *((f"on {where[:60]} {size}", what) for where, size, what in sorted(escapes.found)[:SHOWN_MAX]),
    ]
    return Measured(float(len(escapes.found)), tuple(rows), (f"Chromium {version}, headless.",))
