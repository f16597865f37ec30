"""Runs the console's own modules under node, which has no page: what they compute alone."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

STATIC = Path(__file__).resolve().parents[3] / "pipeline" / "memsluice" / "console" / "static"


def node(tmp_path: Path, script: str, given: Any = None) -> Any:
    """Run an ES module that imports from ``static/``: it has ``given``, and what it sets ``told`` to is returned.

    Raises AssertionError with what node says where it fails.
    """
    folder = tmp_path / "static"
    if not folder.exists():
        folder.mkdir()
        (folder / "package.json").write_text('{"type": "module"}')
        for file in STATIC.glob("*.js"):
            (folder / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    file = folder / "test-run.js"
    whole = f"const given = {json.dumps(given)};\n{script}\nprocess.stdout.write(JSON.stringify(told ?? null));\n"
    head, body = _imports(whole)
    file.write_text(f"{head}\nlet told;\n{body}", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    ran = subprocess.run(["node", str(file)], capture_output=True, text=True, timeout=600, env=environment)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def _imports(text: str) -> tuple[str, str]:
    lines = text.splitlines()
    return (
        "\n".join(line for line in lines if line.startswith("import ")),
        "\n".join(line for line in lines if not line.startswith("import ")),
    )
