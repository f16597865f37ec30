"""The memory server on the real broker, workers and store."""

from typing import Any

import pytest
from tests.adapters.mcp.talking import TEA, call, talk
from tests.memory.conftest import ORDER
from tests.patience import HANG_S

from memsluice.adapters.mcp import Person, memory_server, open_reading_gate
from memsluice.clock import wall_ms
from memsluice.envelope.registry import Role
from memsluice.keystore.store import KeyStore, issue_credential

TENANT = "mcp-on-stack"
ADA = Person("helper", "ada")
pytestmark = [pytest.mark.stack, pytest.mark.usefixtures("unhurried")]


def test_data_guidance_and_held_writes_are_told_apart_there_as_in_one_process(stack: Any, workers: Any) -> None:
    """What an unopened session wrote is read back as data; a reporting host's is guidance, and an order is held."""
    keys = KeyStore.init(stack.home, wall_ms())
    for role in (Role.PRODUCER, Role.RUNTIME, Role.READER):
        issue_credential(keys, role, "agent", [TENANT], now_ms=wall_ms())

    async def unopened(client: Any) -> None:
        assert (await call(client, "create_entities", entities=[TEA]))["note"].startswith("kept as outside data")
        more = [{"entityName": "Ada", "contents": ["Lives in Lyon."]}]
        await call(client, "add_observations", observations=more)
        (ada,) = (await call(client, "open_nodes", names=["Ada"]))["entities"]
        assert (ada["kept"], ada["observations"]) == ("data", [*TEA["observations"], "Lives in Lyon."])
        assert (await call(client, "delete_entities", entityNames=["Ada"]))["success"]
        assert (await call(client, "read_graph"))["entities"] == []

    async def reporting(client: Any) -> None:
        rule = {"name": "Rule", "entityType": "rule", "observations": [ORDER]}
        told = await call(client, "create_entities", entities=[TEA, rule])
        assert '"Ada": remembered' in told
        assert "is held in quarantine" in told
        assert [one["kept"] for one in (await call(client, "read_graph"))["entities"]] == ["memory"]
        await call(client, "report_observation", origin="web", content="a page")
        miso = {"name": "Miso", "entityType": "cat", "observations": ["Sleeps."]}
        assert "kept as outside data" in await call(client, "create_entities", entities=[miso])

    gate = open_reading_gate(tenant=TENANT, home=stack.home, mode="stack")
    try:
        talk(memory_server(gate, ADA, timeout_s=HANG_S), unopened)
        talk(memory_server(gate, ADA, session="monday-1", timeout_s=HANG_S), reporting)
    finally:
        gate.close()
