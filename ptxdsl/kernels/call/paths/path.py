"""The protocol of a path: a family of kernels for some GPUs, types and layouts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from ptxdsl.kernels.call.paths.kernel import Refusal as Refusal
from ptxdsl.kernels.candidates.facts import Facts
from ptxdsl.kernels.candidates.sm90 import HEURISTIC, Decomposition
from ptxdsl.kernels.choose.products import Ranked
from ptxdsl.kernels.choose.rates import Rates, rates_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.kernels.traits.parameters import Group
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.runtime.dispatch import target


class InputLayout(NamedTuple):
    """A layout of the operands: as passed, or after copies of those that are named in `copied`, "a", "b" or "ab", which
    take `time` microseconds. `optional` is the number of copies that could be left out. `measured` is True if tables of
    measured winners include the time of the copies."""

    facts: Facts
    copied: str = ""
    time: float = 0.0
    optional: int = 0
    measured: bool = False


@dataclass(frozen=True)
class Request:
    """The request of a call to the paths for a kernel of the public function `name`, for arrays with these facts.

    `obstacles` say why TMA cannot load the operands as wgmma reads them; it could after the copies of one of `copies`.
    `sharing` is the caller's split of K, None for a schedule that has its own, and `is_scheduled` is True if tiles are
    assigned to blocks by the caller. `shares_b` is True for batches that are all multiplied by one B. `form` begins the
    names of the shape classes.
    """

    name: str
    facts: Facts
    device: int | None
    obstacles: Iterable[Refusal] = ()
    copies: Sequence[InputLayout] = ()
    decomposition: Decomposition | None = HEURISTIC
    is_scheduled: bool = False
    shares_b: bool = False
    form: str = ""

    @property
    def of_class(self) -> Request:
        """The request for the largest member of the shape class."""
        copies = [layout._replace(facts=layout.facts.of_class) for layout in self.copies]
        return replace(self, facts=self.facts.of_class, copies=copies)

    @property
    def arch(self) -> str:
        """The architecture that kernels are for."""
        return target(self.device)

    @property
    def rates(self) -> Rates:
        """The rates of the GPU."""
        return rates_of(self.device)


@dataclass(frozen=True)
class ConvolutionRequest(Request):
    """The request of a convolution. `depth` is its K without the padding of channels to whole tiles, `slices` the
    split of K, None for the best, and `slowness` the factor by which the sm_80 path loads few channels more slowly."""

    depth: int = 0
    slices: int | None = None
    slowness: float = 1.0


@dataclass(frozen=True)
class GroupRequest(Request):
    """The request of a grouped product; `facts` are those of the sm_90a kernel.

    `usual` is the schedule of kernels without wgmma. The output is `boxed` if TMA can store it. The call `gathers` rows
    of A, or `scatters` rows of the output, by an index. Groups that are `cut` may have tiles of equal shares of
    their rows. `is_along_k` says that groups are ranges of K.
    """

    usual: TileSchedule = AHEAD
    epilogue: Callable[..., Any] | None = None
    boxed: bool = False
    gathers: bool = False
    scatters: bool = False
    cut: bool = False
    is_along_k: bool = False


class Path(ABC):
    """A family of kernels. `name` is the path of the traits of its kernels. `uses_tma` is True if operands are loaded
    by TMA, so that those in other layouts are copied first."""

    name: ClassVar[str]
    uses_tma: ClassVar[bool] = False

    @abstractmethod
    def refusal(self, request: Request) -> Refusal | None:
        """Return the reason why the path has no kernel for a call without a configuration, None if it has one."""

    @abstractmethod
    def layouts(self, request: Request) -> Sequence[InputLayout]:
        """Return the layouts in which the path can read the operands of a call that it does not refuse."""

    @abstractmethod
    def ranked(self, facts: Facts, request: Request) -> Ranked:
        """Return the configurations with their estimates in microseconds, the fastest first."""

    def completed(self, config: GemmConfig, request: Request) -> GemmConfig:
        """Return a configuration of the caller with the fields filled that it leaves open."""
        return config

    @abstractmethod
    def grouped(self, config: GemmConfig, request: GroupRequest, is_chosen: bool) -> Traits:
        """Return the traits of a grouped kernel for a configuration of the caller or, if `is_chosen`, of the selection.
        Raises LaunchError for a configuration that the kernel does not support."""

    def as_chosen(self, config: GemmConfig, request: GroupRequest) -> GemmConfig:
        """Return a selected configuration, adapted to the grouped kernel."""
        return config

    @abstractmethod
    def parameters(self, traits: Any) -> Group:
        """Return the parameter class of the kernel of a product."""

    @abstractmethod
    def matrices(self, traits: Any, matrices: dict[str, Any]) -> dict[str, Any]:
        """Return A, B, C and out, by name, as the parameters of the kernel take them, if not as pointers."""

    def obstacles(self, problem: Any, traits: Any) -> Iterable[Refusal]:
        """Return the reasons why a kernel with these traits cannot load the operands of a product."""
        return ()

    def adapted(self, problem: Any, traits: Any) -> Traits:
        """Return the traits of a product, adapted to the loads of the path."""
        return traits
