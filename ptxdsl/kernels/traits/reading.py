"""The part of a path that a GemmConfig needs: its fields, checked, and the tiling and the traits that they mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.traits.traits import Tiling, Traits


class ConfigReader(ABC):
    """Reads the configurations of one path; `config` is a GemmConfig.

    `path` is the name of the path: of its kernels in `Kernels`, and of its rates. It `chooses_tiles` if a configuration
    without a tile leaves the tile to the call, instead of having the usual one.
    """

    path: ClassVar[str]
    chooses_tiles: ClassVar[bool] = False

    @abstractmethod
    def reads(self, atom: object) -> bool:
        """Return True if the path has this tensor core instruction; "" leaves it open."""

    @abstractmethod
    def misfits(self, config: Any) -> Iterator[str]:
        """Yield messages about fields that the path does not support, each beginning with the name of the field."""

    @abstractmethod
    def tiling(self, config: Any) -> Tiling:
        """Return the tiling of a configuration without misfits."""

    @abstractmethod
    def traits(self, config: Any, operands: Operands, arch: str) -> Traits:
        """Return the traits of the kernel for such operands."""

    @abstractmethod
    def label(self, config: Any) -> str:
        """Return the name of a configuration in tables of measured winners."""
