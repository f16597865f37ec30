"""The whole of ``stack up``: servers, then topics and access rules, then the store's roles."""

from pathlib import Path

from confluent_kafka.admin import AdminClient

from memsluice.deployment.connection import Connection, quiet
from memsluice.devstack import control
from memsluice.devstack.reporter import SILENT, Reporter
from memsluice.devstack.roles import apply_roles
from memsluice.devstack.users import add_users
from memsluice.topics.names import USER_ADMIN
from memsluice.topics.plan import apply
from memsluice.topics.spec import load


def bring_up(home: Path | None = None, cache: Path | None = None, reporter: Reporter = SILENT) -> Connection:
    """Start both servers and make them as the files say. Safe to call on a running stack.

    Raises StackError, BrokerUnavailable or TopicsError. When only the topics fail, the servers stay up, so that
    ``topics plan`` can show why.
    """
    connection = control.up(home, cache, reporter)
    reporter.doing("applying topics and access rules")
    desired = load()
    admin = AdminClient(quiet(connection.confluent(USER_ADMIN)))
    add_users(admin, connection)
    done = apply(admin, desired)
    reporter.done(f"{len(desired.topics)} topics and their access rules match the files ({len(done.changes)} changes)")
    reporter.doing("applying the store's roles")
    apply_roles(connection)
    reporter.done("the store's roles are applied")
    return connection
