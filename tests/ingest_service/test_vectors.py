"""What other languages sign by: the test vectors, and the TypeScript example, which node runs here."""

import base64
import json
import os
import re
import subprocess
from pathlib import Path

from tests.ingest_service.place import ADA
from tests.patience import HANG_S

from memsluice.envelope import dsse
from memsluice.envelope.codec import from_json
from memsluice.envelope.keys import Ed25519Key, HmacKey
from memsluice.events import cloudevent
from memsluice.events.models import parse_payload

TOP = Path(__file__).resolve().parents[2]
VECTORS = TOP / "docs" / "signing-vectors.json"
EXAMPLE = TOP / "examples" / "typescript" / "memsluice.ts"
TYPES = (
    (re.compile(r"^type .*?\};\n", re.MULTILINE | re.DOTALL), ""),
    (re.compile(r" as (\{[^}]*\}|\w+(\[\])?)"), ""),
    (re.compile(r"\): (Promise<\w+>|\w+(\[\])?)(?= (\{|=>))"), ")"),
    (re.compile(r"(\w+): (Credential|Buffer|Event|Vector(\[\])?|string|object)(?=[,)])"), r"\1"),
)
"""What node before 22.18 cannot take out of the example by itself."""


def node(tmp_path: Path, *words: str) -> str:
    """Run the example and return what it prints; its types are taken out, which is all that a compiler would do."""
    text = EXAMPLE.read_text(encoding="utf-8")
    for pattern, instead in TYPES:
        text = pattern.sub(instead, text)
    file = tmp_path / "memsluice.mjs"
    file.write_text(text, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    result = subprocess.run(
        ["node", str(file), *words], capture_output=True, text=True, timeout=HANG_S, env=environment
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_the_vectors_are_what_the_gate_takes() -> None:
    """Each is an event by the gate's own reading, its signature holds over its payload, and its attributes agree."""
    for vector in json.loads(VECTORS.read_text())["vectors"]:
        secret = base64.b64decode(vector["secret"])
        kid = vector["keyid"]
        verifier = HmacKey(kid, secret) if vector["public"] is None else Ed25519Key(
            kid, secret=None, public=base64.b64decode(vector["public"])
        )  # fmt: skip
        headers = tuple((name.replace("ce-", "ce_"), text.encode()) for name, text in vector["headers"].items())
        received = cloudevent.read(None, json.dumps(vector["envelope"]).encode(), headers)
        envelope = dsse.parse(received.envelope)
        payload = dsse.verify(envelope, vector["payload_type"], {kid: verifier}.__getitem__)
        assert payload.decode() == vector["payload"]
        assert base64.b64decode(vector["signed_bytes"]).endswith(payload)
        cloudevent.check_agreement(received, parse_payload(received.type, payload))


def test_typescript_signs_what_the_vectors_say(tmp_path) -> None:
    """Another implementation comes to the same bytes and signatures, of Ed25519 and HMAC, beyond ASCII too."""
    assert node(tmp_path, "--vectors", str(VECTORS)) == "4 vectors hold"


def test_a_wrong_signature_is_noticed_by_the_example(tmp_path) -> None:
    """The check of the vectors can fail: one other character and it names the vector."""
    made = json.loads(VECTORS.read_text())
    made["vectors"][1]["payload"] += " "
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(made))
    try:
        node(tmp_path, "--vectors", str(file))
    except AssertionError:
        return
    raise AssertionError("a changed payload passed")


def test_typescript_publishes_and_hears_what_became_of_it(service, place, tmp_path) -> None:
    """The example against a running service: signed there, accepted, landed, and told; both kinds of key."""
    for credential, content in ((place.ours, "Ada collects stamps."), (place.other, "Ada keeps bees.")):
        file = str(place.keys.credential_path(credential.kid))
        told = node(tmp_path, service.url, file, "acme", content)
        assert told == "landed: it is in memory, and agents can read it"
    last = [one for one in place.records("memory.events.v1", 4) if b"payloadType" in (one.value or b"")][-1]
    payload = json.loads(base64.b64decode(from_json(last.value)["payload"]))
    assert (payload["content"], payload["session"]) == ("Ada keeps bees.", ADA.session)
