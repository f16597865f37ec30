"""The distribution as it would be published, and an environment with nothing else in it."""

from pathlib import Path

import pytest

from memsluice_lab.figures.installing import build, environment


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist, and the wheel that was built from it."""
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def base(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel and what it depends on, no extra, no developer's tools."""
    return environment(tmp_path_factory.mktemp("base") / "venv", built[1])


@pytest.fixture(scope="session")
def operator(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with the extra `operator`."""
    return environment(tmp_path_factory.mktemp("operator") / "venv", built[1], "operator")
