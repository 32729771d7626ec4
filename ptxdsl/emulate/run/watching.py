"""Watchers of a launch: debuggers, and recorders of the steps of a thread."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..report import Finding
from .decode import Decoded


class Watcher(Protocol):
    """Callbacks of the machine. A launch without watchers has no overhead."""

    def before(self, step: Decoded, lanes: np.ndarray) -> None:
        """Called before the running group, of these lanes, executes a step; for a batch, its first.

        Its guard has not been read yet, and the group may have to wait there.
        """

    def on_finding(self, finding: Finding) -> None:
        """Called for a finding at the current step."""

    def ended(self) -> None:
        """Called at the end of the launch."""
