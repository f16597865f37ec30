"""``memsluice store`` as an operator meets it, on the embedded memory and on the real stack."""

import json
from dataclasses import replace
from uuid import uuid4

import pytest
from tests import command
from tests.store_repair.sites import EmbeddedSite, StackSite
from tests.store_repair.test_reconcile import ENTRIES, KEYLESS, REVOKED, harms
from tests.stores.build import PARTITIONS, RING, STRANGER, T0, axis

from memsluice.deployment.connection import FILE_VARIABLE
from memsluice.deployment.home import Home
from memsluice.envelope.records import stored_to_bytes
from memsluice.errors import StoreUnavailable
from memsluice.events.models import Zone
from memsluice.events.partition import partition_of
from memsluice.keystore.store import KeyStore
from memsluice.stages.reconcile import Reconciler
from memsluice.topics.names import ACCEPTED, STORE


@pytest.fixture
def home(tmp_path) -> Home:
    """A home with the gate's keys."""
    place = Home(tmp_path / "home")
    place.prepare()
    KeyStore(place.path).save_keyring(RING)
    KeyStore.init(place.path, 0)
    return place


@pytest.fixture(params=["embedded", pytest.param("stack", marks=pytest.mark.stack)])
def site(request, home, tmp_path):
    """A tenant with eight entries that landed, and how the command line is told where."""
    tenant, variables = f"mend-{uuid4().hex[:10]}", {"MEMSLUICE_HOME": str(home.path)}
    if request.param == "embedded":
        made = EmbeddedSite(tenant, home.path)
    else:
        stack = request.getfixturevalue("stack")
        made = StackSite(tenant, stack)
        file = tmp_path / "connection.json"
        stack.connection.save(file)
        variables[FILE_VARIABLE] = str(file)
    made.variables = variables
    made.entries = [made.land(n, f"c{n}", axis(n)) for n in range(ENTRIES)]
    yield made
    made.close()


def store(site, *words: str, stdin: str = "") -> command.Shown:
    """Run ``memsluice store``."""
    return command.run("store", *words, environment=site.variables, stdin=stdin)


def test_a_store_that_says_what_the_log_says_is_verified(site) -> None:
    """Exit code 0, in words and as JSON."""
    shown = store(site, "verify", "--tenant", site.tenant)
    assert shown.code == 0
    assert all("do not verify" in line for line in shown.err.splitlines())  # what other tests' keys have sealed
    assert "the store says what the log says" in shown.out
    (found,) = json.loads(store(site, "verify", "--tenant", site.tenant, "--json").out)["found"]
    assert (found["zone"], found["looked_at"], found["differs"]) == ("guidance", ENTRIES, {})


def test_records_of_the_log_that_nobody_sealed_are_counted(home) -> None:
    """They take nothing away from what the store should hold, and whoever looks hears of them."""
    site = EmbeddedSite(f"forged-{uuid4().hex[:10]}", home.path)
    site.variables = {"MEMSLUICE_HOME": str(home.path)}
    said = site.land(1, "c1", axis(1))
    forged = stored_to_bytes(STRANGER, "seal-1", replace(said, version=2**40, withdrawn=True))
    site.log.append(STORE, said.object_id.encode(), forged, append_ms=T0,
                    partition=partition_of(site.tenant, PARTITIONS))  # fmt: skip
    assert json.loads(store(site, "verify", "--json").out)["unverified"] == 1
    shown = store(site, "verify")
    assert (shown.code, "1 records of the store log do not verify" in shown.out) == (0, True)
    site.close()


def test_what_differs_is_named_and_mended(site) -> None:
    """Verify changes nothing and exits with 4; repair mends and exits with 0; then nothing differs."""
    harmed = harms(site)
    shown = store(site, "verify", "--tenant", site.tenant, "--json")
    assert shown.code == 4
    (found,) = json.loads(shown.out)["found"]
    assert {one: kind for kind, ids in found["objects"].items() for one in ids} == harmed
    assert "memsluice store repair" in store(site, "verify", "--tenant", site.tenant).out
    shown = store(site, "repair", "--tenant", site.tenant)
    assert shown.code == 0
    assert "2 removed, 6 landed again" in shown.out
    assert store(site, "verify", "--tenant", site.tenant).code == 0


def test_what_can_not_be_mended_is_said_clearly(site, monkeypatch) -> None:
    """The accepted log reaches back to nothing: repair exits with 8 and says how many; rebuild refuses, and nothing is
    dropped."""
    from memsluice.operations.store import place

    made = place._place

    def without_accepted(assembly, name, opened, reader):
        return made(
            assembly, name, opened, lambda topic, ended: _Empty() if topic == ACCEPTED else reader(topic, ended)
        )

    monkeypatch.setattr(place, "_place", without_accepted)
    site.store.delete(site.tenant, Zone.GUIDANCE, [site.entries[0].object_id])
    shown = store(site, "repair", "--tenant", site.tenant)
    assert shown.code == 8
    assert "1 can not be mended: memory.accepted.v1 has no record of them that verifies" in shown.out
    shown = store(site, "rebuild", "--tenant", site.tenant, "--yes")
    assert shown.code == 1
    assert f"{ENTRIES - 1} entries of the tenant lie in the store" in shown.said
    assert site.store.count(site.tenant, Zone.GUIDANCE) == ENTRIES - 1


@pytest.mark.parametrize("lost", [KEYLESS, REVOKED], ids=["missing", "revoked"])
def test_entries_whose_records_do_not_verify_are_dropped_only_when_asked(home, lost) -> None:
    """The home has lost its seal key: verify says what to do, repair leaves them and exits with 8, rebuild refuses
    until it is told to drop them."""
    site = EmbeddedSite(f"lost-{uuid4().hex[:10]}", home.path)
    site.variables = {"MEMSLUICE_HOME": str(home.path)}
    site.entries = [site.land(n, f"c{n}", axis(n)) for n in range(3)]
    KeyStore(home.path).save_keyring(lost)
    shown = store(site, "verify")
    assert (shown.code, "Bring the seal key back" in shown.out, "store repair" in shown.out) == (4, True, False)
    shown = store(site, "repair")
    assert (shown.code, "0 removed, 0 landed again" in shown.out) == (8, True)
    assert "3 were left as they are" in shown.out
    shown = store(site, "rebuild", "--tenant", site.tenant, "--yes")
    assert (shown.code, "3 entries of the tenant lie in the store" in shown.said) == (1, True)
    assert site.store.count(site.tenant, Zone.GUIDANCE) == 3
    shown = store(site, "rebuild", "--tenant", site.tenant, "--yes", "--drop-lost")
    assert (shown.code, site.store.count(site.tenant, Zone.GUIDANCE)) == (0, 0)
    site.close()


def test_a_tenant_that_the_store_refuses_is_named_and_the_others_are_looked_at(home, monkeypatch) -> None:
    """Verify and repair exit with 8 and say why; about that tenant alone they fail, and say it too."""
    site = EmbeddedSite(f"some-{uuid4().hex[:10]}", home.path)
    site.variables = {"MEMSLUICE_HOME": str(home.path)}
    site.entries = [site.land(n, f"c{n}", axis(n)) for n in range(ENTRIES)]
    honest = Reconciler.walk

    def walk(self, tenant, zone):
        if zone is Zone.EXTERNAL:
            raise StoreUnavailable("Weaviate at 127.0.0.1:1 refused: tenant not active")
        return honest(self, tenant, zone)

    monkeypatch.setattr(Reconciler, "walk", walk)
    for verb in ("verify", "repair"):
        shown = store(site, verb)
        assert shown.code == 8
        assert f"{site.tenant}, external, was passed over: Weaviate at 127.0.0.1:1 refused" in shown.out
        assert "says what the log says" not in shown.out
        guidance, external = json.loads(store(site, verb, "--json").out)["found"]
        assert (guidance["looked_at"], guidance["passed_over"], external["looked_at"]) == (ENTRIES, "", 0)
    shown = store(site, "verify", "--tenant", site.tenant)
    assert (shown.code, "tenant not active" in shown.said) == (6, True)
    site.close()


class _Empty:
    """An accepted log from which everything was deleted by its age."""

    def read(self, partition, from_offset=0):
        return iter(())


def test_a_tenants_part_is_built_anew(site) -> None:
    """Dropped after a question, and landed again from the logs; whoever answers no has changed nothing."""
    outside = site.land(60, "a page", axis(60), zone=Zone.EXTERNAL)
    harms(site)
    refused = store(site, "rebuild", "--tenant", site.tenant, stdin="n\n")
    assert refused.code == 1
    assert store(site, "verify", "--tenant", site.tenant).code == 4
    shown = store(site, "rebuild", "--tenant", site.tenant, "--yes")
    assert (shown.code, shown.out.strip()) == (0, f"{ENTRIES + 1} objects landed again")
    assert store(site, "verify", "--tenant", site.tenant).code == 0
    assert outside.object_id in site.store.versions(site.tenant, Zone.EXTERNAL, [outside.object_id])


def test_a_tenant_that_nobody_knows_is_not_found(site) -> None:
    """A typing error drops and mends nothing."""
    for words in (("verify",), ("repair",), ("rebuild", "--yes")):
        shown = store(site, *words, "--tenant", "nobody")
        assert shown.code == 5
        assert "There is no tenant 'nobody'" in shown.said


def test_without_a_memory_there_is_one_clear_sentence(tmp_path) -> None:
    """No stack, no embedded memory: what to run."""
    shown = command.run("store", "verify", environment={"MEMSLUICE_HOME": str(tmp_path / "none")})
    assert shown.code == 1
    assert "start a stack with `memsluice stack up`" in shown.said
