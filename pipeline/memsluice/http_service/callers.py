"""Who asks, and whether he asks too often: looked up before anything of a request is read."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from memsluice.clock import Clock
from memsluice.envelope.keys import Keyring
from memsluice.envelope.registry import Credential, Registry
from memsluice.errors import InputError, RequestRefused
from memsluice.recall.bearer import caller_of
from memsluice.stages.quota import Bucket, Quota


@dataclass
class Callers:
    """The callers of one service. ``now_ms`` is Unix ms; ``asking`` says what a quota is of: "ask {} questions"."""

    keyring: Callable[[], Keyring]
    registry: Callable[[], Registry]
    now_ms: Clock
    quota: Quota
    audience: str
    asking: str
    _buckets: dict[str, Bucket] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def caller(self, token: str | None) -> Credential:
        """Return who asks. Raises RequestRefused where nobody does who may, or where he asks too often."""
        if token is None:
            raise RequestRefused(401, "unknown_key", "the request has no bearer token", field="authorization")
        try:
            credential = caller_of(token, self.keyring(), self.registry(), self.now_ms(), self.audience)
        except InputError as error:
            raise RequestRefused(401, error.code, error.reason, field="authorization") from None
        with self._lock:
            now_ms = self.now_ms()
            bucket = self._buckets.setdefault(credential.kid, Bucket(self.quota, now_ms))
            if not bucket.take(self.quota, now_ms):
                raise RequestRefused(429, "rate", f"the credential may {self.asking.format(self.quota.per_s)} a second")
        return credential
