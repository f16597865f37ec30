"""An OpenID provider that answers over HTTP: discovery, the code flow with PKCE, RS256 tokens; and what it gets wrong.

``lies`` are what it says otherwise than it should: of the token's claims (``{"nonce": "x"}``), its key
(``{"key": …}``), or its discovery (``{"issuer": …}``).
"""

import base64
import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode

import jwt
import uvicorn
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse
from starlette.routing import Route

CLIENT, SECRET = "desk", "s3cret"


class OpenId:
    """One provider, and whom it lets in: whoever comes is the person whose claims are ``person``."""

    def __init__(self) -> None:
        self.person: dict[str, Any] = {}
        self.lies: dict[str, Any] = {}
        self.issuer = ""
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._asked: dict[str, dict[str, str]] = {}
        self.app = Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._discovery),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
                Route("/keys", self._keys),
            ]
        )

    async def _discovery(self, _request: Request) -> JSONResponse:
        names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        told = {"issuer": self.issuer, **{name: f"{self.issuer}/{path}" for name, path in names.items()}}
        return JSONResponse({**told, **{name: self.lies[name] for name in told if name in self.lies}})

    async def _authorize(self, request: Request) -> RedirectResponse:
        asked, code = dict(request.query_params), secrets.token_urlsafe()
        assert (asked["client_id"], asked["response_type"], asked["code_challenge_method"]) == (CLIENT, "code", "S256")
        self._asked[code] = asked
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}", 302)

    async def _token(self, request: Request) -> JSONResponse:
        sent = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        asked = self._asked.pop(sent["code"], None)
        said = base64.b64decode(request.headers["authorization"].removeprefix("Basic ")).decode()
        verified = base64.urlsafe_b64encode(sha256(sent["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        if asked is None or verified != asked["code_challenge"] or said != f"{CLIENT}:{SECRET}":
            return JSONResponse({"error": "invalid_grant"}, 400)
        now = int(time.time())
        claims = {
            "iss": self.issuer, "aud": CLIENT, "sub": "1", "iat": now, "exp": now + 600, "nonce": asked["nonce"],
            **self.person, **{name: value for name, value in self.lies.items() if name not in ("key", "alg")},
        }  # fmt: skip
        key = self.lies.get("key", self.key)
        token = jwt.encode(claims, key, self.lies.get("alg", "RS256"), headers={"kid": "k1"})
        return JSONResponse({"access_token": "x", "token_type": "Bearer", "id_token": token})

    async def _keys(self, _request: Request) -> JSONResponse:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return JSONResponse({"keys": [{**public, "kid": "k1", "use": "sig", "alg": "RS256"}]})


@contextmanager
def providing() -> Iterator[OpenId]:
    """Give a provider that listens on a port of its own."""
    made = OpenId()
    server = uvicorn.Server(uvicorn.Config(made.app, "127.0.0.1", 0, log_level="error", lifespan="off"))
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    made.issuer = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.should_exit = True
        thread.join()
