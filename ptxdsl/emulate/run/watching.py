"""Who watches a launch step by step: debuggers, and what records the steps of a thread."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..report import Finding
from .decode import Decoded


class Watcher(Protocol):
    """Is told what the machine does. A launch without watchers pays nothing for them."""

    def before(self, step: Decoded, lanes: np.ndarray) -> None:
        """The running group, of these lanes, comes to a step: the first one of those that run as one batch.

        Its guard was not looked at yet, and the group may have to wait there.
        """

    def on_finding(self, finding: Finding) -> None:
        """The kernel did something wrong, in the step that runs."""

    def ended(self) -> None:
        """The launch is over."""
