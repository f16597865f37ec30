"""Facts as a graph: what one principal's links build within a day."""

from typing import Any

from tests.gate.build import TENANT
from tests.gate.landed import Shop
from tests.gate.test_claims import detail, say, shop

from memsluice.envelope.verdict import Decision
from memsluice.gate.checks.graph import BUILDERS_MAX, CLUSTER, HIJACK, HUB
from memsluice.gate.state.kinds import NODE
from memsluice.gate.state.windows import DAY_MS

PEOPLE = ("ana", "ben", "cleo", "dan", "eva")
NOW = 1_780_000_000_000


def village(**graph: Any) -> Shop:
    """Return a shop in which five people introduced twenty houses and their owners."""
    core = shop(**graph)
    for number in range(20):
        say(core, PEOPLE[number % 5], (f"house {number}", "belongs to", f"owner {number}"), append_ms=NOW)
    return core


def links(core: Shop, who: str, *facts: tuple[str, str, str], **fields: Any) -> set[str]:
    """Return what is told of one principal's facts, a write each; all of it lands."""
    found = set[str]()
    for fact in facts:
        verdict = say(core, who, fact, append_ms=fields.get("at", NOW))
        assert verdict.decision is Decision.ACCEPT
        found |= {finding.code for finding in verdict.findings if finding.code in (HUB, HIJACK, CLUSTER)}
    return found


def test_a_hub_links_one_node_to_many_that_others_introduced() -> None:
    """From the twelfth link of a day on, in one write or in many; nodes of one's own between them hide none."""
    core = village()
    own = [("portal", "serves", f"mine {number}") for number in range(20)]
    foreign = [("portal", "serves", f"house {number}") for number in range(12)]
    both = [fact for pair in zip(own, foreign, strict=False) for fact in pair]
    assert links(core, "mallory", *both[:-1]) == set()
    assert links(core, "mallory", both[-1]) == {HUB}
    verdict = say(village(), "mallory", *foreign, append_ms=NOW)
    assert detail(verdict, HUB) == {"lines": [12], "links": 12, "least": 12}


def test_nobody_else_s_links_make_or_hide_a_hub() -> None:
    """A principal who writes hundreds of small facts, or large stars, changes nothing for another."""
    for flood in (
        [(f"p{number}", "is", f"q{number}") for number in range(200)],
        [(f"star {number % 3}", "has", f"leaf {number}") for number in range(200)],
    ):
        core = village()
        assert links(core, "mallory", *flood) == set()
        assert links(core, "ana", ("garden club", "meets at", "house 1"), ("garden club", "pays", "owner 2")) == set()
        assert links(core, "finn", *(("portal", "serves", f"house {number}") for number in range(13))) == {HUB}


def test_a_person_with_many_facts_of_his_own_is_none() -> None:
    """New objects are introduced by whoever names them."""
    core = village()
    assert links(core, "ana", *(("ana", "owns", f"book {number}") for number in range(100))) == set()


def test_a_hijack_turns_what_others_built_to_nodes_of_one_s_own() -> None:
    """From the sixth link of a day on; plain facts about somebody known are none, however many."""
    core = village()
    traps = [(f"m-{number}", "is", f"trap {number}") for number in range(6)]
    assert links(core, "mallory", *traps) == set()
    turned = [("house 3", f"pays {number}", f"m-{number}") for number in range(6)]
    assert links(core, "mallory", *turned[:5]) == set()
    assert links(core, "mallory", turned[5]) == {HIJACK}
    assert links(core, "ben", *(("house 4", "has", f"room {number}") for number in range(30))) == set()


def test_a_hijack_is_one_of_what_its_writer_named_first_as_well() -> None:
    """Once somebody else linked a node, it is no longer its introducer's alone."""
    core = village()
    links(core, "mallory", ("clinic", "is in", "town hall"))
    links(core, "ana", ("clinic", "employs", "dr ng"))
    links(core, "mallory", *((f"m-{number}", "is", f"trap {number}") for number in range(6)))
    assert links(core, "mallory", *(("clinic", f"r{number}", f"m-{number}") for number in range(6))) == {HIJACK}


def test_a_cluster_links_one_s_own_nodes_to_each_other() -> None:
    """From the fortieth such link of a day on: all pairs of ten new nodes are 45, nine of which introduce one."""
    core = village(inner_links=36)
    names = [f"node {number}" for number in range(10)]
    pairs = [(one, "praises", other) for at, one in enumerate(names) for other in names[at + 1 :]]
    assert links(core, "mallory", *pairs[:-1]) == set()
    assert links(core, "mallory", pairs[-1]) == {CLUSTER}


def test_a_day_later_it_begins_anew() -> None:
    """Twelve links in two days are not twelve in one."""
    core = village()
    foreign = [("portal", "serves", f"house {number}") for number in range(14)]
    assert links(core, "mallory", *foreign[:7]) == set()
    assert links(core, "mallory", *foreign[7:], at=NOW + DAY_MS + DAY_MS // 2) == set()


def test_rows_stay_small() -> None:
    """A node that everybody links has the names of a few, and ends with the last entry that links it."""
    core = village()
    for number in range(20):
        links(core, f"p{number}", ("house 1", "known to", f"p{number}"))
    nodes = [NODE.load(value) for key, value in core.rows.items() if key.startswith(NODE.key(TENANT))]
    assert max(len(node.builders) for node in nodes) == BUILDERS_MAX
    assert {node.expires_ms for node in nodes} == {NOW + 30 * DAY_MS}
    assert max(len(value) for key, value in core.rows.items() if key.startswith(NODE.key(TENANT))) < 150
