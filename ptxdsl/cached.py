"""`cached_property` without a lock, as Python has it since 3.12.

That of Python 3.11 holds one lock for all instances while it computes: a process that is forked meanwhile, for example
while another thread launches a kernel, waits for the lock forever.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property:
        """Compute an attribute at its first use, and keep it in the instance. Two threads may both compute it."""

        def __init__(self, func):
            self.func, self.attrname, self.__doc__ = func, None, func.__doc__

        def __set_name__(self, owner, name):
            self.attrname = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value
