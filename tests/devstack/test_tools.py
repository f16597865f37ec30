"""The programs the stack needs, and what is said when they are missing."""

from pathlib import Path

import pytest

from memsluice.devstack import install, tools, versions
from memsluice.errors import StackError


def _program(folder: Path, name: str, says: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)


def test_everything_missing_is_named_at_once_with_its_command(tmp_path: Path):
    """An operator installs once, not three times: one message names all of it and how."""
    with pytest.raises(StackError) as caught:
        tools.find(["java", "mvn", "go"], path=str(tmp_path))
    told = str(caught.value)
    for word in ("openjdk-17-jre-headless", "maven", "golang", "apt-get install"):
        assert word in told


def test_what_is_there_is_not_named(tmp_path: Path):
    """The message holds only what is missing."""
    _program(tmp_path, "java", 'openjdk version "21.0.1"')
    with pytest.raises(StackError) as caught:
        tools.find(["java", "mvn"], path=str(tmp_path))
    assert "openjdk" not in str(caught.value)
    assert "maven" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "says"),
    [("java", 'openjdk version "11.0.2"'), ("java", "no such thing"), ("go", "go version go1.19.8 linux/amd64")],
)
def test_too_old_counts_as_missing(tmp_path: Path, name: str, says: str):
    """A program that could not do its work is refused before the work begins."""
    _program(tmp_path, name, says)
    with pytest.raises(StackError, match="or newer"):
        tools.find([name], path=str(tmp_path))


def test_new_enough_is_found(tmp_path: Path):
    """Versions are compared as numbers, not as text."""
    _program(tmp_path, "go", "go version go1.126.0 linux/amd64")
    _program(tmp_path, "java", 'openjdk version "17.0.15" 2025-04-15')
    found = tools.find(["go", "java"], path=str(tmp_path))
    assert found.go == str(tmp_path / "go")
    assert found.java == str(tmp_path / "java")


def test_only_java_is_needed_once_both_are_installed(tmp_path: Path):
    """Maven and Go are asked for only while their product is not in the cache."""
    assert install.missing_tools(tmp_path) == ["java", "mvn", "go"]
    install.kafka_jars(tmp_path).mkdir()
    install.weaviate_binary(tmp_path).parent.mkdir()
    install.weaviate_binary(tmp_path).touch()
    assert install.missing_tools(tmp_path) == ["java"]


def test_a_new_pin_is_installed_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The cache is keyed by version, so an upgrade never runs the old jars."""
    install.kafka_jars(tmp_path).mkdir()
    monkeypatch.setattr(versions, "KAFKA", "99.0.0")
    assert "mvn" in install.missing_tools(tmp_path)


def test_a_failing_tool_is_quoted_and_leaves_nothing(tmp_path: Path):
    """When Maven fails, its own words are shown, and no half-made folder looks installed."""
    (tmp_path / "bin").mkdir()
    mvn = tmp_path / "bin" / "mvn"
    mvn.write_text("#!/bin/sh\necho 'Could not transfer artifact'; exit 1\n")
    mvn.chmod(0o755)
    cache = tmp_path / "cache"
    with pytest.raises(StackError, match="Could not transfer artifact"):
        install.install_kafka(cache, tools.Tools(mvn=str(mvn)), lambda _line: None)
    assert not install.kafka_jars(cache).exists()
    assert [path.name for path in cache.iterdir()] == ["install.lock"]
