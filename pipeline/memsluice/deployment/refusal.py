"""Tells a broker that refuses a user from one that was too slow to say so."""

from typing import Any

from confluent_kafka import KafkaError

_NO_ANSWER = "failed: Local: "
"""What stands in the text of an error where librdkafka had no answer: the reason after it is its own."""


def refuses(error: Any) -> bool:
    """Whether the broker itself says that it does not accept this user or this password.

    librdkafka gives the same code to a login that was cut off, or took too long, and names that in its text: "...
    SaslAuthenticateRequest failed: Local: Timed out". A busy broker must not send anybody to look for a password.
    ``error`` is a KafkaError.
    """
    return bool(error.code() == KafkaError._AUTHENTICATION and _NO_ANSWER not in error.str())
