"""Ready-checks: a server is ready when it answers an authenticated request, not when its port is open."""

import urllib.error
import urllib.request

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from memsluice.deployment.connection import Connection, quiet
from memsluice.topics.names import USER_ADMIN, WEAVIATE_ADMIN

PROBE_TIMEOUT_S = 2.0


def kafka_ready(connection: Connection, timeout_s: float = PROBE_TIMEOUT_S) -> bool:
    """Tell whether the broker lets the admin in and knows itself as a member of its cluster."""
    client = AdminClient(quiet({**connection.confluent(USER_ADMIN), "socket.timeout.ms": int(timeout_s * 1000)}))
    try:
        return len(client.list_topics(timeout=timeout_s).brokers) > 0
    except KafkaException:
        return False


def weaviate_ready(connection: Connection, timeout_s: float = PROBE_TIMEOUT_S) -> bool:
    """Tell whether the store reports itself ready and takes the admin's key."""
    key = {"Authorization": f"Bearer {connection.weaviate_key(WEAVIATE_ADMIN)}"}
    try:
        for url, headers in ((connection.weaviate_ready_url, {}), (connection.weaviate_url("schema"), key)):
            request = urllib.request.Request(url, headers=headers)  # noqa: S310 - http(s) by construction
            with urllib.request.urlopen(request, timeout=timeout_s) as response:  # noqa: S310
                if response.status >= 300:
                    return False
    except (urllib.error.URLError, TimeoutError, ConnectionError, OSError):
        return False
    return True
