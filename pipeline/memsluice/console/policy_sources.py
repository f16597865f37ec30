"""Policies that a page may name: the one in force, a version before, the home's file, one that ships, or a text."""

from collections.abc import Mapping
from dataclasses import dataclass

from memsluice.console import fields
from memsluice.console.serving import Serving
from memsluice.console.visitors import Visitor
from memsluice.deployment.home import Home
from memsluice.errors import InvalidArgument, NotFound, NotPermitted, PolicyError
from memsluice.escaping import visible
from memsluice.events.names import EVERYBODY
from memsluice.gate.policy import model
from memsluice.gate.policy.model import PolicySet
from memsluice.operations.policies.activations import Activations
from memsluice.operations.policies.standing import standing
from memsluice.readers.base import TopicReader

IN_FORCE, HOME, SHIPPED, ACTIVATED, TEXT = "in-force", "home", "shipped:", "activated:", "text"


@dataclass(frozen=True, slots=True)
class Source:
    """A policy by its name in words, its text as a file has it, and what it says."""

    name: str
    text: str
    policies: PolicySet


def choices(told: Serving, who: Visitor) -> list[tuple[str, str]]:
    """Return what a form offers, value and name; texts apart."""
    versions = activations(told).versions(who.tenants)
    return [
        (IN_FORCE, "in force now"),
        (HOME, "the file of this home"),
        *((f"{SHIPPED}{name}", f"ships with memsluice: {name}") for name in model.shipped_names()),
        *((f"{ACTIVATED}{one.command_id}", f"activated: {_named(one.tenant)}, {one.digest[:40]}") for one in versions),
    ]


def activations(told: Serving) -> Activations:
    """Return what this server knows of activations."""
    found: Activations = told.kept.setdefault("activations", Activations())
    return found


def source(
    told: Serving, who: Visitor, audit: TopicReader, given: Mapping[str, str], field: str, tenant: str
) -> Source:
    """Return the policy that a field names. Raises InvalidArgument, NotFound, PolicyError, BrokerUnavailable."""
    wanted = fields.text(given, field) or ""
    if wanted == TEXT:
        return of_text(given)
    if wanted == IN_FORCE:
        now = standing(audit, told.keys.keyring(), tenant)
        if now.activated is not None and now.activated.text is not None:
            return Source(f"in force for {_named(tenant)}", now.activated.text, now.activated.policies())
        now.policy(told.named)  # or it says that nobody knows what is in force
        return _home(told, f"in force for {_named(tenant)}: nothing was activated, the file of this home holds")
    if wanted == HOME:
        return _home(told, "the file of this home")
    if wanted.startswith(SHIPPED):
        text = model.shipped(wanted.removeprefix(SHIPPED))
        return Source(wanted.replace(":", ": "), text, model.parse(text))
    for one in activations(told).versions(who.tenants):
        if wanted == f"{ACTIVATED}{one.command_id}" and one.text is not None:
            return Source(f"activated for {_named(one.tenant)}", one.text, one.policies())
    raise NotFound(f"{field}: there is no policy {visible(wanted, fields.SHOWN_CHARS)}: choose one of the list")


def of_text(given: Mapping[str, str]) -> Source:
    """Return the policy whose text was sent. Raises PolicyError, which says what is wrong with it."""
    text = given.get("policy", "")
    if len(text) > model.POLICY_BYTES_MAX:
        raise PolicyError(f"it has {len(text)} characters, and at most {model.POLICY_BYTES_MAX} fit")
    return Source("the text that was sent", text, model.parse(text))


def _home(told: Serving, name: str) -> Source:
    path = Home.at(told.named).policy_file
    text = model.read(path) if path.exists() else model.shipped("default")
    return Source(name, text, model.parse(text))


def scope(who: Visitor, given: Mapping[str, str]) -> str:
    """Return the tenant that a page is about; everybody where none is named. Raises NotPermitted, InvalidArgument."""
    tenant = fields.text(given, "tenant")
    if who.tenants is not None and tenant is None and len(who.tenants) == 1:
        (tenant,) = who.tenants
    if tenant is None or tenant == EVERYBODY:
        if who.tenants is not None:
            raise InvalidArgument("tenant: name one of yours: the policy of every tenant is not yours to compare")
        return EVERYBODY
    if not who.sees_tenant(tenant):
        raise NotPermitted(f"tenant: you see nothing of {visible(tenant, fields.SHOWN_CHARS)}")
    return tenant


def _named(tenant: str) -> str:
    return "every tenant" if tenant == EVERYBODY else tenant
