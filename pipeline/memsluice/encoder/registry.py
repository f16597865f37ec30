"""Which encoder a deployment has: a name, what is called so, and how one more gets a name.

``MEMSLUICE_ENCODER`` is ``NAME`` or ``NAME:MODEL?option=value&option=value``. Every process that encodes must have the
same: *seal*, readers, and the commands that ask the memory.
"""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from memsluice.encoder.base import Encoder, Precision, space_of_encoder
from memsluice.encoder.weights import find_weights
from memsluice.errors import ConfigError
from memsluice.extras import needed

ENCODER_VARIABLE = "MEMSLUICE_ENCODER"
DEFAULT_ENCODER = "minilm"
SENTENCE_TRANSFORMERS = "sentence-transformers"


@dataclass(frozen=True, slots=True)
class EncoderSetting:
    """A deployment's encoder as it is written: ``name:model?options``. ``text`` is all of it.

    ``variable`` is the environment's variable that it was read from, empty where a program said it: an error names no
    variable that nobody has set. It is no part of which encoder is meant.
    """

    text: str
    name: str
    model: str
    options: Mapping[str, str]
    variable: str = field(default="", compare=False)

    @staticmethod
    def parse(text: str, variable: str = "") -> "EncoderSetting":
        """Read a setting. Raises ConfigError for an option without a value, or one that is given twice."""
        whole, _, query = text.partition("?")
        name, _, model = whole.partition(":")
        try:
            pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
        except ValueError:
            pairs = [("", "")]
        options = dict(pairs)
        if len(options) < len(pairs) or "" in options or "" in options.values():
            raise ConfigError(
                f"{_named(text, variable)}: options are written ?option=value&option=value, each of them once"
            )
        return EncoderSetting(text, name.strip(), model.strip(), options, variable)

    @staticmethod
    def read(environ: Mapping[str, str] = os.environ) -> "EncoderSetting":
        """Return the environment's setting; the default encoder where it has none. Raises ConfigError."""
        said = environ.get(ENCODER_VARIABLE, "").strip()
        return EncoderSetting.parse(said, ENCODER_VARIABLE) if said else EncoderSetting.parse(DEFAULT_ENCODER)

    @property
    def named(self) -> str:
        """What an error calls it: as it stands where it was set."""
        return _named(self.text, self.variable)

    def refuse_options(self, *known: str) -> None:
        """Raise ConfigError for an option that is none of those known."""
        for option in self.options:
            if option not in known:
                there = f"there are {', '.join(known)}" if known else "this encoder has none"
                raise ConfigError(f"{self.named} has the option {option!r}, which is none: {there}")


@dataclass(frozen=True, slots=True)
class Running:
    """How a process runs its encoder. ``threads``: torch's, for the whole process; None leaves them alone."""

    threads: int | None = None
    precision: Precision = "auto"


Loader = Callable[[EncoderSetting, Running], Encoder]
"""Loads an encoder; raises ConfigError, with what to do, where it cannot."""


def _minilm(setting: EncoderSetting, running: Running) -> Encoder:
    if setting.model:
        raise ConfigError(
            f"{setting.named} names a model, but `{DEFAULT_ENCODER}` is one model; any other is "
            f"{SENTENCE_TRANSFORMERS}:MODEL"
        )
    setting.refuse_options()
    weights = find_weights()
    _let_threads_sleep()
    with needed("The encoder", "local-model"):
        from memsluice.encoder.loop import MiniLMEncoder

    return MiniLMEncoder(weights, threads=running.threads, precision=running.precision)


def _sentence_transformers(setting: EncoderSetting, running: Running) -> Encoder:
    if not setting.model:
        raise ConfigError(f"{setting.named} names no model: write {SENTENCE_TRANSFORMERS}:NAME or :/FOLDER")
    _let_threads_sleep()
    with needed("The encoder", SENTENCE_TRANSFORMERS):
        from memsluice.encoder.sentence_transformers import OPTIONS, load

    setting.refuse_options(*OPTIONS)
    return load(setting.model, setting.options, threads=running.threads)


_LOADERS: dict[str, Loader] = {DEFAULT_ENCODER: _minilm, SENTENCE_TRANSFORMERS: _sentence_transformers}


def register(name: str, loader: Loader) -> None:
    """Give an encoder of one's own a name, before anything is loaded. Raises ConfigError for a name that is taken."""
    if name in _LOADERS or not name or any(mark in name for mark in ":?"):
        raise ConfigError(f"an encoder cannot be called {name!r}: the name is taken, empty, or has a : or ? in it")
    _LOADERS[name] = loader


def load(setting: EncoderSetting, running: Running) -> Encoder:
    """Load the encoder that a setting names. Raises ConfigError, which lists what there is."""
    loader = _LOADERS.get(setting.name)
    if loader is None:
        known = ", ".join(sorted(_LOADERS))
        raise ConfigError(f"{setting.named} names no encoder: there are {known} (docs/encoder.md)")
    encoder = loader(setting, running)
    try:
        space_of_encoder(encoder)
    except ConfigError as error:
        raise ConfigError(f"{setting.named}: {error}") from None
    return encoder


def _named(text: str, variable: str) -> str:
    return f"{variable}={text}" if variable else repr(text)


def _let_threads_sleep() -> None:
    """Tell torch's threads to sleep when they wait, where nobody said otherwise and torch is not there yet."""
    if "torch" not in sys.modules:
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
