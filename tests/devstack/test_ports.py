"""Free loopback ports."""

import socket

from memsluice.devstack.ports import LOOPBACK, pick


def test_a_free_port_is_kept_over_a_restart():
    """Clients that saved the address find the stack again: a previous port that is free is used again."""
    first = pick(["a", "b"], {})
    assert pick(["a", "b"], first) == first


def test_a_taken_port_is_replaced_and_the_others_stay():
    """Another program on one of the ports moves that port only, instead of failing the start."""
    first = pick(["a", "b"], {})
    with socket.socket() as other:
        other.bind((LOOPBACK, first["a"]))
        other.listen()
        second = pick(["a", "b"], first)
    assert second["a"] != first["a"]
    assert second["b"] == first["b"]


def test_ports_are_distinct():
    """No two servers are given the same port."""
    chosen = pick([str(number) for number in range(20)], {})
    assert len(set(chosen.values())) == 20
