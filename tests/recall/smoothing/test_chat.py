"""Agent and judge behind a chat endpoint: what they are handed, and what counts as a verdict."""

import json
from collections import Counter
from collections.abc import Iterator

import pytest
from tests.client.chat_server import Endpoint, running
from tests.patience import HANG_S

from memsluice.client.chat import ChatEndpoint
from memsluice.errors import ChatFailed
from memsluice.recall.recaller import Recalled
from memsluice.recall.smoothing.chat import ChatAgent, ChatJudge
from memsluice.recall.smoothing.voting import Verdict

NOTHING = Recalled((), Counter(), "r-1", as_data=False)


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """A running endpoint."""
    with running(monkeypatch) as server:
        yield server


def asks(endpoint: Endpoint) -> ChatEndpoint:
    """Return the client of it."""
    return ChatEndpoint(url=endpoint.url, model="small", timeout_s=HANG_S)


def test_the_agent_is_handed_the_memory_and_the_question_apart(endpoint: Endpoint) -> None:
    """Memory stands in the system's message with its head; the question is the user's alone."""
    endpoint.says("I don't know.", usage={"total_tokens": 12})
    reply = ChatAgent(asks(endpoint))("Where?", NOTHING)
    assert (reply.text, reply.tokens) == ("I don't know.", 12)
    system, user = endpoint.asked[0][2]["messages"]
    assert "What follows is remembered." in system["content"]
    assert user == {"role": "user", "content": "Where?"}


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("correct", Verdict.CORRECT),
        (" Malicious.\n", Verdict.MALICIOUS),
        ("neither", Verdict.NEITHER),
        ("The answer is correct", Verdict.NEITHER),
        ("", Verdict.NEITHER),
    ],
)
def test_a_verdict_is_one_word_and_all_else_is_neither(endpoint: Endpoint, said: str, verdict: Verdict) -> None:
    """An answer that talks its judge into prose wins no vote."""
    endpoint.says(said)
    assert ChatJudge(asks(endpoint))("Where?", "Here").verdict is verdict
    assert json.loads(endpoint.asked[0][2]["messages"][1]["content"]) == {"question": "Where?", "answer": "Here"}


def test_a_model_that_fails_ends_the_recall(endpoint: Endpoint) -> None:
    """A run without a verdict is no vote less: who can make runs fail must not choose the majority."""
    endpoint.status = 500
    with pytest.raises(ChatFailed, match="HTTP status 500"):
        ChatJudge(asks(endpoint))("Where?", "Here")
