"""What a worker needs and does not have, found before it loads anything: `work` says all of it at once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from memsluice.deployment.connection import Connection
from memsluice.deployment.home import Home
from memsluice.deployment.space import Room, RoomState
from memsluice.envelope.keys import KeyState
from memsluice.errors import BrokerUnavailable, ConfigError, MemsluiceError
from memsluice.gate.policy.model import load_or_default
from memsluice.keystore.store import KeyStore
from memsluice.runtimes.kafka.spec import StageSpec

ANSWER_S = 5.0
NO_KEYS = "this home has no keys: the gate's own are made now; is it the home that the producers' credentials are from?"
NO_CREDENTIALS = "the registry knows no credential that may sign: every event becomes a dead letter (unknown_key)"
NEW_KEY = "memsluice keys new producer --tenant NAME; a worker that runs takes it up within a second"


@dataclass(frozen=True, slots=True)
class Missing:
    """One thing that is missing: in words, and what to do. ``error``: why the worker cannot start; None, it can."""

    said: str
    remedy: str
    error: MemsluiceError | None = None


def missing(
    home: Home, connection: Connection, specs: Sequence[StageSpec], store_answers: Callable[[], bool] | None
) -> Iterator[Missing]:
    """Yield what a worker of these stages lacks. Reads only, and waits some seconds at most.

    ``store_answers`` asks the store; None where no stage writes to it.
    """
    yield from _keys(KeyStore(home.path))
    try:
        load_or_default(home.policy_file)
    except MemsluiceError as error:
        yield Missing(f"the policy file cannot be used: {error}", "memsluice policy check", error)
    if home.path.exists() and (room := Room.of(home.path)).state is RoomState.SCARCE:
        yield Missing(f"the disk is nearly full: {room}", "free some space")
    yield from _broker(connection, specs)
    if store_answers is not None and not store_answers():
        where = f"{connection.weaviate_host}:{connection.weaviate_http_port}"
        yield Missing(
            f"the store at {where} does not answer: land waits for it", "memsluice stack status, or the store's own log"
        )


def _keys(store: KeyStore) -> Iterator[Missing]:
    if not store.keyring_file.exists() and not store.registry_file.exists():
        yield Missing(NO_KEYS, f"memsluice keys init, then {NEW_KEY}")
        return
    try:
        keyring, registry = store.load_keyring(), store.load_registry()
    except MemsluiceError as error:
        yield Missing(f"the keys cannot be used: {error}", "memsluice doctor", error)
        return
    if not any(one.kid in keyring and keyring.get(one.kid).state is KeyState.ACTIVE for one in registry.all()):
        yield Missing(NO_CREDENTIALS, NEW_KEY)


def _broker(connection: Connection, specs: Sequence[StageSpec]) -> Iterator[Missing]:
    """Ask as each stage's user for each of its topics; a broker that does not answer is asked once."""
    for spec in specs:
        refused = list[str]()

        def heard(error: KafkaError, refused: list[str] = refused) -> None:
            if error.code() == KafkaError._AUTHENTICATION:
                refused.append(error.str())

        try:
            admin = AdminClient({**connection.confluent(spec.user), "log_level": 0, "error_cb": heard})
            known = admin.list_topics(timeout=ANSWER_S).topics
        except KafkaException:
            if refused:
                said = f"the broker at {connection.bootstrap} does not accept user {spec.user}"
                yield Missing(said, f"check {spec.user}'s password", BrokerUnavailable(said))
                continue
            said = f"no broker answers at {connection.bootstrap}"
            yield Missing(said, "memsluice stack up starts the local one", BrokerUnavailable(said))
            return
        except MemsluiceError as error:  # no password of this user
            yield Missing(str(error), "name a connection that has it", error)
            continue
        yield from _topics(spec, {name: len(topic.partitions) for name, topic in known.items()})


def _topics(spec: StageSpec, counts: Mapping[str, int]) -> Iterator[Missing]:
    """Look at a stage's topics: all there, and as many partitions in each input.

    With other numbers one partition of the inputs would be two workers', who share its fence and shut one another out.
    """
    needed = (*spec.inputs, *spec.outputs, spec.states, *([spec.changelog] if spec.kind == "stateful" else []))
    if absent := [topic for topic in needed if topic not in counts]:
        said = f"user {spec.user} is shown no topic {', '.join(absent)}: it is not there, or a grant is missing"
        yield Missing(said, "memsluice topics plan, then memsluice topics apply", ConfigError(said))
    elif len({counts[topic] for topic in spec.inputs}) > 1:
        told = ", ".join(f"{topic} has {counts[topic]}" for topic in spec.inputs)
        said = f"the inputs of {spec.name} differ in their numbers of partitions ({told}): they have to be the same"
        yield Missing(said, "memsluice topics plan says which one is not as its file", ConfigError(said))
