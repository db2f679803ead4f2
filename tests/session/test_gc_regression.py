import gc
from session import *
from session.events import SessionEvent
from uuid import uuid4

class Handler:
    """Comparing handlers runs the collector, as any allocation may."""
    def __call__(self, event): ...
    def __eq__(self, other):
        gc.collect(); return self is other
    __hash__ = object.__hash__

class Collecting(type):
    def __subclasscheck__(cls, sub):
        gc.collect(); return False
class Odd(metaclass=Collecting): ...

def family(bus):
    parent = Session(bus=bus); Session(bus=bus, parent=parent)   # a cycle: only the collector ends it

def test_unsubscribe_does_not_bring_a_dead_session_back():
    bus = InProcessEventBus(); gc.collect(); gc.disable()
    try:
        one, two = Handler(), Handler()
        bus.subscribe(SessionEvent, one); family(bus); bus.subscribe(SessionEvent, two)
        bus.unsubscribe(SessionEvent, two)
        assert bus.publish(SessionEvent(session_id=uuid4())).handlers == (one,)
    finally: gc.enable()

def test_find_does_not_cache_a_dead_session():
    bus = InProcessEventBus(); gc.collect(); gc.disable()
    try:
        family(bus); bus.subscribe(Odd, print)
        bus.publish(SessionEvent(session_id=uuid4()))
        assert bus.publish(SessionEvent(session_id=uuid4())).handlers == ()
    finally: gc.enable()
