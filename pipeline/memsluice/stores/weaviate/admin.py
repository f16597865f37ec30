"""What is done once: a zone's collection, a tenant's partition, and narrowing a reader's key to some tenants.

Roles for ``land`` (writes) and ``recall`` (reads) come with the stack (:mod:`memsluice.devstack.roles`). After
:func:`limit_reader` it is the database, not our filters, that keeps a reader from other tenants and zones.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import httpx
import orjson

from memsluice.envelope.codec import canonical
from memsluice.envelope.space import DEFAULT, Space
from memsluice.errors import StoreError, StoreUnavailable
from memsluice.events.models import Zone
from memsluice.stores.weaviate.client import (
    AdditionalConfig,
    Auth,
    Configure,
    ConnectionParams,
    DataType,
    Permissions,
    PermissionsCreateType,
    Property,
    Tenant,
    Timeout,
    Tokenization,
    UnexpectedStatusCodeError,
    VectorDistances,
    WeaviateBaseError,
    weaviate,
)
from memsluice.stores.weaviate.rpc import REMEDY, Address
from memsluice.stores.weaviate.wire import COLLECTIONS

_TIMEOUT = Timeout(init=2, query=10, insert=10)


@contextmanager
def client(address: Address) -> Iterator[weaviate.WeaviateClient]:
    """Give a weaviate-client for administration. Raises StoreUnavailable, StoreError in place of the client's own."""
    made = weaviate.WeaviateClient(
        connection_params=ConnectionParams.from_params(
            http_host=address.host,
            http_port=address.http_port,
            http_secure=address.secure,
            grpc_host=address.host,
            grpc_port=address.grpc_port,
            grpc_secure=address.secure,
        ),
        auth_client_secret=Auth.api_key(address.key),
        additional_config=AdditionalConfig(timeout=_TIMEOUT),
        skip_init_checks=True,
    )
    try:
        made.connect()
        yield made
    except UnexpectedStatusCodeError as error:
        kind = StoreUnavailable if error.status_code >= 500 else StoreError
        raise kind(f"Weaviate refused: {error.message}"[:400]) from None
    except (WeaviateBaseError, httpx.HTTPError, OSError) as error:
        told = str(error).partition(" Try adjusting")[0][:300]  # its advice is about the library
        raise StoreUnavailable(
            f"Weaviate at {address.host}:{address.http_port} did not answer ({told}): {REMEDY}"
        ) from None
    finally:
        made.close()


def create_tenants(address: Address, collection: str, tenants: Sequence[str]) -> None:
    """Create partitions; those that exist stay as they are. Raises StoreUnavailable, StoreError."""
    with client(address) as made:
        made.collections.use(collection).tenants.create([Tenant(name=tenant) for tenant in tenants])


def remove_tenant(address: Address, collection: str, tenant: str) -> None:
    """Remove a partition with all that it holds; nothing where there is none. Raises StoreUnavailable, StoreError."""
    with client(address) as made:
        if made.collections.exists(collection) and made.collections.use(collection).tenants.exists(tenant):
            made.collections.use(collection).tenants.remove([tenant])


def limit_reader(admin: Address, user: str, role: str, tenants: Sequence[str], zones: Sequence[Zone]) -> None:
    """Give ``user`` one role, newly made under the name ``role``: to read these tenants in these zones, no more."""
    with client(admin) as made:
        if made.roles.exists(role):
            made.roles.delete(role)
        made.roles.create(role_name=role, permissions=_read_permissions([COLLECTIONS[zone] for zone in zones], tenants))
        for other in made.users.db.get_assigned_roles(user_id=user):
            made.users.db.revoke_roles(user_id=user, role_names=other)
        made.users.db.assign_roles(user_id=user, role_names=role)


def _read_permissions(collections: Sequence[str], tenants: Sequence[str]) -> list[PermissionsCreateType]:
    return [
        Permissions.data(collection=collections, tenant=tenants, read=True),
        Permissions.tenants(collection=collections, tenant=tenants, read=True),
        Permissions.collections(collection=collections, read_config=True),
    ]


def space_of_collection(address: Address, name: str) -> Space | None:
    """Return what encoder a collection's vectors are of; None where there is no such collection.

    Its description says so; one that says nothing, or what somebody else wrote there, is the default encoder's: older
    collections have none. It is not believed any further: readers go by the admission of each entry.
    Raises StoreUnavailable, StoreError.
    """
    with client(address) as made:
        if not made.collections.exists(name):
            return None
        said = made.collections.use(name).config.get(simple=True).description
    try:
        told = orjson.loads(said or "")
        return Space(str(told["encoder"]), int(told["dimensions"]))
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return DEFAULT


def finds_versions(address: Address, name: str) -> bool:
    """Whether a collection has an index of versions: those of older versions of memsluice have none. False where there
    is no such collection. Raises StoreUnavailable, StoreError."""
    with client(address) as made:
        if not made.collections.exists(name):
            return False
        properties = made.collections.use(name).config.get(simple=True).properties
    return any(one.name == "version" and one.index_filterable for one in properties)


def create_collection(address: Address, name: str, space: Space) -> None:
    """Create the collection of a zone for an encoder's vectors; one that is there stays as it is.

    Raises StoreUnavailable, StoreError.
    """
    with client(address) as made:
        if made.collections.exists(name):
            return
        try:
            _create(made, name, space)
        except WeaviateBaseError:
            if not made.collections.exists(name):  # another worker was faster
                raise


def _create(made: weaviate.WeaviateClient, name: str, space: Space) -> None:
    def exact(property_name: str) -> Property:
        return Property(
            name=property_name, data_type=DataType.TEXT, tokenization=Tokenization.FIELD, index_searchable=False
        )

    def kept(property_name: str) -> Property:
        return Property(name=property_name, data_type=DataType.TEXT, index_filterable=False, index_searchable=False)

    made.collections.create(
        name,
        description=canonical({"encoder": space.model, "dimensions": space.dimensions}).decode(),
        multi_tenancy_config=Configure.multi_tenancy(enabled=True, auto_tenant_creation=False),
        vector_config=Configure.Vectors.self_provided(
            vector_index_config=Configure.VectorIndex.hnsw(distance_metric=VectorDistances.COSINE)
        ),
        properties=[
            exact("visibility"),
            exact("owner"),
            exact("namespace"),
            exact("event_id"),
            kept("content"),
            kept("admission"),
            Property(name="version", data_type=DataType.INT, index_filterable=True),
            Property(name="tier", data_type=DataType.INT, index_filterable=False),
            Property(name="expires_ms", data_type=DataType.INT, index_filterable=True, index_range_filters=True),
        ],
    )
