"""The curl examples of the page, as they stand there, against a running service."""

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.docs.blocks import agrees, blocks
from tests.ingest_service.test_events import a_write
from tests.memory.conftest import ORDER
from tests.patience import HANG_S

TOP = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_curl_examples_print_what_the_page_shows(service, place) -> None:
    """Whoever copies a line gets the answer that stands below it."""
    held = service.post(a_write("w-17", ORDER), place.ours)
    assert service.status(held, place.ours)["status"] == "held"
    examples = [one for one in blocks(TOP / "docs" / "http-ingest.md") if one.text.startswith("curl")]
    assert len(examples) == 2
    for example in examples:
        done = subprocess.run(
            ["bash", "-euc", example.text], capture_output=True, text=True, timeout=HANG_S,
            env={"PATH": "/usr/bin:/bin", "INGEST": service.url, "TOKEN": service.token(place.ours), "no_proxy": "*"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert agrees(example.prints or "", done.stdout), done.stdout
