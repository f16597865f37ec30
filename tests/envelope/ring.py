"""One keyring for the tests of the envelope: fixed bytes, so that failures repeat."""

from memsluice.envelope.keys import Algorithm, Key, Keyring, Purpose
from memsluice.keystore.store import public_half

ADMISSION_SEED = bytes(range(32))
RING = Keyring(
    [
        Key("seal-1", Purpose.SEAL, Algorithm.HMAC_SHA256, b"s" * 32),
        Key("digest-1", Purpose.DIGEST, Algorithm.HMAC_SHA256, b"d" * 32),
        Key("admission-1", Purpose.ADMISSION, Algorithm.ED25519, ADMISSION_SEED, public_half(ADMISSION_SEED)),
        Key("producer-1", Purpose.CREDENTIAL, Algorithm.HMAC_SHA256, b"k" * 32),
    ]
)
