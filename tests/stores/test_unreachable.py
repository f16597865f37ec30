"""Weaviate that is not there: the error has the address and what to do."""

from contextlib import closing
from types import SimpleNamespace

import grpc
import pytest

from memsluice.errors import StoreError, StoreUnavailable
from memsluice.stores.weaviate.rpc import Address, Rpc


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
    assert f"Weaviate at 127.0.0.1:2 {said}" in str(told)
    away = code is not grpc.StatusCode.UNAUTHENTICATED
    assert isinstance(told, StoreUnavailable if away else StoreError)
    assert (isinstance(told, StoreUnavailable), "memsluice stack status" in str(told)) == (away, away)
