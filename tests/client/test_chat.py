"""A model behind a chat endpoint: what it counted, and what is no answer."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.client.chat_server import Endpoint, running
from tests.patience import HANG_S

from memsluice.client.chat import ChatEndpoint, Message
from memsluice.errors import ChatFailed

ASKED = [Message(role="user", content="Where?")]


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """A running endpoint."""
    with running(monkeypatch) as server:
        yield server


@pytest.mark.parametrize(
    ("usage", "tokens"), [({"total_tokens": 41}, 41), ({}, 0), (None, 0), ({"total_tokens": "41"}, 0), ([1], 0)]
)
def test_the_tokens_are_those_that_the_endpoint_counted(endpoint: Endpoint, usage: Any, tokens: int) -> None:
    """An endpoint that counts none, or says nonsense, costs an unknown number: 0, and the answer stands."""
    endpoint.says("Berlin", usage=usage)
    said = ChatEndpoint(url=endpoint.url, model="small", timeout_s=HANG_S).complete(ASKED, temperature=0.7)
    assert (said.text, said.tokens) == ("Berlin", tokens)
    assert endpoint.asked[0][2]["temperature"] == 0.7
    assert endpoint.asked[0][2]["messages"] == ASKED


def test_what_is_no_answer_is_a_failure_that_quotes_nothing(endpoint: Endpoint) -> None:
    """A completion without a text is named as that; what it holds instead may be anybody's secret."""
    endpoint.says(["a secret"])
    with pytest.raises(ChatFailed, match="no choices") as caught:
        ChatEndpoint(url=endpoint.url, model="small", timeout_s=HANG_S).complete(ASKED)
    assert "secret" not in str(caught.value)
