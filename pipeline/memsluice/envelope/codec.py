"""The one place where content, and everything computed from it, becomes bytes and comes back.

Vectors, questions and digests pass through here and nowhere else, as state rows do through the gate's
:mod:`memsluice.gate.state.rows`, so that encryption under a tenant's data
key is one switch. Digests are HMACs under a tenant key: a bare hash of a short fact can be guessed.
"""

import base64
import re
import unicodedata
from binascii import a2b_base64
from hashlib import blake2b
from math import inf, sqrt
from typing import TYPE_CHECKING, Any

import orjson

from memsluice.envelope.keys import Keyring
from memsluice.envelope.space import DEFAULT_DIMENSIONS, check_dimensions
from memsluice.errors import MalformedEvent, StateError

if TYPE_CHECKING:  # numpy takes longer to import than a command that shows a verdict takes to run
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
else:
    Vector = Any

DIMENSIONS = DEFAULT_DIMENSIONS
"""Length of the default encoder's vectors; another's have another (:mod:`memsluice.envelope.space`)."""
VECTOR_DTYPE = "float16"
COARSE_STEPS = 2_047
"""Steps of a coarse component on either side of zero: 12 bits."""
SKETCH_WORDS_MAX = 1_024
"""Distinct words that a sketch holds, 4 bytes each; a text of more has no sketch."""
DEPTH_MAX = 64
"""Objects and arrays inside one another in what is read between the stages, which needs about ten. The parser alone
follows 1,024 levels, the writer 254: what is read must be fit to be written again."""
_WORD = re.compile(r"\w{4,}")
_UNSPACED = re.compile(r"[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff]{2,}")


def canonical(value: Any) -> bytes:
    """Return JSON with sorted keys and no spaces: the same value always gives the same bytes."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def from_json(data: bytes | str, field: str = "") -> Any:
    """Return the value of JSON as the gate writes it, which is shallow. Raises MalformedEvent, which quotes nothing."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise MalformedEvent("is no JSON", field=field) from None
    opening = data.count("[") + data.count("{") if isinstance(data, str) else data.count(b"[") + data.count(b"{")
    if opening > DEPTH_MAX and _deeper(value, DEPTH_MAX):  # else it cannot be: brackets may stand in a text, too
        raise MalformedEvent(f"is nested more than {DEPTH_MAX} levels deep", field=field)
    return value


def _deeper(value: Any, levels: int) -> bool:
    """Whether a value has objects and arrays in more levels than these."""
    level = [value]
    for _ in range(levels + 1):
        inner = [one for one in level if isinstance(one, dict | list)]
        level = [below for one in inner for below in (one.values() if isinstance(one, dict) else one)]
        if not inner:
            return False
    return True


def vector_to_bytes(vector: Vector) -> bytes:
    """Return little-endian float16, two bytes a component: 768 bytes of 384."""
    return vector.astype("<f2").tobytes()


def vector_from_bytes(data: bytes) -> Vector:
    """Return the unit vector, shape (d,), float32, of 2 d bytes. Raises MalformedEvent."""
    import numpy as np

    if len(data) % 2:
        raise MalformedEvent(f"has {len(data)} bytes, which is no whole number of float16", field="vector")
    check_dimensions(len(data) // 2)
    vector = np.frombuffer(data, "<f2").astype(np.float64)  # 64 bit: the same vector on every machine
    with np.errstate(invalid="ignore"):  # what is no number is refused
        norm = sqrt(vector.dot(vector))
    if not 0.5 <= norm < inf:  # NaN is not either
        raise MalformedEvent("does not have length 1", field="vector")
    vector /= norm
    return vector.astype(np.float32)


def vector_to_text(vector: Vector) -> str:
    """Return base64 of :func:`vector_to_bytes`."""
    return base64.b64encode(vector_to_bytes(vector)).decode()


def vector_from_text(text: str) -> Vector:
    """Return the vector of :func:`vector_to_text`. Raises MalformedEvent."""
    try:
        return vector_from_bytes(a2b_base64(text, strict_mode=True))
    except ValueError:
        raise MalformedEvent("is not valid base64", field="vector") from None


def coarse_to_text(vector: Vector) -> str:
    """Return two characters a component: base64 of 12 bits each, a pair in three bytes, as shares of the largest one.

    Cosines with what :func:`coarse_from_text` returns are off by some 3e-5. For state that is kept by the dozen.
    """
    import numpy as np

    steps = np.rint(vector.astype(np.float64) * (COARSE_STEPS / np.abs(vector).max())).astype(np.int32) + COARSE_STEPS
    first, second = steps[::2], steps[1::2]
    packed = np.stack((first >> 4, (first & 15) << 4 | second >> 8, second & 255), axis=1).astype(np.uint8)
    return base64.b64encode(packed.tobytes()).decode()


def coarse_from_text(text: str) -> Vector:
    """Return the unit vector of :func:`coarse_to_text`."""
    import numpy as np

    one, two, three = np.frombuffer(base64.b64decode(text), np.uint8).astype(np.int32).reshape(-1, 3).T
    steps = np.stack((one << 4 | two >> 4, (two & 15) << 8 | three), axis=1).reshape(-1) - COARSE_STEPS
    exact = steps.astype(np.float64)
    return (exact / np.sqrt(exact @ exact)).astype(np.float32)


def digest(keyring: Keyring, tenant: str, purpose: str, data: bytes) -> str:
    """Return the HMAC-SHA256, 64 hex digits, of ``data`` under the tenant's digest key."""
    return keyring.digest_key(tenant).sign(purpose.encode() + b"\0" + data).hex()


def content_digest(keyring: Keyring, tenant: str, content: str) -> str:
    """Return the digest that approvals, admissions and duplicates are bound to."""
    return digest(keyring, tenant, "content", content.encode())


def vector_digest(keyring: Keyring, tenant: str, vector_bytes: bytes) -> str:
    """Return the digest of a vector's wire bytes."""
    return digest(keyring, tenant, "vector", vector_bytes)


def sketch(keyring: Keyring, tenant: str, text: str) -> str:
    """Return base64 of a text's words: of each distinct one a 32-bit keyed hash, sorted; "" where there are too many.

    Words have four letters or digits at least, compared without case and without what is not seen; a script that puts
    no blanks between words counts by pairs of letters. The key is the tenant's, so that a state row that keeps a sketch
    gives no word away to whoever guesses one.
    """
    import numpy as np

    plain = unicodedata.normalize("NFKC", text).casefold()
    if not plain.isascii():
        plain = "".join(letter for letter in plain if unicodedata.category(letter) != "Cf")
    words = set(_WORD.findall(plain))
    for run in _UNSPACED.findall(plain):
        words.update(run[at : at + 2] for at in range(len(run) - 1))
    if len(words) > SKETCH_WORDS_MAX:
        return ""
    key = keyring.digest_key(tenant).sign(b"sketch")
    hashes = {int.from_bytes(blake2b(word.encode(), digest_size=4, key=key).digest(), "big") for word in words}
    return base64.b64encode(np.array(sorted(hashes), dtype=">u4").tobytes()).decode()


def sketch_words(text: str) -> frozenset[int]:
    """Return the hashes of a sketch. Raises StateError."""
    import numpy as np

    try:
        return frozenset(np.frombuffer(base64.b64decode(text, validate=True), dtype=">u4").tolist())
    except ValueError:
        raise StateError("sketch cannot be read") from None
