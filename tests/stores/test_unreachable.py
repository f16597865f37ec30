"""Weaviate that is not there: the error has the address and what to do."""

from contextlib import closing
from types import SimpleNamespace

import grpc
import pytest
from tests.stores.build import entry

from memsluice.errors import StoreError, StoreUnavailable
from memsluice.stores.base import StoreAnswer
from memsluice.stores.weaviate.rpc import Address, Rpc
from memsluice.stores.weaviate.store import WeaviateStore


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (grpc.StatusCode.DEADLINE_EXCEEDED, "did not answer within 5 s"),
        (grpc.StatusCode.UNAVAILABLE, "cannot be reached"),
        (grpc.StatusCode.INTERNAL, "could not do what it was asked (internal: Deadline Exceeded)"),
        (grpc.StatusCode.UNAUTHENTICATED, "refused: Deadline Exceeded"),
    ],
)
def test_what_did_not_answer_has_an_address_and_advice(code: grpc.StatusCode, said: str) -> None:
    """Whoever reads it knows which server to look at, and how; a refused key is no server that is away."""
    with closing(Rpc(Address("127.0.0.1", 1, 2, "key"))) as rpc:
        told = rpc._error(SimpleNamespace(code=lambda: code, details=lambda: "Deadline Exceeded"), 5.0)
    assert f"Weaviate at 127.0.0.1:1 (gRPC: 2) {said}" in str(told)
    away = code is not grpc.StatusCode.UNAUTHENTICATED
    assert isinstance(told, StoreUnavailable if away else StoreError)
    assert (isinstance(told, StoreUnavailable), "memsluice stack status" in str(told)) == (away, away)


@pytest.mark.parametrize(
    "error",
    [
        "put objects: cannot achieve consistency level QUORUM: cannot reach enough replicas",
        "could not find index for class GuidanceMemory. It might have been deleted in the meantime",
        "shard is already shut or dropped",
        "local shard is not ready",
        "index for class is closed",
        'Post "http://10.0.0.2:7947": EOF',
        "dial tcp: lookup weaviate-1: no such host",
        "read: connection reset by peer",
    ],
)
def test_what_the_server_lacks_for_a_moment_is_no_objects_fault(error: str) -> None:
    """A dead letter for it, and an accepted entry would never land: a node that is down refuses every object so."""
    store = WeaviateStore(Address("127.0.0.1", 1, 2, "key"))
    assert store._judge(entry("acme", "kept"), error).outcome is StoreAnswer.UNAVAILABLE
    assert store._judge(entry("acme", "kept"), "vector lengths don't match: 3 vs 2").outcome is StoreAnswer.REFUSED
