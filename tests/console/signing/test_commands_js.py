"""The console's ``commands.js``: the bytes that it makes are the gate's own, in a browser and in node alike."""

import base64
import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.console.signing.node import node
from tests.unhurried import UNHURRIED

from memsluice.client import requests
from memsluice.client.build import envelope_of
from memsluice.envelope import dsse
from memsluice.envelope.keys import Ed25519Key
from memsluice.events.models import Action, parse_payload
from memsluice.events.names import EventType
from memsluice.operations.commands.signing import TYPE

VECTORS = json.loads((Path(__file__).resolve().parents[3] / "docs" / "command-vectors.json").read_text())
MAKE = """
import * as commands from "./commands.js";
const keys = {};
for (const [kid, seed] of Object.entries(given.keys)) {
  const pkcs8 = [48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32, ...commands.unbase64(seed)];
  const key = await crypto.subtle.importKey("pkcs8", new Uint8Array(pkcs8), "Ed25519", false, ["sign"]);
  keys[kid] = { kid, sign: async (bytes) => new Uint8Array(await crypto.subtle.sign("Ed25519", key, bytes)) };
}
told = [];
for (const one of given.commands) {
  const shown = await commands.sha256(commands.utf8(one.content));
  const command = commands.decision({ ...one.entry, shown }, one.action, one.options);
  const text = commands.commandText(command);
  const signed = commands.signedBytes(commands.COMMAND_TYPE, commands.utf8(text));
  const envelope = await commands.envelope(command, keys["vector-ana"]);
  const both = await commands.cosigned(envelope, keys["vector-bob"]);
  told.push({ text, shown, signed: await commands.sha256(signed), envelope, approval: both.signatures[1] });
}
"""
"""Makes every command of the vectors; the private halves of the vectors are known, so that they can be imported."""


def expected() -> list[dict[str, object]]:
    """Return what every command of the vectors comes to."""
    return [
        {
            "text": one["command"],
            "shown": one["entry"]["shown"],
            "signed": one["signed_bytes_sha256"],
            "envelope": one["envelope"],
            "approval": one["approval"],
        }
        for one in VECTORS["commands"]
    ]


def test_the_vectors_are_commands_that_the_gate_reads() -> None:
    """Each is a command by the gate's own reading, its signature holds, and it says what its entry is."""
    for one in VECTORS["commands"]:
        keys = {
            kid: Ed25519Key(kid, secret=base64.b64decode(seed), public=None) for kid, seed in VECTORS["keys"].items()
        }
        both = {**one["envelope"], "signatures": [*one["envelope"]["signatures"], one["approval"]]}
        payload = dsse.verify(dsse.parse(both), TYPE, keys.__getitem__)
        assert payload.decode() == one["command"]
        command = parse_payload(EventType.COMMAND, payload)
        assert (command.target, command.digest) == (one["entry"]["target"], one["entry"]["digest"])
        assert one["entry"]["shown"] == sha256(one["content"].encode()).hexdigest()


def test_node_makes_the_bytes_of_the_vectors(tmp_path) -> None:
    """The page's module comes to the same bytes, digests and signatures as the gate's programs."""
    assert node(tmp_path, MAKE, VECTORS) == expected()


def test_a_browser_makes_the_bytes_of_the_vectors(blank) -> None:
    """A real browser does too, on a page with the console's own policy of what a script may do."""
    script = MAKE.replace(
        'import * as commands from "./commands.js";', 'const commands = await import("/static/commands.js");'
    )
    assert blank.evaluate(f"async (given) => {{ let told; {script}; return told; }}", VECTORS) == expected()


def test_the_limits_are_the_gates(tmp_path) -> None:
    """What is too large for a command, or for a plan, is told before anything is signed, by the gate's own numbers."""
    script = """
import * as c from "./commands.js";
import * as d from "./deciding.js";
told = {
  held_chars_max: c.HELD_CHARS_MAX, reason_chars_max: c.REASON_CHARS_MAX, name_chars_max: c.NAME_CHARS_MAX,
  valid_s: c.VALID_S, proposed_valid_s: c.PROPOSED_VALID_S, entries_max: d.ENTRIES_MAX, claim_s: d.CLAIM_S,
};
"""
    assert node(tmp_path, script, None) == VECTORS["limits"]


def test_the_page_decides_what_the_command_line_decides(tmp_path) -> None:
    """Which states an action is offered for, and in which one it leaves a write, is said once for all three desks."""
    script = 'import { DECIDES } from "./deciding.js";\ntold = DECIDES;'
    assert node(tmp_path, script, None) == VECTORS["decides"]


READ = """
import * as commands from "./commands.js";
told = given.map((text) => {
  const payload = commands.base64(commands.utf8(text));
  const proposed = { payloadType: commands.COMMAND_TYPE, payload, signatures: [] };
  try { return commands.opened(proposed).command.action } catch (error) { return error.name + ": " + error.message }
});
"""


def test_bytes_with_two_readings_are_signed_by_nobody(tmp_path) -> None:
    """A name said twice, another order, blanks, an unknown field, a number written oddly: it is refused."""
    good = VECTORS["commands"][0]["command"]
    twice = good.replace('"action":"release"', '"action":"reject","action":"release"')
    odd = [
        twice, f" {good}", good + " ", good.replace(":", ": ", 1), good[:-1] + ',"more":1}', f"\ufeff{good}",
        good.replace("release", "\\u0072elease"), "null", "[]", "{}", good.replace('"reason":""', '"reason":"\\ud800"'),
    ]  # fmt: skip
    told = node(tmp_path, READ, [good, *odd])
    assert told[0] == "release"
    assert [one for one in told[1:] if "Error" not in one and "Unsignable" not in one and ": " not in one] == []
    assert all(":" in one for one in told[1:])


WORD = st.text(st.characters(codec="utf-8"), max_size=60)
NAME = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=20)
KEPT = st.builds(
    dict,
    reason=WORD,
    held=st.one_of(st.none(), st.text(st.characters(codec="utf-8"), min_size=2, max_size=60)),
    parameters=st.dictionaries(NAME.filter(lambda name: not name.isdecimal()), NAME, max_size=4),
    target=NAME,
    ms=st.integers(1_600_000_000_000, 1_900_000_000_000),
)


@settings(max_examples=5, deadline=None, suppress_health_check=UNHURRIED)
@given(many=st.lists(KEPT, min_size=40, max_size=40))
def test_any_command_has_the_same_bytes_on_both_sides(tmp_path, many) -> None:
    """Whatever stands in a reason, a name or a record, the page's text of a command is Python's, byte for byte."""
    key, said = Ed25519Key("k", secret=bytes(32), public=None), []
    for one in many:
        at = datetime.fromtimestamp(one["ms"] // 1_000, UTC)
        command = requests.command(
            "c-1", at, "acme", Action.RELEASE, one["target"], at + timedelta(minutes=15), reason=one["reason"],
            parameters=one["parameters"], held=one["held"],
        )  # fmt: skip
        said.append(base64.b64decode(envelope_of(command, [key])["payload"]).decode())
    script = """
import * as commands from "./commands.js";
told = given.map((one) => commands.commandText({
  id: "c-1", tenant: "acme", time: commands.moment(one.ms), action: "release", target: one.target,
  expires_at: commands.moment(one.ms + commands.VALID_S * 1000), reason: one.reason,
  parameters: Object.fromEntries(one.pairs), held: one.held,
}));
"""
    sent = [{**one, "pairs": list(one["parameters"].items())} for one in many]
    assert node(tmp_path, script, sent) == said


@pytest.mark.parametrize("action", ["release", "replay"])
def test_a_write_too_large_to_be_carried_is_not_released(tmp_path, action) -> None:
    """It says so before anything is signed; a rejection of it says nothing of what was shown, as on a terminal."""
    entry = {**VECTORS["commands"][0]["entry"], "sealed": "x" * (VECTORS["limits"]["held_chars_max"] + 1)}
    script = """
import * as commands from "./commands.js";
const made = (action) => {
  try { return commands.decision(given.entry, action, { id: "c", nowMs: 0 }) } catch (error) { return error.message }
};
told = [made(given.action), made("reject")];
"""
    refused, rejected = node(tmp_path, script, {"entry": entry, "action": action})
    assert "too large" in refused
    assert (rejected["held"], "shown" in rejected["parameters"]) == (None, False)
