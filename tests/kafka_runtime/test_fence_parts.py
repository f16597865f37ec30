"""What an error of a transaction means to its stage, without a broker."""

import pytest
from aiokafka.errors import (
    InvalidTxnState,
    KafkaError,
    MessageSizeTooLargeError,
    NodeNotReadyError,
    ProducerFenced,
    RequestTimedOutError,
    TopicAuthorizationFailedError,
)
from pydantic import SecretStr
from tests.kafka_runtime.dummies import Stamp

from memsluice.deployment.connection import Connection
from memsluice.errors import Fenced, NotCommitted, OutputTooLarge
from memsluice.runtimes.kafka.fence import Fence
from memsluice.runtimes.kafka.spec import StageSpec


@pytest.mark.parametrize(
    ("error", "means"),
    [
        (ProducerFenced(), Fenced),
        (InvalidTxnState(), Fenced),
        (NodeNotReadyError(), NotCommitted),
        (RequestTimedOutError(), NotCommitted),
        (KafkaError("Unexpected error during batch delivery"), NotCommitted),
        (TopicAuthorizationFailedError(), TopicAuthorizationFailedError),
        (MessageSizeTooLargeError(), OutputTooLarge),
    ],
)
def test_a_broker_that_goes_away_is_no_failure_of_the_stage(error: KafkaError, means: type[Exception]) -> None:
    """A stage begins anew where that helps; what would only happen again ends the worker, loudly."""
    connection = Connection(
        bootstrap="127.0.0.1:1", weaviate_http_port=1, weaviate_grpc_port=1, users={"x": SecretStr("unused")}
    )
    spec = StageSpec(name="x", app_id="x", user="x", inputs=("a",), outputs=("c",), kind="batch", stage=Stamp("c"))
    assert type(Fence(spec, connection, 3)._named(error)) is means
