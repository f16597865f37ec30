"""The extras of pyproject.toml, their packages in `memsluice.extras`, and their table in the docs say the same."""

import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

from memsluice.errors import ConfigError, MissingExtra
from memsluice.extras import PACKAGES, needed, require

TOP = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
OF_A_NAMESPACE = {
    "opentelemetry.exporter.otlp": [
        "opentelemetry-exporter-otlp-proto-common",
        "opentelemetry-exporter-otlp-proto-http",
    ],
    "opentelemetry.proto": ["opentelemetry-proto"],
    "opentelemetry.sdk": ["opentelemetry-sdk"],
    "langgraph": ["langgraph-checkpoint"],
    "google.adk": ["google-adk"],
    "llama_index.core": ["llama-index-core"],
}
"""One namespace, several distributions: which is which, an environment cannot tell."""


def _name(requirement: str) -> str:
    return re.split(r"[<>=]", requirement)[0].lower().replace("_", "-")


@pytest.mark.parametrize("extra", sorted(PACKAGES))
def test_the_packages_of_an_extra_are_those_it_installs(extra: str) -> None:
    """Every distribution of an extra is known by the names under which it is imported, and no other is."""
    distributions = packages_distributions() | OF_A_NAMESPACE
    known = {_name(name) for package in PACKAGES[extra] for name in distributions[package]}
    assert known == {_name(line) for line in EXTRAS[extra] if not line.startswith("memsluice[")}


def test_all_is_every_extra() -> None:
    """`memsluice[all]` leaves nothing out."""
    assert set(EXTRAS) == {*PACKAGES, "all"}
    (line,) = EXTRAS["all"]
    assert set(line.removeprefix("memsluice[").removesuffix("]").split(",")) == set(PACKAGES)


def test_every_dependency_has_its_reason() -> None:
    """Each line in pyproject.toml that adds a dependency says in a comment why it is here."""
    lines = (TOP / "pyproject.toml").read_text().split("[dependency-groups]")[0].splitlines()
    added = [
        line for line in lines if re.match(r'  "[a-z][\w\[\]-]*(,|[<>=].*)?",?', line) and '"agents", ' not in line
    ]
    listed = [*PROJECT["dependencies"], *(line for extra, some in EXTRAS.items() if extra != "all" for line in some)]
    with_reason = [line for line in added if re.search(r'",\s+# \S', line)]
    assert len(with_reason) == len(listed)


def test_a_missing_package_of_an_extra_is_a_config_error_and_an_import_error() -> None:
    """Who catches either catches it; it names part, package, extra and command."""
    with pytest.raises(MissingExtra) as told, needed("`Recaller`", "recall"):
        raise ModuleNotFoundError("No module named 'numpy.linalg'", name="numpy.linalg")
    assert isinstance(told.value, ConfigError)
    assert isinstance(told.value, ImportError)
    assert told.value.name == "numpy.linalg"
    assert str(told.value) == (
        "`Recaller` needs the extra `recall` (numpy.linalg is not installed): pip install 'memsluice[recall]'"
    )


@pytest.mark.parametrize(
    ("missing", "asked", "named"),
    [("torch", "recall", "local-model"), ("numpy", "embedded", "embedded"), ("opentelemetry.exporter", None, "otel")],
)
def test_the_extra_that_brings_the_package_is_named(missing: str, asked: str | None, named: str) -> None:
    """The one asked for if it brings the package, else one that does."""
    with pytest.raises(MissingExtra, match=rf"memsluice\[{named}\]"), needed("This", asked):
        raise ModuleNotFoundError(name=missing)


@pytest.mark.parametrize("missing", ["memsluice.gate.nonsense", "confluent_kafka", "nonsense", None])
def test_any_other_missing_module_stays_what_it_is(missing: str | None) -> None:
    """A broken installation, or a mistake of ours, is not taken for an extra."""
    with pytest.raises(ModuleNotFoundError, match="nonsense"), needed("This"):
        raise ModuleNotFoundError("nonsense", name=missing)


def test_what_is_installed_is_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the developers' environment every extra is there; a package that cannot be found is named."""
    for extra in PACKAGES:
        require("This", extra)
    monkeypatch.setitem(PACKAGES, "otel", ("nonsense.at.all",))
    with pytest.raises(MissingExtra, match=r"This needs the extra `otel` \(nonsense.at.all is not installed\)"):
        require("This", "otel")


def test_the_table_in_the_docs_is_that_of_the_project() -> None:
    """docs/install.md lists every extra with the distributions that it brings, in the order of pyproject.toml."""
    rows = re.findall(r"^\| `([a-z0-9-]+)` \|.*\| ([^|]+) \|$", (TOP / "docs" / "install.md").read_text(), re.MULTILINE)
    told = {extra: {name.strip() for name in brought.split(",")} for extra, brought in rows}
    assert list(told) == [*EXTRAS]
    for extra, brought in told.items():
        expected = {"every extra above"} if extra == "all" else {f"`{_name(line)}`" for line in EXTRAS[extra]}
        assert brought == expected, extra
