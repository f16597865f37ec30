"""The broker's users that a later version brings: the data of a stack was made without them."""

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from memsluice.deployment.connection import Connection
from memsluice.errors import BrokerUnavailable
from memsluice.topics.names import BROKER_REMEDY

ITERATIONS = 4_096
"""Kafka's own default for SCRAM-SHA-512."""
TIMEOUT_S = 10.0


def add_users(admin: AdminClient, connection: Connection) -> list[str]:
    """Give the broker every user of the connection that it does not know; return which. Raises BrokerUnavailable."""
    try:
        known = admin.describe_user_scram_credentials(None, request_timeout=TIMEOUT_S).result()
        missing = sorted(connection.users.keys() - known.keys())
        method = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, ITERATIONS)
        made = [UserScramCredentialUpsertion(user, method, connection.password(user).encode()) for user in missing]
        if made:
            for done in admin.alter_user_scram_credentials(made, request_timeout=TIMEOUT_S).values():
                done.result()
    except KafkaException as error:
        raise BrokerUnavailable(
            f"the broker's users cannot be read or made: {error.args[0].str()}; {BROKER_REMEDY}"
        ) from None
    return missing
