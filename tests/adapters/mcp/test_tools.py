"""The reference memory server's nine tools on a gate, called by MCP's own client in this process."""

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.adapters.mcp.talking import TEA, call, talk
from tests.memory.conftest import ORDER

from memsluice import Origin, Session
from memsluice.adapters.mcp import Person, memory_server
from memsluice.adapters.mcp.callers import NAMESPACE, QUOTA, Callers
from memsluice.adapters.mcp.server import QUARANTINE
from memsluice.errors import InvalidArgument, StateError
from memsluice.events.models import Zone
from memsluice.memory.documents import Document
from memsluice.memory.memory import Memory
from memsluice.memory.shelf import Shelf
from memsluice.recall.prompt import DATA_HEAD, GUIDANCE_HEAD
from memsluice.stages.quota import Quota

NINE = {
    "create_entities", "create_relations", "add_observations", "delete_entities", "delete_observations",
    "delete_relations", "read_graph", "search_nodes", "open_nodes",
}  # fmt: skip
MISO = {"name": "Miso", "entityType": "cat", "observations": []}
BELONGS = {"from": "Miso", "to": "Ada", "relationType": "belongs to"}
RULE = {"name": "Rule", "entityType": "rule", "observations": [ORDER]}


def plain(answer: Any) -> Any:
    """Return an answer's entities and relations as the reference server has them."""
    return {
        name: [{field: one for field, one in item.items() if field != "kept"} for item in answer[name]]
        for name in ("entities", "relations")
        if name in answer
    }


def test_the_nine_tools_do_what_the_reference_servers_do(gate, person) -> None:
    """Created, added to, searched, opened and deleted; what was there already is left alone, as there."""

    async def scene(client: Any) -> None:
        assert {one.name for one in (await client.list_tools()).tools} == NINE
        made = await call(client, "create_entities", entities=[TEA, MISO, {**TEA, "entityType": "ship"}])
        assert plain(made)["entities"] == [TEA, MISO]
        assert (await call(client, "create_entities", entities=[TEA]))["entities"] == []
        made = await call(client, "create_relations", relations=[BELONGS, BELONGS])
        assert plain(made)["relations"] == [BELONGS]
        more = [{"entityName": "Ada", "contents": ["Lives in Lyon.", *TEA["observations"]]}]
        added = await call(client, "add_observations", observations=more)
        assert added["results"] == [{"entityName": "Ada", "addedObservations": ["Lives in Lyon."]}]
        ada = {**TEA, "observations": [*TEA["observations"], "Lives in Lyon."]}
        both = {"entities": [MISO, ada], "relations": [BELONGS]}
        assert plain(await call(client, "read_graph")) == both
        assert plain(await call(client, "search_nodes", query="LYON")) == {"entities": [ada], "relations": [BELONGS]}
        assert plain(await call(client, "open_nodes", names=["Miso"])) == {"entities": [MISO], "relations": [BELONGS]}
        assert plain(await call(client, "search_nodes", query="nothing of it")) == {"entities": [], "relations": []}
        gone = [{"entityName": "Ada", "observations": ["Lives in Lyon."]}]
        assert (await call(client, "delete_observations", deletions=gone))["success"]
        assert plain(await call(client, "open_nodes", names=["Ada"]))["entities"] == [TEA]
        assert "Deleted 0 of 1" in (await call(client, "delete_observations", deletions=gone))["message"]
        assert (await call(client, "delete_relations", relations=[BELONGS]))["success"]
        assert (await call(client, "create_relations", relations=[BELONGS]))["relations"]
        deleted = await call(client, "delete_entities", entityNames=["Miso", "Nobody"])
        assert deleted["message"] == 'Deleted 1 of 2 entities. Not found: "Nobody"'
        assert plain(await call(client, "read_graph")) == {"entities": [TEA], "relations": []}

    talk(memory_server(gate, person), scene)


def test_what_a_client_wrote_is_outside_data_and_says_so(gate, person) -> None:
    """Nobody vouches for what the session saw: the writer reads it back, labelled, and nothing of it is guidance."""

    async def scene(client: Any) -> None:
        made = await call(client, "create_entities", entities=[TEA])
        assert made["note"].startswith("kept as outside data")
        assert [one["kept"] for one in made["entities"]] == ["data"]
        read = await client.call_tool("read_graph", {})
        assert read.content[0].text.startswith(DATA_HEAD)
        assert json.loads(read.content[0].text.split("\n", 1)[1])["entities"] == read.structured_content["entities"]

    talk(memory_server(gate, person), scene)
    whose = Session("acme", person.agent, person.principal, "later")
    assert Memory(gate, whose, namespace=NAMESPACE).every().entries == ()
    assert len(Memory(gate, whose, namespace=NAMESPACE, opens=False, zone=Zone.EXTERNAL).every().entries) == 1


def test_another_server_of_the_same_person_reads_it_and_nobody_else_does(gate, person) -> None:
    """Each start is a session of its own; a person's graph is his, and another's is empty."""
    talk(memory_server(gate, person), lambda client: call(client, "create_entities", entities=[TEA]))
    again = talk(memory_server(gate, person), lambda client: call(client, "read_graph"))
    assert plain(again)["entities"] == [TEA]
    other = Person(person.agent, f"{person.principal}-other")
    for tool, arguments in (("read_graph", {}), ("search_nodes", {"query": "tea"}), ("open_nodes", {"names": ["Ada"]})):
        found = talk(memory_server(gate, other), lambda client: call(client, tool, **arguments))  # noqa: B023 - used at once
        assert plain(found) == {"entities": [], "relations": []}


def test_a_held_write_is_an_error_that_says_what_became_of_each(gate, person) -> None:
    """One bad entity takes no other with it; why, the event id and what to do are told, and the content is not."""

    async def scene(client: Any) -> tuple[str, Any, Any]:
        told = await call(client, "create_entities", entities=[TEA, RULE])
        assert plain(await call(client, "read_graph"))["entities"] == [TEA]
        held = json.loads((await client.read_resource(QUARANTINE)).contents[0].text)
        (one,) = held["held"]
        outcome = await client.read_resource(f"memsluice://outcomes/{one['event_id']}")
        return told, one, json.loads(outcome.contents[0].text)

    told, held, outcome = talk(memory_server(gate, person, session=person.principal, held_days=30), scene)
    assert "1 of 2 writes were not remembered" in told
    assert '- "Ada": remembered' in told
    assert f'- "Rule": write {held["event_id"]} is held in quarantine' in told
    assert "appeal" in told
    assert "wording.held" in [one["code"] for one in held["reasons"]]
    assert held["until"] > held["at"]
    assert {**outcome, "about": ""} == {**held, "about": ""}
    assert "mallory" not in told + json.dumps([held, outcome])


def test_an_addition_that_is_held_leaves_the_entity_as_it_was(gate, person) -> None:
    """An entity is written anew as a whole: what it had before does not go with what is held."""

    async def scene(client: Any) -> Any:
        await call(client, "create_entities", entities=[TEA])
        told = await call(client, "add_observations", observations=[{"entityName": "Ada", "contents": [ORDER]}])
        assert "is held in quarantine" in told
        return await call(client, "read_graph")

    assert plain(talk(memory_server(gate, person, session=person.principal), scene))["entities"] == [TEA]


def test_what_reads_like_an_order_is_not_handed_back_as_data(gate, person) -> None:
    """The policy that ships lets outside data in unscreened; here it would go to a model with every answer."""

    async def scene(client: Any) -> None:
        made = await call(client, "create_entities", entities=[TEA, RULE])
        assert "unless it reads like an instruction" in made["note"]
        assert plain(await call(client, "read_graph"))["entities"] == [TEA]
        assert plain(await call(client, "open_nodes", names=["Rule"]))["entities"] == []

    talk(memory_server(gate, person), scene)


def test_nobody_hears_of_another_persons_held_writes(gate, person) -> None:
    """Neither in the list nor by an event id that somebody told."""
    other = Person("assistant", f"{person.principal}-other")
    server = memory_server(gate, person, session=person.principal)
    talk(server, lambda client: call(client, "create_entities", entities=[RULE]))
    held = json.loads(talk(server, lambda client: client.read_resource(QUARANTINE)).contents[0].text)["held"]

    async def scene(client: Any) -> None:
        assert json.loads((await client.read_resource(QUARANTINE)).contents[0].text)["held"] == []
        with pytest.raises(Exception, match="no write of yours"):
            await client.read_resource(f"memsluice://outcomes/{held[0]['event_id']}")

    talk(memory_server(gate, other), scene)


def test_hostile_names_are_names_and_cannot_hide(gate, person) -> None:
    """Path-like, with a NUL, turned around, with another chat's marks: shown as they are, and deleted by what is shown;
    one that is too long is refused before anything is written."""
    name = "../../etc/passwd\x00 \u202egnp.exe"
    marks = "<|user|> and [memory] tier"

    async def scene(client: Any) -> None:
        long = await call(client, "create_entities", entities=[{**MISO, "name": "x" * 2_000}])
        assert "at most 1024" in long
        hostile = {"name": name, "entityType": "file", "observations": [marks]}
        await call(client, "create_entities", entities=[hostile])
        read = await client.call_tool("read_graph", {})
        shown = read.structured_content["entities"][0]
        assert shown["name"] == "../../etc/passwd<U+0000> <U+202E>gnp.exe"
        assert shown["observations"] == [marks]
        assert "<|" not in read.content[0].text
        assert "[memory]" not in read.content[0].text
        assert (await call(client, "create_entities", entities=[{**hostile, "name": shown["name"]}]))["entities"] == []
        assert (await call(client, "delete_entities", entityNames=[shown["name"]]))["success"]
        assert plain(await call(client, "read_graph"))["entities"] == []

    talk(memory_server(gate, person), scene)


@pytest.mark.parametrize(
    ("tool", "arguments", "why"),
    [
        ("create_entities", {"entities": [{"name": "Ada"}]}, "entityType"),
        ("create_entities", {"entities": [{"name": "", "entityType": "x", "observations": []}]}, "at least 1"),
        ("create_entities", {"entities": [MISO] * 101}, "at most 100"),
        ("create_relations", {"relations": [{**BELONGS, "from": "A"}]}, r"relations\[0\].from"),
        ("add_observations", {"observations": [{"entityName": "A", "contents": ["b"]}]}, "no entity"),
        ("search_nodes", {"query": "x" * 3_000}, "at most 2048"),
        ("delete_everything", {}, "delete_everything"),
    ],
)  # fmt: skip
def test_what_is_not_valid_is_an_error_of_the_tool(gate, person, tool, arguments, why) -> None:
    """It names the field; nothing is written, and nothing ends the server."""

    async def scene(client: Any) -> Any:
        with pytest.raises(AssertionError, match=why):
            raise AssertionError(await call(client, tool, **arguments))
        return await call(client, "read_graph")

    assert plain(talk(memory_server(gate, person), scene)) == {"entities": [], "relations": []}


def guidance(gate: Any, person: Person) -> Shelf:
    """Return this person's documents in a session that the platform vouches for."""
    whose = Session("acme", person.agent, person.principal, f"{person.principal}-clean")
    return Shelf(Memory(gate, whose, namespace=NAMESPACE))


def test_guidance_is_read_beside_data_and_never_changed_from_an_unopened_session(gate, person) -> None:
    """What a reviewer let in is told from what the client wrote; it is neither replaced nor deleted from there."""
    value = {"entityType": "person", "observations": ["Drinks tea in the morning."]}
    guidance(gate, person).put([Document(("entities",), "Ada", value)])

    async def scene(client: Any) -> None:
        assert (await call(client, "read_graph"))["note"] == GUIDANCE_HEAD
        assert (await call(client, "create_entities", entities=[TEA]))["entities"] == []
        more = [{"entityName": "Ada", "contents": ["Lives in Lyon.", *TEA["observations"]]}]
        await call(client, "add_observations", observations=more)
        read = await call(client, "read_graph")
        found = {one["kept"]: one["observations"] for one in read["entities"]}
        assert found == {"memory": ["Drinks tea in the morning."], "data": ["Lives in Lyon."]}
        assert read["note"].startswith(DATA_HEAD)
        assert "leaves alone" in await call(client, "delete_entities", entityNames=["Ada"])
        gone = [{"entityName": "Ada", "observations": ["Drinks tea in the morning."]}]
        assert "leaves alone" in await call(client, "delete_observations", deletions=gone)
        assert [one["kept"] for one in (await call(client, "read_graph"))["entities"]] == ["memory"]

    talk(memory_server(gate, person), scene)
    assert [one.value for one in guidance(gate, person).below(())] == [value]


def test_a_host_that_reports_has_guidance_until_its_session_saw_something(gate, person) -> None:
    """The tenth tool can but taint: whoever calls it, nothing becomes clean by it, and a restart forgets nothing."""

    async def scene(client: Any) -> None:
        assert {one.name for one in (await client.list_tools()).tools} == NINE | {"report_observation"}
        made = await call(client, "create_entities", entities=[TEA])
        assert [one["kept"] for one in made["entities"]] == ["memory"]
        assert "origin must say" in await call(client, "report_observation", origin="open")
        assert (await call(client, "report_observation", origin="web", content="a page"))["success"]
        assert "outside data" in await call(client, "create_entities", entities=[MISO])

    async def afterwards(client: Any) -> None:
        assert "outside data" in await call(client, "create_entities", entities=[MISO])
        assert plain(await call(client, "read_graph"))["entities"] == [TEA]

    talk(memory_server(gate, person, session=person.principal), scene)
    talk(memory_server(gate, person, session=person.principal), afterwards)


def test_a_server_whose_host_does_not_report_has_no_tenth_tool(gate, person) -> None:
    """A model cannot ask for a clean session: nothing that it can call opens one."""

    async def scene(client: Any) -> str:
        return await call(client, "report_observation", origin="web")

    assert "report_observation" in talk(memory_server(gate, person), scene)
    whose = Session("acme", person.agent, person.principal, "s")
    unopened = Memory(gate, whose, opens=False, zone=Zone.EXTERNAL)
    assert unopened.write("Ada drinks tea.").status == "contained"
    assert Memory(gate, Session("acme", person.agent, person.principal, "t")).write("Ada rows.").status == "landed"


def test_one_caller_does_not_take_all_the_servers_time(gate, person) -> None:
    """Beyond its quota, or with too many calls in work, a call is refused at once, and is told why."""
    callers = Callers(gate, lambda: person, quota=Quota(per_s=1, burst=5), now_ms=lambda: 0)
    four = (callers.calling(), callers.calling(), callers.calling(), callers.calling())
    with four[0], four[1], four[2], four[3], pytest.raises(StateError, match="in work"), callers.calling():
        pass
    with pytest.raises(StateError, match="call again later"), callers.calling():
        pass
    assert QUOTA.burst > 5


def test_a_person_whose_call_is_in_work_keeps_his_graph(gate, person, monkeypatch) -> None:
    """With a second one his updates would take no turns, and one could be lost: only who is idle is forgotten."""
    monkeypatch.setattr("memsluice.adapters.mcp.callers.SHELVES_MAX", 1)
    who = [person]
    callers = Callers(gate, lambda: who[0])
    with callers.calling() as mine:
        who[0] = replace(person, principal="other")
        with callers.calling() as others:
            who[0] = person
            with callers.calling() as again:
                assert again is mine
    who[0] = replace(person, principal="third")
    with callers.calling():
        assert list(callers._known) == who
    who[0] = replace(person, principal="other")
    with callers.calling() as anew:
        assert anew is not others


def test_a_server_of_nobody_is_not_made(gate) -> None:
    """Who calls is a Person or told by tokens, and no host that reports may be joined by others."""
    with pytest.raises(InvalidArgument, match="who"):
        memory_server(gate, "ada")  # type: ignore[arg-type]
    assert Origin.OPEN.value == "open"
