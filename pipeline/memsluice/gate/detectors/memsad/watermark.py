"""The watermark (seed 000, Section 5 and Appendix C): ``z = (g - gamma n) / sqrt(gamma (1 - gamma) n)``.

Whoever controls ingestion marks honest texts, and what carries no mark is rejected: ``z < 1.5``. At the level of
characters the green list is 43 of the 95 printable ASCII characters (gamma .45). How a text that exists is marked the
paper leaves open (a unigram watermark steers a model while it writes): :func:`embed` appends green letters, which
everybody sees and whoever knows the seed can forge. The seed stands in the policy, so it is no secret.

The paper's own limits: auto-storage bypasses it (Section 6.3), though Table 3 gives it 1.00 on MINJA, which comes that
way. And z is not standard normal for text: letters are not alike frequent, so it says which letters were drawn green.
The token-level figures of Appendix C (p_green .711, mean z 7.5 at n = 50) need gamma = .25 and a bias of 2, which the
paper does not say; with gamma .45 the same p_green gives 3.7.
"""

import math
from hashlib import sha256

CHARACTERS = tuple(chr(code) for code in range(32, 127))
GAMMA = 0.45
Z_MIN = 1.5
PADDING_MAX = 4_096


def z_score(green: int, length: int) -> float:
    """Return z for ``green`` of ``length`` >= 1 characters or tokens on the green list."""
    return (green - GAMMA * length) / math.sqrt(GAMMA * (1 - GAMMA) * length)


def green_list(seed: str) -> frozenset[str]:
    """Return the green characters of a seed: the first 43 by SHA-256."""
    order = sorted(CHARACTERS, key=lambda one: sha256(f"{seed}\0{one}".encode()).digest())
    return frozenset(order[: round(GAMMA * len(CHARACTERS))])


def detect(text: str, green: frozenset[str]) -> float:
    """Return z of a text; its characters outside of printable ASCII do not count, and without any z is 0."""
    counted = [one for one in text if " " <= one <= "~"]
    return z_score(sum(one in green for one in counted), len(counted)) if counted else 0.0


def embed(text: str, green: frozenset[str], z_min: float = Z_MIN) -> str:
    """Return the text with so many green characters appended that z >= z_min; at most PADDING_MAX of them."""
    letters = sorted(one for one in green if one.isalnum()) or sorted(green)
    counted = [one for one in text if " " <= one <= "~"]
    found, length = sum(one in green for one in counted), len(counted)
    for more in range(PADDING_MAX + 1):
        if length + more and z_score(found + more, length + more) >= z_min:
            return text + "".join(letters[at % len(letters)] for at in range(more))
    return text + "".join(letters[at % len(letters)] for at in range(PADDING_MAX))
