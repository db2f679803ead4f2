"""What runs in every worker process: the channel, and the end of the process with its parent.

It needs nothing but the standard library, and nothing of the package around it: a worker need not find that.
"""
