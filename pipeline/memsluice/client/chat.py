"""A model behind an OpenAI-compatible chat endpoint; the standard library's HTTP client, bounded."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, TypedDict
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from memsluice.client import arguments
from memsluice.client.options import SECONDS_MAX, SECONDS_MIN
from memsluice.errors import ChatFailed, InvalidArgument

ANSWER_BYTES_DEFAULT, ANSWER_BYTES_MAX = 262_144, 16_777_216
READ_BYTES = 65_536


class Message(TypedDict):
    """One message of a conversation: ``role`` is system, user or assistant."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """What the model said. ``tokens``: of conversation and answer together, 0 where the endpoint does not say."""

    text: str
    tokens: int


class _NoRedirect(HTTPRedirectHandler):
    """A redirected request would take text and key to an address that nobody configured."""

    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatEndpoint:
    """Where a model answers. InvalidArgument for a value out of range.

    One request a call, at temperature 0 unless told, without retries and without following redirects.

    Attributes:
        url: of the endpoint, http or https, whole: it ends in ``/chat/completions`` with most servers.
        model: the name that the endpoint knows it by.
        key: goes out as a bearer token; never shown. None: none is sent.
        timeout_s: in seconds, for connecting, for the silence before each part of the answer, and for all of its body;
            an endpoint that sends its headers byte by byte is cut off by the silence alone.
        answer_bytes: of the whole answer, 1 to 16,777,216.
    """

    url: str
    model: str
    key: str | None = field(default=None, repr=False)
    timeout_s: float = 30.0
    answer_bytes: int = ANSWER_BYTES_DEFAULT

    def __post_init__(self) -> None:
        arguments.instance("url", self.url, str, "the address of a chat endpoint, a string")
        try:
            parts = urlsplit(self.url)
            fits = parts.scheme in ("http", "https") and bool(parts.hostname) and self.url.isprintable()
        except ValueError:
            fits = False
        if not fits or " " in self.url:
            raise InvalidArgument("argument url must be an http or https address")
        arguments.instance("model", self.model, str, "the name of a model, a string")
        if self.key is not None and not (isinstance(self.key, str) and self.key.isascii() and self.key.isprintable()):
            raise InvalidArgument("argument key must be printable ASCII, or None")
        arguments.number("argument timeout_s", self.timeout_s, SECONDS_MIN, SECONDS_MAX)
        arguments.whole("argument answer_bytes", self.answer_bytes, 1, ANSWER_BYTES_MAX)

    def complete(self, messages: Sequence[Message], *, temperature: float = 0) -> Completion:
        """Return the model's answer to a conversation. Raises ChatFailed, which quotes nothing."""
        body = {"model": self.model, "temperature": temperature, "messages": list(messages)}
        return completion(self._answer(json.dumps(body).encode()))

    def _answer(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        request = Request(self.url, data=body, headers=headers, method="POST")  # noqa: S310 - http(s) only
        until = time.monotonic() + self.timeout_s
        try:
            with build_opener(_NoRedirect).open(request, timeout=self.timeout_s) as response:
                read = bytearray()
                while part := response.read1(READ_BYTES):
                    read += part
                    if len(read) > self.answer_bytes:
                        why = f"the endpoint answered more than {self.answer_bytes} bytes"
                        break
                    if time.monotonic() > until:
                        why = f"the endpoint did not finish its answer within {self.timeout_s:g} s"
                        break
                else:
                    return bytes(read)
        except HTTPError as error:
            error.close()
            why = f"the endpoint answered with HTTP status {error.code}"
        except TimeoutError:
            why = f"the endpoint did not answer within {self.timeout_s:g} s"
        except (OSError, HTTPException, ValueError) as error:  # URLError is an OSError, and wraps what happened
            reason = getattr(error, "reason", error)
            slow = isinstance(reason, TimeoutError)
            why = f"did not answer within {self.timeout_s:g} s" if slow else f"failed ({type(reason).__name__})"
            why = f"the endpoint {why}"
        raise ChatFailed(why)


def completion(answer: bytes) -> Completion:
    """Return what a chat completion's first choice says. Raises ChatFailed, which quotes nothing."""
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError):  # an error of json quotes its document
        found = None
        why = "the endpoint's answer is no JSON"
    else:
        why = "the endpoint's answer has no choices[0].message.content that is a text"
    try:
        text = found["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        text = None
    if not isinstance(text, str):
        raise ChatFailed(why)
    return Completion(text, _tokens(found))


def _tokens(found: dict[str, Any]) -> int:
    """Return the tokens that the endpoint counted, 0 for anything that is no count."""
    usage = found.get("usage")
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    return total if isinstance(total, int) and not isinstance(total, bool) and total > 0 else 0
