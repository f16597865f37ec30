"""The parts of weaviate-client that are used, imported without the warning that one of its own imports prints.

authlib's httpx integration warns about its own future on standard error whenever weaviate-client is imported, which a
person asking their memory should not have to read.
"""

import warnings

try:  # first, because this import sets the filter that is overruled below
    from authlib.deprecate import AuthlibDeprecationWarning as _Loud
except ImportError:
    _Loud = DeprecationWarning

with warnings.catch_warnings():
    warnings.simplefilter("ignore", _Loud)
    import weaviate
    from weaviate.classes.config import Configure, DataType, Property, Tokenization, VectorDistances
    from weaviate.classes.init import AdditionalConfig, Auth, Timeout
    from weaviate.classes.rbac import Permissions
    from weaviate.classes.tenants import Tenant
    from weaviate.connect import ConnectionParams
    from weaviate.exceptions import UnexpectedStatusCodeError, WeaviateBaseError
    from weaviate.proto.v1 import (
        aggregate_pb2,
        base_pb2,
        base_search_pb2,
        batch_delete_pb2,
        batch_pb2,
        search_get_pb2,
        tenants_pb2,
        weaviate_pb2_grpc,
    )
    from weaviate.rbac.models import PermissionsCreateType

__all__ = [
    "AdditionalConfig",
    "Auth",
    "Configure",
    "ConnectionParams",
    "DataType",
    "Permissions",
    "PermissionsCreateType",
    "Property",
    "Tenant",
    "Timeout",
    "Tokenization",
    "UnexpectedStatusCodeError",
    "VectorDistances",
    "WeaviateBaseError",
    "aggregate_pb2",
    "base_pb2",
    "base_search_pb2",
    "batch_delete_pb2",
    "batch_pb2",
    "search_get_pb2",
    "tenants_pb2",
    "weaviate",
    "weaviate_pb2_grpc",
]
