"""Plays streams through the stages of the tree on the path: one half, a stop, the other half. For compare_trees.py.

Run by scripts/compare_trees.py in the folder of a tree, of this one and of older ones alike: a module is looked for
where it lies now, and then where it lay before; what is installed of another tree is passed by.
"""

import argparse
import importlib
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

TREE = Path.cwd().resolve()


def either(*names: str) -> Any:
    """Return the first of some modules that this tree has."""
    for name in names:
        package = find_spec(name.partition(".")[0])
        if package is None or not Path(package.origin or "").resolve().is_relative_to(TREE):
            continue
        try:
            if find_spec(name) is not None:
                return importlib.import_module(name)
        except ModuleNotFoundError:  # of what it lies in
            continue
    raise ModuleNotFoundError(f"{TREE} has none of {', '.join(names)}")


embedded = either("memsluice.runtimes.embedded", "memsluice.stages.embedded")
seal, screen = either("memsluice.stages.seal"), either("memsluice.stages.screen")
streams = either("memsluice_lab.streams", "memsluice.lab.streams")
cast = either("memsluice_lab.cast", "memsluice.lab.cast")
policies = either("memsluice.gate.policy.model", "memsluice.gate.policy")
names = either("memsluice.topics.names")


class Once:
    """The encoder, asked once for each text: a vector does not depend on what is encoded beside it."""

    def __init__(self, encoder: Any) -> None:
        self._encoder, self._known = encoder, dict[str, Any]()
        self.model_id, self.revision, self.dimensions = encoder.model_id, encoder.revision, encoder.dimensions

    def encode(self, texts: Sequence[str]) -> Any:
        """Return one vector a text."""
        import numpy as np

        fresh = [text for text in dict.fromkeys(texts) if text not in self._known]
        if fresh:
            self._known.update(zip(fresh, zip(*self._of(fresh), strict=True), strict=True))
        return np.stack([self._known[text][0] for text in texts])

    def read(self, texts: Sequence[str]) -> tuple[Any, list[Any]]:
        """Return the vectors, and what the wording of each text showed: None of an encoder that reads none."""
        return self.encode(texts), [self._known[text][1] for text in texts]

    def _of(self, texts: list[str]) -> tuple[Any, list[Any]]:
        if hasattr(self._encoder, "read"):
            vectors, wordings = self._encoder.read(texts)
            return vectors, wordings
        return self._encoder.encode(texts), [None] * len(texts)


class Stream:
    """One stream's events, as they are published, and the keys that it is played with."""

    def __init__(self, path: Path) -> None:
        events = list(streams.events_of(streams.read_stream(path)))
        self.events = [event for event in events if isinstance(event, streams.Published)]
        tenants = sorted({event.payload.tenant for event in self.events})
        self._keyring, self._registry, self._signers = cast.in_memory(tenants, seed=path.stem)

    def play(self, log: Path, events: Sequence[Any], encoder: Any) -> None:
        """Start the stages on a log, have these events come in, and stop once all is decided."""
        runtime = embedded.Embedded(
            log,
            seal=seal.SealStage(lambda: self._keyring, lambda: self._registry, encoder, names.PARTITIONS),
            screen=screen.ScreenStage(lambda: self._keyring, policies.default().of, names.PARTITIONS),
            land=None,
            now_ms=lambda: 0,
            durable=False,
        )
        for event in events:
            runtime.append(names.EVENTS, *streams.signed(event, self._signers), append_ms=event.append_ms)
        runtime.run_until_idle()
        runtime.close()


def main() -> None:
    """Play every stream, into a folder of its name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("streams", type=Path, nargs="+")
    parser.add_argument("--halves", type=Path, help="folder that another tree wrote: carry on from its halves too")
    asked = parser.parse_args()
    encoder = Once(either("memsluice.encoder").load_encoder())
    for path in asked.streams:
        stream, folder = Stream(path), asked.out / path.stem
        middle = len(stream.events) // 2
        folder.mkdir()
        stream.play(folder / "half.db", stream.events[:middle], encoder)
        befores = {"whole.db": folder}
        if asked.halves is not None:
            befores["carried.db"] = asked.halves / path.stem
        for name, before in befores.items():
            shutil.copy(before / "half.db", folder / name)
            stream.play(folder / name, stream.events[middle:], encoder)


if __name__ == "__main__":
    main()
