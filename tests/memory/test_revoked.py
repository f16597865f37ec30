"""A key that is revoked while an embedded gate is open."""

import pytest
from tests.memory.conftest import ADA

from memsluice import Origin
from memsluice.clock import wall_ms
from memsluice.envelope.registry import Role
from memsluice.errors import ExpiredKey
from memsluice.keystore import rotation
from memsluice.keystore.store import KeyStore
from memsluice.memory.memory import Memory


@pytest.mark.parametrize("role", [Role.PRODUCER, Role.RUNTIME, Role.READER])
def test_a_revoked_key_signs_nothing_more(gate, tmp_path, role, monkeypatch) -> None:
    """The next call that needs it raises, and names it; nothing passes for seen, read or remembered."""
    memory, keys = Memory(gate, ADA), KeyStore(tmp_path / "home")
    memory.write("Ada drinks tea.", key="drink")
    kid = keys.find_credential(role, wall_ms(), tenant="acme").kid
    rotation.revoke(keys, kid, wall_ms())
    monkeypatch.setattr("memsluice.deployment.reloading.RELOAD_SECONDS", 0.0)
    call = {
        Role.PRODUCER: lambda: memory.write("Ada drinks milk.", key="drink"),
        Role.RUNTIME: lambda: memory.observe(Origin.WEB, content="a page"),
        Role.READER: lambda: memory.search("What does Ada drink?"),
    }[role]
    with pytest.raises(ExpiredKey, match=kid):
        call()
