"""Fetch Kafka's jars and build Weaviate, once, into the cache.

Both are put together in a scratch directory and moved into place when complete, so an interrupted install leaves
nothing that looks finished; the names carry the versions, so a new pin installs anew.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from memsluice.deployment.paths import CACHE_VARIABLE
from memsluice.devstack import versions
from memsluice.devstack.tools import Tools
from memsluice.errors import StackError

Progress = Callable[[str], None]
"""Told one short line about what is going on; each line replaces the one before."""

STEP_CHARACTERS = 40
LINES_KEPT = 15
"""Lines of a failing tool's output that are shown."""

_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>kafka-runtime</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>{dependencies}
  </dependencies>
</project>
"""


def kafka_jars(cache: Path) -> Path:
    """Return where the jars of the pinned Kafka are, or will be."""
    return cache / f"kafka_{versions.KAFKA_SCALA}-{versions.KAFKA}-log4j-{versions.LOG4J}"


def weaviate_binary(cache: Path) -> Path:
    """Return where the binary of the pinned Weaviate is, or will be."""
    return cache / f"weaviate-{versions.WEAVIATE}" / "weaviate-server"


def missing_tools(cache: Path) -> list[str]:
    """Return the programs needed: Java always, Maven and Go only while their product is not in the cache."""
    needed = ["java"]
    if not kafka_jars(cache).exists():
        needed.append("mvn")
    if not weaviate_binary(cache).exists():
        needed.append("go")
    return needed


@contextmanager
def _scratch(cache: Path) -> Iterator[Path]:
    """Hold the cache's lock, and a scratch directory that is gone afterwards."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StackError(
            f"{cache} cannot be used as the cache ({error.strerror}): choose another with {CACHE_VARIABLE}=DIR"
        ) from error
    with (cache / "install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        directory = Path(tempfile.mkdtemp(prefix=".install-", dir=cache))
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)


def install_kafka(cache: Path, tools: Tools, progress: Progress) -> Path:
    """Return the directory of Kafka's jars, fetched from Maven Central where absent. Checksums are enforced."""
    target = kafka_jars(cache)
    if target.exists():
        return target
    with _scratch(cache) as scratch:
        if target.exists():  # another process was faster
            return target
        pom = scratch / "pom.xml"
        pom.write_text(_pom(), encoding="utf-8")
        goal = f"org.apache.maven.plugins:maven-dependency-plugin:{versions.MAVEN_DEPENDENCY_PLUGIN}:copy-dependencies"
        jars = scratch / "jars"
        command = [tools.mvn, "-B", "-C", "-f", str(pom), goal, f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
        what = f"fetching Kafka {versions.KAFKA} from Maven Central (54 MB, once)"
        _run(command, dict(os.environ), "Kafka's jars could not be fetched by Maven", what, progress)
        jars.rename(target)
    return target


def _pom() -> str:
    artifacts = (
        ("org.apache.kafka", f"kafka_{versions.KAFKA_SCALA}", versions.KAFKA),
        ("org.apache.kafka", "kafka-tools", versions.KAFKA),
        ("org.apache.logging.log4j", "log4j-core", versions.LOG4J),
        ("org.apache.logging.log4j", "log4j-slf4j-impl", versions.LOG4J),
    )
    entries = "".join(
        f"\n    <dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        "</dependency>"
        for group, artifact, version in artifacts
    )
    return _POM.format(dependencies=entries)


def install_weaviate(cache: Path, tools: Tools, progress: Progress) -> Path:
    """Return the Weaviate server, built from the Go module proxy where absent (minutes).

    Go checks every module against the public checksum database.
    """
    target = weaviate_binary(cache)
    if target.exists():
        return target
    with _scratch(cache) as scratch:
        if target.exists():
            return target
        bin_directory = scratch / "bin"
        variables = {**os.environ, "GOBIN": str(bin_directory), "CGO_ENABLED": "0"}
        package = f"github.com/weaviate/weaviate/cmd/weaviate-server@{versions.WEAVIATE}"
        command = [tools.go, "install", "-v", "-trimpath", package]
        what = f"building Weaviate {versions.WEAVIATE} (about 4 minutes on 2 cores, once)"
        _run(command, variables, "Weaviate could not be built by Go", what, progress)
        bin_directory.rename(target.parent)
    return target


def _run(command: list[str], environment: Mapping[str, str], failure: str, what: str, progress: Progress) -> None:
    """Run a tool, telling what and which step of it; stop it when this process is interrupted."""
    progress(what)
    steps = 0
    last: deque[str] = deque(maxlen=LINES_KEPT)
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        try:
            for line in process.stdout or ():
                if words := line.split():
                    steps += 1
                    last.append(line.rstrip())
                    progress(f"{what}: step {steps}, {words[-1].rsplit('/', 1)[-1][:STEP_CHARACTERS]}")
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        told = "\n".join(f"  | {line}" for line in last)
        raise StackError(f"{failure} (exit {process.returncode}). The end of its output:\n{told}")
