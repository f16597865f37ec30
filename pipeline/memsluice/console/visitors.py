"""Who looks at the console, and what he may see and do. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from memsluice.envelope.registry import ANY, Credential, Registry, Role
from memsluice.errors import NotPermitted
from memsluice.events.models import Action
from memsluice.gate.commands.dispatch import COMMANDS


class Sight(StrEnum):
    """What there is to see."""

    METADATA = "metadata"
    CONTENT = "content"
    OPERATIONS = "operations"


SIGHTS: dict[Role, frozenset[Sight]] = {
    Role.READER: frozenset({Sight.METADATA}),
    Role.REVIEWER: frozenset({Sight.METADATA, Sight.CONTENT}),
    Role.OPERATOR: frozenset(Sight),
}
"""What each role sees: a reader no content, a reviewer held writes whole, an operator dead letters, policies, keys and
partitions besides. Credentials of other roles do not come in."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who proved who he is. ``tenants`` are those that he may see; None is all of them.

    ``kid`` is the key by which he came in; None where an identity provider said who he is.
    """

    name: str
    role: Role
    tenants: frozenset[str] | None
    kid: str | None = None

    @classmethod
    def of(cls, credential: Credential) -> "Visitor":
        """Return who has a credential. Raises NotPermitted where its role does not come in."""
        if credential.role not in SIGHTS:
            roles = ", ".join(SIGHTS)
            raise NotPermitted(f"a {credential.role.value} credential does not come in here; roles are {roles}")
        tenants = None if ANY in credential.tenants else frozenset(credential.tenants)
        return cls(credential.kid, credential.role, tenants, credential.kid)

    def sees(self, sight: Sight) -> bool:
        """Whether he may see this."""
        return sight in SIGHTS[self.role]

    @property
    def sees_content(self) -> bool:
        """Whether he may see the content of held writes."""
        return self.sees(Sight.CONTENT)

    @property
    def decides(self) -> bool:
        """Whether the gate takes decisions about held writes from somebody of his role."""
        return self.may(Action.RELEASE)

    def sees_tenant(self, tenant: str) -> bool:
        """Whether he may see anything of a tenant."""
        return self.tenants is None or tenant in self.tenants

    def may(self, action: Action) -> bool:
        """Whether the gate takes this command from somebody of his role."""
        return action in COMMANDS and self.role in COMMANDS[action].roles

    def owns(self, kid: str, registry: Registry) -> bool:
        """Whether a registered key is his: the one he came in with, or one that the registry gives to his name.

        A key is somebody's whom the identity provider names where its entry has that name as its one principal.
        """
        if self.kid is not None:
            return kid == self.kid
        if kid not in registry:
            return False
        credential = registry.get(kid)
        return credential.role is self.role and credential.person == self.name
