"""The one pool of worker processes: each is started when it is needed, and can be killed at any moment.

- ``Pool``: the processes of one kind; ``ask`` has an exchange with one that is free.
- ``Worker``: one process, and the channel to it. Requests and answers are bytes.
- ``Program``: what the processes of a pool run; ``calling`` makes the one that calls a Python function.
- ``inside``: the code that runs in the processes, of the standard library alone.
"""
