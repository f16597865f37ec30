"""Weaviate as one node: environment and command line.

API keys and role-based access from the first start, nobody anonymous. Its HTTP interface binds to loopback; gRPC and
the cluster's data interface have no such setting in v1.35 and listen on all interfaces, so both are behind
credentials (the API keys; basic authentication for the cluster's interface, which without it would hand out objects
to anyone who asks).
"""

from collections.abc import Mapping
from pathlib import Path

from memsluice.deployment.layout import Layout
from memsluice.devstack.ports import LOOPBACK
from memsluice.devstack.services import Service

NAME = "weaviate"
PORTS = (
    "weaviate",
    "weaviate-grpc",
    "weaviate-gossip",
    "weaviate-data",
    "weaviate-raft",
    "weaviate-raft-rpc",
)
GRACE_S = 30.0
CLOSES_BELOW_SHARE, OPENS_FROM_SHARE = 0.025, 0.03
"""On a disk that is used by 98 % Weaviate makes every shard read-only, and never looks again: a new start opens them.
Free shares, with a margin: server and supervisor look at different moments, and a start too many is harmless."""
ROOT = "admin"
NODE = "memsluice-local"
CLUSTER_USER = "cluster"


def environment(
    layout: Layout, ports: Mapping[str, int], keys: Mapping[str, str], cluster_password: str
) -> dict[str, str]:
    """Return the whole environment of the server. It holds the keys: it goes to the process and nowhere else."""
    users = sorted(keys)
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(layout.data),
        "PERSISTENCE_DATA_PATH": str(layout.data / NAME),
        "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "false",
        "AUTHENTICATION_APIKEY_ENABLED": "true",
        "AUTHENTICATION_APIKEY_USERS": ",".join(users),
        "AUTHENTICATION_APIKEY_ALLOWED_KEYS": ",".join(keys[user] for user in users),
        "AUTHORIZATION_RBAC_ENABLED": "true",
        "AUTHORIZATION_RBAC_ROOT_USERS": ROOT,
        "GRPC_PORT": str(ports["weaviate-grpc"]),
        "CLUSTER_HOSTNAME": NODE,
        "CLUSTER_BIND_ADDR": LOOPBACK,
        "CLUSTER_ADVERTISE_ADDR": LOOPBACK,
        "CLUSTER_GOSSIP_BIND_PORT": str(ports["weaviate-gossip"]),
        "CLUSTER_DATA_BIND_PORT": str(ports["weaviate-data"]),
        "CLUSTER_BASIC_AUTH_USERNAME": CLUSTER_USER,
        "CLUSTER_BASIC_AUTH_PASSWORD": cluster_password,
        "RAFT_PORT": str(ports["weaviate-raft"]),
        "RAFT_INTERNAL_RPC_PORT": str(ports["weaviate-raft-rpc"]),
        "RAFT_BOOTSTRAP_EXPECT": "1",
        "RAFT_TIMEOUTS_MULTIPLIER": "1",  # one node has no network to be patient with
        "RAFT_ENABLE_ONE_NODE_RECOVERY": "true",
        "DEFAULT_VECTORIZER_MODULE": "none",
        "ENABLE_API_BASED_MODULES": "false",
        "DISABLE_TELEMETRY": "true",
        "GO_PROFILING_DISABLE": "true",
        "PROMETHEUS_MONITORING_ENABLED": "false",
        "DISK_USE_READONLY_PERCENTAGE": "98",  # the default of 90 makes a developer's half-full disk read-only
        "DISK_USE_WARNING_PERCENTAGE": "95",
        "LOG_LEVEL": "warning",  # at info, every request is a line about its permission
    }


def service(layout: Layout, binary: Path, ports: Mapping[str, int], variables: dict[str, str]) -> Service:
    """Return how the supervisor runs the store."""
    port = str(ports["weaviate"])
    return Service(
        name=NAME,
        command=(str(binary), "--host", LOOPBACK, "--port", port, "--scheme", "http"),
        environment=variables,
        directory=str(layout.data),
        log=str(layout.log(NAME)),
        grace_s=GRACE_S,
        closes_below_share=CLOSES_BELOW_SHARE,
        opens_from_share=OPENS_FROM_SHARE,
    )
