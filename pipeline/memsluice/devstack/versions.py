"""Every version of the local stack, pinned in one place (docker-compose.yml is held to the same by a test)."""

from typing import Final

KAFKA: Final = "4.1.1"
"""Apache Kafka; the jars come from Maven Central."""

KAFKA_SCALA: Final = "2.13"
"""Scala line of the ``kafka_…`` artifact; Kafka 4 publishes only this one."""

LOG4J: Final = "2.25.1"
"""log4j-slf4j-impl binds the SLF4J 1.7 interface that Kafka 4.1 logs through."""

MAVEN_DEPENDENCY_PLUGIN: Final = "3.8.1"
"""The Maven plugin that copies the jars."""

JAVA_MIN: Final = 17
"""Kafka 4 brokers need Java 17 or newer."""

WEAVIATE: Final = "v1.35.2"
"""Weaviate, built from the Go module proxy."""

GO_MIN: Final = (1, 21)
"""From 1.21 on, the go command fetches by itself the newer toolchain that a module asks for."""
