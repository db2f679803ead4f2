"""Messages go through a channel one at a time, whole, until the other end is gone."""

from __future__ import annotations

import os
import socket
from importlib import import_module

import pytest

from planning.workers.inside.channel import Channel, framed


def test_messages_go_through_a_channel_until_it_ends() -> None:
    here, there = socket.socketpair()
    with there:
        channel = Channel(there.fileno())
        with here:
            here.sendall(framed(b"first") + framed(b"") + b"\1\0")
            assert (channel.receive(), channel.has_message(0.0), channel.receive()) == (b"first", True, b"")
            channel.send(b"answer")
            assert here.recv(100) == framed(b"answer")
        with pytest.raises(EOFError):
            channel.receive()  # it ends within a message
        with pytest.raises(BrokenPipeError):
            channel.send(b"nobody hears this")


def test_a_channel_without_a_message_says_so() -> None:
    here, there = socket.socketpair()
    with here, there:
        assert Channel(there.fileno()).has_message(0.0) is False


def test_the_wait_for_the_end_is_over_when_the_other_end_or_the_parent_is_gone() -> None:
    here, there = socket.socketpair()
    with there:
        channel = Channel(there.fileno())
        with here:
            here.sendall(framed(b"a message is not the end"))
            channel.wait_for_end(parent=-1, seconds=0.01)  # this process has another parent
        channel.wait_for_end(os.getppid(), seconds=60.0)


def test_the_program_of_a_worker_does_nothing_when_it_is_imported() -> None:
    assert import_module("planning.workers.inside.__main__").__doc__ is not None
