"""Backends whose packages need older libraries than the lock has: environments of their own, laid over this one.

``optimum-onnx`` and ``optimum-intel`` allow no transformers 5.6 or newer, so that no environment holds them beside what
everything else is tested with. Whoever installs a backend gets these older ones; ``backends/NAME.txt`` pins them.
"""

import json
import os
import site
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from memsluice.envelope.space import Space
from memsluice_lab.figures.installing import run, uv

TOP = Path(__file__).resolve().parents[2]
ENCODE = """
import json, sys
from memsluice.encoder import load_encoder, space_of_encoder
encoder = load_encoder(sys.argv[1])
space = space_of_encoder(encoder)
vectors = encoder.encode(json.loads(sys.argv[2])).tolist()
ran = type(encoder._model[0].auto_model).__name__
print(json.dumps({"model": space.model, "dimensions": space.dimensions, "vectors": vectors, "ran": ran}))
"""
ENCODE_S_MAX = 900


def environment(folder: Path, backend: str) -> Path:
    """Make an environment with a backend's pinned packages, and this one's for the rest; return its interpreter."""
    run(uv(), "venv", "--quiet", "--python", sys.executable, folder)
    python = folder / "bin" / "python"
    pins = Path(__file__).parent / "backends" / f"{backend}.txt"
    run(uv(), "pip", "install", "--quiet", "--no-deps", "--python", python, "-r", pins)
    (inside,) = folder.glob("lib/python*/site-packages")
    added = [f"site.addsitedir({path!r})" for path in site.getsitepackages()]
    (inside / "beneath.pth").write_text(f"import site; {'; '.join(added)}\n")
    return python


def encode(python: Path, setting: str, texts: Sequence[str]) -> tuple[Space, np.ndarray, str]:
    """Return an encoder's space, the vectors that it gives, shape (n, d), and the class of what ran, in ``python``."""
    variables = {**os.environ, "PYTHONPATH": str(TOP / "pipeline"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [python, "-c", ENCODE, setting, json.dumps(texts)], capture_output=True, text=True, timeout=ENCODE_S_MAX,
        env=variables, stdin=subprocess.DEVNULL, cwd=python.parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4_000:]
    told = json.loads(done.stdout.splitlines()[-1])
    return Space(told["model"], told["dimensions"]), np.array(told["vectors"], np.float32), str(told["ran"])
