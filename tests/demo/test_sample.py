"""The sample is a day worth watching, generated alike every time, and its secrets stay on the script's side."""

from collections import Counter
from dataclasses import replace

from memsluice.client.build import build
from memsluice.gate.reasons import WORDS
from memsluice_lab import cast
from memsluice_lab.demo.forge import message_of, write_of
from memsluice_lab.demo.sample.day import WORLDS, day
from memsluice_lab.demo.sample.script import Act, Attacker, Scene


def fields(scene: Scene) -> dict[str, object]:
    """Return the payload fields of a scene."""
    return {
        "id": f"t.{scene.seq}",
        "tenant": scene.tenant,
        "time": "2026-03-02T08:00:00Z",
        "agent": scene.agent,
        "principal": scene.principal,
        "session": scene.session,
    }


def test_the_day_is_large_enough_and_has_every_attacker() -> None:
    """At least 300 events, three tenants, several agents and people each, and every row of the threat model."""
    scenes = day()
    assert len(scenes) >= 300
    assert {scene.tenant for scene in scenes} == {world.tenant for world in WORLDS}
    assert len(WORLDS) == 3
    for world in WORLDS:
        own = [scene for scene in scenes if scene.tenant == world.tenant and scene.attacker is None]
        assert {scene.agent for scene in own if scene.agent} >= set(world.agents)
        assert {scene.principal for scene in own} >= set(world.people)
        assert any(scene.text == world.fact for scene in own)
    assert {scene.attacker for scene in scenes} - {None} == set(Attacker)
    assert {scene.act for scene in scenes} == set(Act)


def test_the_same_seed_gives_the_same_day_and_another_seed_another() -> None:
    """A demo can be talked about: what one person saw, another sees."""
    assert day() == day()
    assert day(1) != day(2)


def test_the_day_runs_from_morning_to_evening() -> None:
    """Scenes come in order of the clock, spread over the whole working day."""
    minutes = [scene.minute for scene in day()]
    assert minutes == sorted(minutes)
    per_hour = Counter(int(minute // 60) for minute in minutes)
    assert set(per_hour) == set(range(10))


def test_every_session_is_opened_by_the_platform_first() -> None:
    """Honest agents work in sessions that the runtime opened, so what is contained is contained for a reason."""
    opened = set()
    for scene in day():
        if scene.act is Act.OPEN:
            opened.add(scene.session)
        elif scene.attacker is None and scene.act in (Act.WRITE, Act.ASK, Act.SEE):
            assert scene.session in opened, scene


def test_no_honest_sentence_keeps_an_unfilled_slot() -> None:
    """What people read is language, not a template."""
    assert not [scene.text for scene in day() if "{" in scene.text or "  " in scene.text]


def test_what_the_script_knows_never_reaches_the_gate() -> None:
    """An event is the same bytes whether the script calls it an attack or not."""
    tenants = [world.tenant for world in WORLDS]
    _, _, signers = cast.in_memory(tenants, seed="t")
    for scene in day():
        if scene.act is not Act.WRITE:
            continue
        blank = replace(scene, attacker=None)
        messages = [
            build(write_of(each, fields(each)), [signers[each.tenant, each.source]], source="/t")
            for each in (scene, blank)
        ]
        assert messages[0] == messages[1]


def test_a_tampered_message_differs_in_the_signed_bytes_alone() -> None:
    """The tampering scene really changes what was signed and keeps the signature."""
    _, _, signers = cast.in_memory([world.tenant for world in WORLDS], seed="t")
    scene = next(scene for scene in day() if scene.act is Act.TAMPER)
    tampered = message_of(scene, fields(scene), signers)
    whole = build(write_of(scene, fields(scene)), [signers[scene.tenant, scene.source]], source="/t")
    assert tampered[1] != whole.value
    assert len(tampered[1] or b"") > 0


def test_reasons_have_words() -> None:
    """A person reads why in plain words: every reason of bad input has some."""
    from memsluice import errors

    def codes(kind: type[errors.InputError]) -> set[str]:
        return {kind.code}.union(*(codes(child) for child in kind.__subclasses__()))

    assert codes(errors.InputError) - {"input"} <= set(WORDS)
