"""The store's roles: what ``land`` and ``recall`` may do with memsluice's collections, and with nothing else.

Over the REST interface (``/v1/authz``) rather than the client library: two calls, and no second of imports.
"""

import http.client
import json
import urllib.error
import urllib.request
from typing import Any

from memsluice.deployment.connection import Connection
from memsluice.errors import StackError
from memsluice.topics.names import WEAVIATE_ADMIN, WEAVIATE_COLLECTIONS, WEAVIATE_LAND, WEAVIATE_RECALL

REQUEST_TIMEOUT_S = 20.0
_DATA = {"data": {"collection": WEAVIATE_COLLECTIONS, "tenant": "*", "object": "*"}}
_TENANTS = {"tenants": {"collection": WEAVIATE_COLLECTIONS, "tenant": "*"}}
_COLLECTIONS = {"collections": {"collection": WEAVIATE_COLLECTIONS}}


def _all(kind: str, scope: dict[str, Any], verbs: str) -> list[dict[str, Any]]:
    return [{"action": f"{verb}_{kind}", **scope} for verb in verbs.split()]


ROLES: dict[str, list[dict[str, Any]]] = {
    WEAVIATE_LAND: [
        *_all("collections", _COLLECTIONS, "create read update"),
        *_all("tenants", _TENANTS, "create read update delete"),  # delete: the erasure of a tenant
        *_all("data", _DATA, "create read update delete"),
    ],
    WEAVIATE_RECALL: [
        *_all("collections", _COLLECTIONS, "read"),
        *_all("tenants", _TENANTS, "read"),
        *_all("data", _DATA, "read"),
    ],
}
"""Permissions of each user but the root user; the role is called ``memsluice-`` and the user's name."""


def apply_roles(connection: Connection) -> None:
    """Create or correct the roles and give each to its user, unless the user has been given another one.

    Doing it again does nothing. Raises StackError.
    """
    for user, permissions in ROLES.items():
        role = f"memsluice-{user}"
        status, found = _call(connection, "GET", f"roles/{role}")
        if status != http.client.OK or not _same(found.get("permissions", []), permissions):
            if status == http.client.OK:
                _must(connection, "DELETE", f"roles/{role}")
            _must(connection, "POST", "roles", {"name": role, "permissions": permissions})
        status, held = _call(connection, "GET", f"users/{user}/roles/db")
        if status != http.client.OK or not held:  # a user with a narrower role of the operator's keeps that one
            _must(connection, "POST", f"users/{user}/assign", {"roles": [role], "userType": "db"})


def _same(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> bool:
    """Compare by action and collection: the server fills in the fields that were left out."""

    def key(permission: dict[str, Any]) -> tuple[str, str]:
        scope: dict[str, Any] = next((value for name, value in permission.items() if name != "action" and value), {})
        return permission["action"], scope.get("collection", "")

    return sorted(map(key, found)) == sorted(map(key, wanted))


def _must(connection: Connection, method: str, path: str, body: dict[str, Any] | None = None) -> None:
    status, told = _call(connection, method, path, body)
    if status >= http.client.MULTIPLE_CHOICES:
        raise StackError(f"Weaviate refused {method} /v1/authz/{path}: {status} {json.dumps(told)[:300]}")


def _call(connection: Connection, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
    request = urllib.request.Request(  # noqa: S310 - http(s) by construction
        connection.weaviate_url(f"authz/{path}"),
        method=method,
        data=json.dumps(body).encode() if body is not None else None,
        headers={
            "Authorization": f"Bearer {connection.weaviate_key(WEAVIATE_ADMIN)}",
            "Content-Type": "application/json",
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=REQUEST_TIMEOUT_S) as response:  # noqa: S310
            text = response.read()
            return response.status, json.loads(text) if text.strip() else {}
    except urllib.error.HTTPError as error:
        with error:
            text = error.read()
        try:
            return error.code, json.loads(text) if text.strip() else {}
        except ValueError:
            return error.code, {"error": text.decode("utf-8", "replace")}
    except (urllib.error.URLError, OSError) as error:
        raise StackError(f"Weaviate did not answer a request about its roles: {error}") from error
