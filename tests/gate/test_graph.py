"""Facts as a graph: what contradicts, what corroborates, and what one writer's facts build."""

from collections.abc import Iterable
from typing import Any

import pytest
from tests.gate.build import TENANT, classifier
from tests.gate.landed import Shop
from tests.gate.test_replay import replay

from memsluice.envelope.verdict import Decision, Verdict
from memsluice.events.facts import FACTS_MAX, Fact, render
from memsluice.gate.checks.graph import EDGES_MAX, SAID_MAX
from memsluice.gate.detectors.rarity.memory import Memory
from memsluice.gate.policy.model import default, laid_over
from memsluice.gate.state.kinds import CLAIM, CLOSED, NODE, RELATION
from memsluice.gate.state.windows import DAY_MS

PEOPLE = ("ana", "ben", "cleo", "dan", "eva")


def shop(**graph: Any) -> Shop:
    """Return a shop that holds by these rules, with people's sessions of their own and nothing held for its wording."""
    made = Shop(laid_over(default().default, {"graph": {"action": "hold", **graph}, "writes_per_day": {}}))
    made.memory, made.model = Memory.empty(50, 50), classifier()
    return made


def say(core: Shop, who: str, *facts: tuple[str, str, str], channel: str = "user", **fields: Any) -> Verdict:
    """Return the verdict on one principal's facts."""
    content = render(Fact(*one) for one in facts)
    return core.write(channel, content, kind="facts", principal=who, session=f"of-{who}", **fields).verdict


def numbers(verdict: Verdict, code: str) -> dict[str, Any]:
    """Return a finding's details."""
    return next(dict(finding.detail) for finding in verdict.findings if finding.code == code)


def agreed(core: Shop, *whose: str) -> None:
    """Let people say the same of the depot's gate."""
    for who in whose or ("ana", "ben"):
        assert say(core, who, ("depot", "opens at", "six")).decision is Decision.ACCEPT


def test_what_two_others_agree_on_is_not_contradicted_unseen() -> None:
    """A third person's other fact is held, whatever case and width its words have; its verdict names the line."""
    core = shop()
    agreed(core)
    verdict = say(core, "cleo", ("yard", "is", "closed"), ("DEPOT ", "Opens  At", "nine"))
    assert (verdict.decision, verdict.reasons) == (Decision.QUARANTINE, ("graph.contradicts",))
    assert numbers(verdict, "graph.contradicts") == {"lines": [2], "principals": 2}


def test_one_principal_s_word_binds_nobody() -> None:
    """However often one says it: agreement is of principals, and one's own fact may be corrected."""
    core = shop()
    for _ in range(3):
        agreed(core, "ana")
    assert say(core, "ben", ("depot", "opens at", "nine")).decision is Decision.ACCEPT
    assert say(core, "ana", ("depot", "opens at", "seven")).decision is Decision.ACCEPT


def test_a_relation_with_several_objects_contradicts_nothing() -> None:
    """Two principals each said two things of one subject by it: so may a third. One alone switches nothing off."""
    core = shop()
    likes = [("tea", "rice"), ("tea", "cake")]
    assert say(core, "ana", *(("tom", "likes", one) for one in likes[0])).decision is Decision.ACCEPT
    assert say(core, "ben", ("tom", "likes", "tea")).decision is Decision.ACCEPT
    assert say(core, "cleo", ("tom", "likes", "milk")).reasons == ("graph.contradicts",)
    assert say(core, "ben", ("tom", "likes", "cake")).decision is Decision.ACCEPT
    assert say(core, "cleo", ("tom", "likes", "milk"), id="again").decision is Decision.ACCEPT


def test_what_was_taken_out_or_is_outside_content_agrees_with_nobody() -> None:
    """An entry that was revoked counts no more; a tool's never did."""
    core = shop()
    agreed(core)
    core.order("revoke", "e1")
    assert say(core, "cleo", ("depot", "opens at", "nine")).decision is Decision.ACCEPT
    other = shop()
    agreed(other, "ana")
    assert say(other, "ben", ("depot", "opens at", "six"), channel="tool").decision is Decision.CONTAIN
    assert say(other, "cleo", ("depot", "opens at", "nine")).decision is Decision.ACCEPT


def test_what_is_contained_is_reported_alone() -> None:
    """A tool's fact that contradicts people is data in its own zone, and its verdict says so."""
    core = shop()
    agreed(core)
    verdict = say(core, "cleo", ("depot", "opens at", "nine"), channel="tool")
    assert verdict.decision is Decision.CONTAIN
    assert verdict.has("graph.contradicts")


def test_by_default_it_is_reported_and_lands() -> None:
    """The shipped policy shows the contradiction in the verdict, and holds nothing for it."""
    core = shop(action="report")
    agreed(core)
    verdict = say(core, "cleo", ("depot", "opens at", "nine"))
    assert verdict.decision is Decision.ACCEPT
    assert verdict.has("graph.contradicts")
    assert default().default.graph.action == "report"


def test_off_remembers_nothing() -> None:
    """No row is written, and nothing is said."""
    core = shop(action="off")
    agreed(core)
    assert not say(core, "cleo", ("depot", "opens at", "nine")).has("graph.contradicts")
    assert not [key for key in core.rows if key.startswith(f"{TENANT}\0graph\0".encode())]


def test_other_writes_are_no_facts() -> None:
    """A sentence with bars in it is one, and costs no row."""
    core = shop()
    core.write("user", "depot | opens at | six")
    assert not [key for key in core.rows if key.startswith(f"{TENANT}\0graph\0".encode())]


def test_what_others_said_corroborates() -> None:
    """All facts of a write must have been said by enough others; its own earlier words do not count."""
    core = shop()
    agreed(core)
    verdict = say(core, "cleo", ("depot", "opens at", "six"))
    assert verdict.decision is Decision.ACCEPT
    assert numbers(verdict, "graph.corroborated") == {"lines": [1], "principals": 2}
    assert not say(core, "dan", ("depot", "opens at", "six"), ("yard", "is", "wet")).has("graph.corroborated")
    assert not say(core, "ana", ("depot", "opens at", "six")).has("graph.hub")


def test_a_held_contradiction_is_replayed_by_the_rules_of_its_day() -> None:
    """Under the same rules it stays held; under ones that only report it lands, since somebody decided that."""
    core = shop()
    agreed(core)
    assert say(core, "cleo", ("depot", "opens at", "nine")).decision is Decision.QUARANTINE
    held = core.written["e2"]
    assert replay(core, held).verdict.decision is Decision.QUARANTINE
    core.policy = laid_over(core.policy, {"graph": {"action": "report"}})
    assert replay(core, held).verdict.decision is Decision.ACCEPT


def test_a_replay_does_not_land_what_only_forgot() -> None:
    """Nobody changed the rule, but one who agreed was revoked: it stays held until somebody reads it."""
    core = shop()
    agreed(core)
    assert say(core, "cleo", ("depot", "opens at", "nine")).decision is Decision.QUARANTINE
    core.order("revoke", "e1")
    verdict = replay(core, core.written["e2"]).verdict
    assert verdict.has("replay.recalibrated")
    assert verdict.decision is Decision.QUARANTINE


def village(core: Shop, streets: Iterable[int] = range(20)) -> None:
    """Let people each introduce neighbours, who know one or two more, two days ago."""
    for number in streets:
        who = PEOPLE[number % len(PEOPLE)]
        facts = (
            (f"house {number}", "stands in", f"street {number}"),
            (f"house {number}", "belongs to", f"owner {number}"),
        )
        verdict = say(core, who, *facts, append_ms=core_ms(core) - 2 * DAY_MS)
        assert verdict.decision is Decision.ACCEPT
        assert not any(finding.code.startswith("graph.") for finding in verdict.findings)


def core_ms(core: Shop) -> int:
    """Return a time that rises with each event."""
    return 1_780_000_000_000 + 30 * DAY_MS + core.offset * 1_000


def test_a_hub_is_one_principal_s_node_with_others_around_it() -> None:
    """z_deg > kappa_deg: one new node that is linked to everybody's; a person with many facts of their own is none."""
    core = shop(rings_per_day=10_000)
    village(core, range(40))
    own = [("mallory", "owns", f"book {number}") for number in range(30)]
    for at in range(0, 30, 10):
        assert say(core, "mallory", *own[at : at + 10], append_ms=core_ms(core)).decision is Decision.ACCEPT
    links = [("portal", "serves", f"house {number}") for number in range(30)]
    found = [say(core, "mallory", *links[at : at + 10], append_ms=core_ms(core)) for at in range(0, 30, 10)]
    assert any("graph.hub" in verdict.reasons for verdict in found)
    told = next(numbers(verdict, "graph.hub") for verdict in found if verdict.has("graph.hub"))
    assert told["z"] > core.policy.graph.kappa_degree


def test_a_hijack_turns_a_node_s_links_to_its_writer_s_own() -> None:
    """Many of the last links of what others built lead to nodes that one principal prepared; what is new about somebody
    known is no shortcut, however much of it one says."""
    core = shop()
    for who in ("ana", "ben", "cleo"):
        say(core, who, ("clinic", f"known to {who}", f"ward of {who}"), append_ms=core_ms(core) - 2 * DAY_MS)
    plain = [("clinic", "has", f"room {number}") for number in range(9)]
    assert say(core, "dan", *plain, append_ms=core_ms(core)).decision is Decision.ACCEPT
    core = shop()
    for who in ("ana", "ben", "cleo"):
        say(core, who, ("clinic", f"known to {who}", f"ward of {who}"), append_ms=core_ms(core) - 2 * DAY_MS)
    own = [(f"m-{number}", "is", f"trap {number}") for number in range(1, 5)]
    assert say(core, "mallory", *own, append_ms=core_ms(core)).decision is Decision.ACCEPT
    few = say(core, "mallory", ("clinic", "pays to", "m-1"), append_ms=core_ms(core))
    assert few.decision is Decision.ACCEPT
    more = say(core, "mallory", ("clinic", "asks", "m-3"), ("clinic", "trusts", "m-2"), append_ms=core_ms(core))
    assert more.reasons == ("graph.hijack",)
    assert numbers(more, "graph.hijack")["share"] > core.policy.graph.contamination


def test_a_cluster_closes_rings_among_its_writer_s_own() -> None:
    """Every pair of five new nodes linked is ten links, six of them rings; a tree as large has none."""
    core = shop(rings_per_day=5)
    tree = [(f"leaf {number // 2}", "grows", f"leaf {number}") for number in range(1, 16)]
    assert say(core, "ben", *tree, append_ms=core_ms(core)).decision is Decision.ACCEPT
    names = [f"node {number}" for number in range(5)]
    pairs = [(one, "praises", other) for at, one in enumerate(names) for other in names[at + 1 :]]
    verdict = say(core, "mallory", *pairs, append_ms=core_ms(core))
    assert verdict.reasons == ("graph.cluster",)
    assert numbers(verdict, "graph.cluster")["rings"] == 6


@pytest.mark.parametrize("tries", [40])
def test_rows_stay_small_and_nobody_pushes_out_another(tries: int) -> None:
    """One who says ever more of one subject has as many statements and edges kept as there is room, and what others
    said of it stays."""
    core = shop(action="report")
    agreed(core)
    for number in range(tries):
        say(core, "mallory", *(("depot", "opens at", f"{number}-{at}") for at in range(FACTS_MAX)))
    keys = [key for key in core.rows if key.startswith(CLAIM.key(TENANT))]
    claims = [CLAIM.load(core.rows[key]) for key in keys]
    said = max((claim.said for claim in claims), key=len)
    assert len(said) == SAID_MAX
    assert len({one.by for one in said}) == 3
    nodes = [NODE.load(core.rows[key]) for key in core.rows if key.startswith(NODE.key(TENANT))]
    assert max(len(node.edges) for node in nodes) == EDGES_MAX
    assert len([key for key in core.rows if key.startswith(RELATION.key(TENANT))]) == 1
    assert say(core, "cleo", ("depot", "opens at", "nine")).has("graph.contradicts")


def test_what_a_held_write_would_add_is_not_remembered() -> None:
    """A contradiction that is held agrees with no later one, and closes no ring."""
    core = shop(rings_per_day=0)
    agreed(core)
    for who in ("cleo", "dan"):
        assert say(core, who, ("depot", "opens at", "nine")).decision is Decision.QUARANTINE
    verdict = say(core, "eva", ("depot", "opens at", "nine"))
    assert numbers(verdict, "graph.contradicts")["principals"] == 2
    assert not [key for key in core.rows if key.startswith(CLOSED.key(TENANT))]
