"""torch operators backed by a launcher or a kernel, with eager calls that bypass torch's dispatcher.

Each operator is registered as a `torch.library.custom_op` with a fake and a gradient: compiled graphs, exports, `vmap`
and tensor subclasses go through the dispatcher. The dispatcher costs more than a launch, so an eager call with plain
tensors calls the launcher directly, inside an autograd function if a gradient is needed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn, TypeAlias, TypedDict, Unpack, overload
from weakref import WeakValueDictionary

import torch
import torch.autograd.forward_ad as forward_mode

from ptxdsl.errors import CallError, LaunchError, called_elsewhere, caller, listed, meant, public
from ptxdsl.kernel import AnyKernel
from ptxdsl.torch.of_kernel import Extent, KernelCall, call_of, refuse
from ptxdsl.tracers import untraceable

Launcher: TypeAlias = Callable[..., Any]
PLAIN = frozenset({torch.Tensor, torch.nn.Parameter, type(None)})
_FIXES = {
    "out": "leave it out: operators allocate their outputs, as autograd requires; the functions of ptxdsl.kernels "
    "take `out=`",
    "bias": "use `linear` of ptxdsl.torch, which adds a bias",
}


def save_arguments(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """Save tensor arguments, and None, in `ctx.saved_tensors` and the others in `ctx.options`, in order."""
    is_kept = [argument is None or isinstance(argument, torch.Tensor) for argument in inputs]
    ctx.save_for_backward(*(a for a, kept in zip(inputs, is_kept, strict=True) if kept))
    ctx.options = tuple(a for a, kept in zip(inputs, is_kept, strict=True) if not kept)


def saver(tensors: tuple[int, ...], count: int) -> Launcher:
    """Return a faster `save_arguments` for an operator of `count` arguments, of which `tensors` are tensors or None.

    It does not check types, which takes as long as an autograd function itself.
    """
    others = [n for n in range(count) if n not in tensors]
    if not others:

        def save_all(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.options = ()

        return save_all

    def save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        options = tuple([inputs[n] for n in others])
        if None in options:
            save_arguments(ctx, inputs, output)
        else:
            ctx.save_for_backward(*[inputs[n] for n in tensors])
            ctx.options = options

    return save


class Operator:
    """A function of tensors, made by `op`: `operator(x, 2)` works in eager and in compiled code.

    `dispatched` is the operator registered with torch as `name`, for `torch.library.opcheck` and graphs; `launcher` is
    the function that computes it.
    """

    def __init__(
        self,
        name: str,
        launcher: Launcher,
        fake: Launcher,
        written: Collection[str],
        schema: str | None,
        backward: Launcher | None,
        setup_context: Launcher,
    ) -> None:
        self.name, self.launcher, self.__doc__ = name, launcher, launcher.__doc__
        registered = torch.library.custom_op(name, launcher, mutates_args=tuple(written), schema=schema)
        registered.register_fake(fake)
        if backward:
            registered.register_autograd(backward, setup_context=setup_context)
        namespace, _, short = name.partition("::")
        self.dispatched = getattr(getattr(torch.ops, namespace), short).default
        arguments = self.dispatched._schema.arguments
        self._tensors = tuple(n for n, a in enumerate(arguments) if str(a.type) in ("Tensor", "Optional[Tensor]"))
        self._written = tuple(n for n, a in enumerate(arguments) if a.alias_info is not None and a.alias_info.is_write)
        self._is_direct = not any("List[" in str(a.type) and "Tensor" in str(a.type) for a in arguments)
        self._defaults = {a.name: a.default_value for a in arguments if a.has_default_value()}
        self._names = tuple(a.name for a in arguments)
        saves = saver(self._tensors, len(self._names)) if setup_context is save_arguments else setup_context
        self._differentiable = _autograd_function(name, launcher, backward, saves)
        if earlier := _OPERATORS.get(name):
            earlier.__class__ = _Replaced
        _OPERATORS[name] = self

    def __repr__(self) -> str:
        return f"<operator {self.name}>"

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Compute the operator: directly for plain tensors, else through torch's dispatcher.

        Raises LaunchError if the launcher does.
        """
        if torch.compiler.is_compiling() or not self._is_direct or _is_observed():
            if forward_mode._current_level >= 0:
                self._check_tangents(*arguments, *named.values())
            return self.dispatched(*arguments, **named)
        if named or len(arguments) != len(self._names):
            arguments = self._positional(arguments, named)
        wants_gradient = False
        for n in self._tensors:
            tensor = arguments[n]
            if type(tensor) not in PLAIN:
                if not isinstance(tensor, torch.Tensor):
                    self._refuse_argument(n, tensor)
                return self.dispatched(*arguments)
            if tensor is not None:
                if tensor.is_meta or tensor.is_neg():
                    return self.dispatched(*arguments)
                wants_gradient |= tensor.requires_grad
        if wants_gradient and torch.is_grad_enabled():
            return self.dispatched(*arguments) if self._written else self._differentiable(*arguments)
        result = self.launcher(*arguments)
        if self._written:
            torch.autograd.graph.increment_version([arguments[n] for n in self._written if arguments[n] is not None])
        return result

    def _positional(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return all arguments in order, with defaults. Raises CallError for an unknown or missing argument."""
        names, values = self._names, {**dict(zip(self._names, arguments, strict=False)), **named}
        takes, help, wrong = f"it takes {listed(names or ['nothing'])}", None, ""
        if unknown := [name for name in named if name not in names]:
            wrong, help = f"takes no `{unknown[0]}`; {takes}", meant(unknown[0], names, _FIXES)
        elif len(arguments) > len(names):
            wrong = f"takes {len(names)} arguments, got {len(arguments)}; {takes}"
        elif twice := [name for name in names[: len(arguments)] if name in named]:
            wrong = f"got `{twice[0]}` twice, by position and by name"
        elif missing := [name for name in names if name not in values and name not in self._defaults]:
            wrong = f"lacks {listed(f'`{name}`' for name in missing)}; {takes}"
        if wrong:
            raise CallError(f"operator `{self.name}` {wrong}", at=caller(), help=help)
        return tuple(values.get(name, self._defaults.get(name)) for name in names)

    def _refuse_argument(self, number: int, value: object) -> NoReturn:
        """Raise the error for an argument that is not a tensor."""
        kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        help = "pass a tensor: torch.from_numpy(…), or call the functions of ptxdsl.kernels, which take arrays"
        message = f"`{self._names[number]}` of operator `{self.name}` must be a tensor, got a value of type {kind}"
        raise CallError(message, at=caller(), help=help)

    @untraceable("operators of ptxdsl have no forward-mode derivative; take the gradient in reverse mode")
    def _check_tangents(self, *arguments: object) -> None:
        """Refuse a tensor with a forward-mode tangent, which torch's dispatcher would silently drop."""
        if any(isinstance(argument, torch.Tensor) and _has_tangent(argument) for argument in arguments):
            refuse(
                f"operator `{self.name}` has no forward-mode derivative (torch.func.jvp, jacfwd, dual tensors)",
                "take the gradient in reverse mode: `y.backward()` or `torch.autograd.grad(y, x)`",
            )

    def __getitem__(self, launch: object) -> NoReturn:
        refuse(
            f"operator `{self.name}` was indexed with a grid and a block, which were already set when it was made",
            f"call it with its arguments only: ({', '.join(self._names)})",
        )

    __iter__ = None  # otherwise Python would iterate by __getitem__


class _Replaced(Operator):
    """An operator whose name was registered again; torch's dispatcher knows only the newer one."""

    @untraceable("an operator of ptxdsl was redefined; call the newer one")
    def __call__(self, *arguments: Any, **named: Any) -> NoReturn:
        refuse(
            f"operator `{self.name}` was redefined, and this is the old one",
            "call the newer one, or give this one another name",
        )


_OPERATORS: WeakValueDictionary[str, Operator] = WeakValueDictionary()


def _has_tangent(tensor: torch.Tensor) -> bool:
    """True if the tensor is a dual tensor of an active transform, possibly wrapped by other transforms."""
    functions = torch._C._functorch
    while True:
        with suppress(RuntimeError):  # a batched tensor raises; the tensor inside it is checked next
            if forward_mode.unpack_dual(tensor).tangent is not None:
                return True
        if not functions.is_functorch_wrapped_tensor(tensor):
            return False
        tensor = functions.get_unwrapped(tensor)


def _is_observed() -> bool:
    """True if torch intercepts eager code: fake tensors, tracing, functional transforms, forward mode."""
    return bool(
        torch._C._len_torch_dispatch_stack()
        or torch._C._len_torch_function_stack()
        or torch._C._are_functorch_transforms_active()
        or forward_mode._current_level >= 0
    )


def _autograd_function(
    name: str, launcher: Launcher, backward: Launcher | None, setup_context: Launcher
) -> Callable[..., Any]:
    """Return the launcher as an autograd function, with its gradient if it has one."""
    if backward is None:
        return _without_gradient(name, launcher)

    def forward(ctx: Any, *arguments: Any) -> Any:
        result = launcher(*arguments)
        setup_context(ctx, arguments, result)
        return result

    short = name.replace("::", "_")
    functions = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    function: Any = type(short, (torch.autograd.Function,), functions)
    applied: Callable[..., Any] = function.apply
    return applied


def _without_gradient(name: str, launcher: Launcher) -> Callable[..., Any]:
    """Return the launcher with a backward that raises, as torch's dispatcher does: the result requires a gradient."""

    def backward(ctx: Any, *gradients: Any) -> Any:
        raise LaunchError(
            f"operator `{name}` has no gradient",
            help="pass `backward=` when making it, or call it with `x.detach()` or inside `torch.no_grad()`",
        )

    return _autograd_function(name, launcher, backward, lambda ctx, inputs, output: None)


class OperatorOptions(TypedDict, total=False):
    """The keyword arguments of `op`, for editors."""

    fake: Launcher | None
    mutates: Collection[str]
    grid: Extent | None
    block: Extent | None
    out: Mapping[str, Launcher] | None
    constants: Mapping[str, object] | None
    backward: Launcher | None
    setup_context: Launcher | None


@overload
def op(name: str, target: AnyKernel | Launcher, **options: Unpack[OperatorOptions]) -> Operator: ...


@overload
def op(name: str, **options: Unpack[OperatorOptions]) -> Callable[[Launcher], Operator]: ...


@public
@called_elsewhere(
    **dict.fromkeys(("bwd", "vjp", "grad", "gradient", "backward_fn"), "use `backward=`: f(ctx, *gradients)"),
    **dict.fromkeys(("device_types", "device"), "leave it out: the operator runs on the device of its tensors"),
    **dict.fromkeys(("outputs", "outs", "out_shape"), "use `out={'y': lambda x: torch.empty_like(x)}`"),
    mutates_args="use `mutates=`, for launchers only; for a kernel, the arrays that it writes are known",
    schema="leave it out: the schema follows from the kernel's parameters, or from the launcher's annotations",
)
def op(
    name: str,
    target: AnyKernel | Launcher | None = None,
    *,
    fake: Launcher | None = None,
    mutates: Collection[str] = (),
    grid: Extent | None = None,
    block: Extent | None = None,
    out: Mapping[str, Launcher] | None = None,
    constants: Mapping[str, object] | None = None,
    backward: Launcher | None = None,
    setup_context: Launcher | None = None,
) -> Operator | Callable[[Launcher], Operator]:
    """Make a torch operator `namespace::name` of a launcher or a kernel; without `target`, return a decorator.

    A launcher is a function annotated with `torch.Tensor`, int, float, bool or str that allocates its outputs and
    launches kernels. `fake` takes the same arguments and returns empty tensors like its outputs, and `mutates` names
    the arguments that it writes. No output may share memory with an argument.

    A kernel is launched with `grid` and `block`, numbers or functions of the operator's arguments. `out` maps each
    output pointer to a function of the other arguments that returns an empty tensor, which is also the fake. Pointers
    that are written and not in `out` are tensors that the operator mutates. `constants` are those of the kernel.

    `backward(ctx, *gradients)` returns one gradient per argument, or None. It reads what `setup_context(ctx, inputs,
    output)` saved; by default, `ctx.saved_tensors` are the tensors among the arguments and `ctx.options` the others. A
    backward that consists of operators also compiles.

    Raises LaunchError for a kernel that takes a parameter that torch cannot pass, a launcher without `fake`, and a
    gradient of an operator that mutates its arguments.
    """
    _check_name(name)
    if target is None:
        return partial(op, name, fake=fake, mutates=mutates, grid=grid, block=block, out=out, constants=constants,
                       backward=backward, setup_context=setup_context)  # fmt: skip
    context = setup_context or save_arguments
    if not isinstance(target, AnyKernel):
        _check_launcher(name, target, fake, mutates, grid, block, out, constants)
        _check_gradient(name, backward, setup_context, mutates)
        return _of_launcher(name, target, fake or _nothing, mutates, backward, context)
    if fake or mutates:
        refuse(
            f"operator `{name}` is made of a kernel, which does not take {'`fake`' if fake else '`mutates`'}",
            "name its outputs by `out={'y': lambda x: torch.empty_like(x)}`; the other arrays that it writes are "
            "mutated",
        )
    call: KernelCall = call_of(name, target, grid, block, out or {}, constants or {})
    _check_gradient(name, backward, setup_context, call.mutated)
    return Operator(name, call.run, call.empty, call.mutated, call.schema, backward, context)


def _of_launcher(
    name: str, target: Launcher, fake: Launcher, mutates: Collection[str], backward: Launcher | None, context: Launcher
) -> Operator:
    """Return an operator whose schema follows from annotations. Raises LaunchError for an unsupported type."""
    try:
        return Operator(name, target, fake, mutates, None, backward, context)
    except ValueError as error:
        before, _, why = str(error).partition("infer_schema(func): ")
        if before:
            raise
        refuse(
            f"operator `{name}`: {why.partition(' The valid types are')[0].partition(' Got func')[0]}",
            "annotate the arguments and the result: `def launcher(x: torch.Tensor, n: int) -> torch.Tensor`",
        )


def _nothing(*arguments: object) -> None:
    """The fake of a launcher that only mutates its arguments."""


def _check_name(name: str) -> None:
    parts = name.split("::") if isinstance(name, str) else ()
    if len(parts) != 2 or not all(part.isidentifier() for part in parts):
        refuse(f"the operator name {name!r} is not valid", 'use "namespace::name", two identifiers')


def _check_launcher(
    name: str, target: Launcher, fake: Launcher | None, mutates: Collection[str], *of_kernels: object
) -> None:
    """Refuse a target that is not a launcher, a launcher without a fake, and options of kernels."""
    if not callable(target) or isinstance(target, type):
        refuse(
            f"operator `{name}` is made of {target!r}, which is neither a kernel nor a function",
            "pass a kernel (@pd.kernel) or a function that launches kernels",
        )
    if any(option is not None for option in of_kernels):
        refuse(
            f"operator `{name}` is made of a launcher, which does not take `grid`, `block`, `out` or `constants`",
            "leave these out: the launcher itself allocates its outputs and launches its kernels",
        )
    returns = inspect.signature(target).return_annotation
    if fake is None and not (mutates and returns in (None, "None")):
        refuse(
            f"operator `{name}` has no `fake`, so its outputs are unknown when tensors have no memory",
            "pass `fake=lambda x: torch.empty_like(x)`, or another function that returns empty tensors like "
            "its outputs",
        )


def _check_gradient(
    name: str, backward: Launcher | None, setup_context: Launcher | None, mutated: Collection[str]
) -> None:
    if backward is not None and not callable(backward):
        refuse(
            f"operator `{name}` has backward={backward!r}, which is not a function",
            "pass a function `backward(ctx, *gradients)` that returns one gradient per argument",
        )
    if setup_context is not None and backward is None:
        refuse(f"operator `{name}` has `setup_context`, but no `backward` that uses it", "pass `backward=` too")
    if backward and mutated:
        refuse(
            f"operator `{name}` writes {', '.join(f'`{m}`' for m in mutated)}, so it cannot have a `backward`",
            "return a new tensor instead: autograd differentiates only operators that allocate their outputs",
        )
