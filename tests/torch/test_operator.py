"""Operators of torch: what `op` makes of kernels and launchers, in eager code, in compiled code and in autograd."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import LaunchError, Parameters, f32, ptr, s4, u32

torch = pytest.importorskip("torch", reason="torch is not installed")
op, conv2d = (getattr(pytest.importorskip("ptxdsl.torch"), name) for name in ("op", "conv2d"))

# opcheck itself looks at gradients that torch warns of; and torch imports parts of its own that it calls deprecated
pytestmark = [
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning"),
    pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning"),
]
on_each = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])


@pd.kernel
def scaled_square(x: ptr[f32], y: ptr[f32], a: f32, n: u32):
    i = pd.ctaid.x * pd.ntid.x + pd.tid.x
    with pd.if_(i < n):
        y[i] = a * x[i] * x[i]


@pd.kernel
def scaled_square_gradient(dx: ptr[f32], x: ptr[f32], dy: ptr[f32], a: f32, n: u32):
    i = pd.ctaid.x * pd.ntid.x + pd.tid.x
    with pd.if_(i < n):
        dx[i] = 2 * a * x[i] * dy[i]


@pd.kernel
def double_in_place(x: ptr[f32]):
    x[pd.tid.x] = 2 * x[pd.tid.x]


gradient = op(
    "ptxdsl_tests::square_gradient",
    scaled_square_gradient,
    grid=lambda x, dy, a, n: -(-n // 128),
    block=128,
    out={"dx": lambda x, dy, a, n: torch.empty_like(x)},
)


def square_backward(ctx, dy):
    (x,), (a, n) = ctx.saved_tensors, ctx.options
    return gradient(x, dy.contiguous(), a, n), None, None


square = op(
    "ptxdsl_tests::square",
    scaled_square,
    grid=lambda x, a, n: -(-n // 128),
    block=128,
    out={"y": lambda x, a, n: torch.empty_like(x)},
    backward=square_backward,
)
double = op("ptxdsl_tests::double", double_in_place, grid=1, block=64)


@op("ptxdsl_tests::halves", fake=lambda x: (torch.empty_like(x), torch.empty_like(x)))
def halves(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """x / 2, twice."""
    return x / 2, x / 2


@on_each
def test_a_kernel_with_its_gradient(device):
    x = torch.randn(300, device=device, requires_grad=True)
    y = square(x, 3.0, 300)
    y.sum().backward()
    assert torch.allclose(y, 3 * x * x)
    assert torch.allclose(x.grad, 6 * x)


@on_each
@pytest.mark.parametrize("operator, options", [(square, (2.0, 64)), (double, ()), (halves, ())])
def test_opcheck(operator, options, device):
    wants = operator is square
    x = torch.randn(64, device=device, requires_grad=wants)
    torch.library.opcheck(operator.dispatched, (x, *options))


@on_each
def test_compiled_with_its_gradient_in_one_graph(device):
    x = torch.randn(40, device=device, requires_grad=True)
    compiled = torch.compile(lambda x: square(x + 1, 2.0, x.numel()).sum(), fullgraph=True, backend="aot_eager")
    compiled(x).backward()
    assert torch.allclose(x.grad, 4 * (x + 1))


def test_a_compiled_graph_calls_the_operator_and_runs_for_other_lengths():
    graphs = []

    def keep(graph, inputs):
        graphs.append([str(node.target) for node in graph.graph.nodes if node.op == "call_function"])
        return graph.forward

    compiled = torch.compile(lambda x: square(x, 2.0, x.numel()), fullgraph=True, dynamic=True, backend=keep)
    for n in (20, 50):
        x = torch.randn(n)
        assert torch.allclose(compiled(x), 2 * x * x)
    assert len(graphs) == 1 and "ptxdsl_tests.square.default" in graphs[0]


@pytest.mark.gpu
def test_a_cuda_graph_captures_it():
    x = torch.randn(300, device="cuda")
    square(x, 2.0, 300)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = square(x, 2.0, 300)
    x.fill_(3)
    graph.replay()
    assert torch.equal(y, torch.full_like(y, 18))


def test_eager_calls_leave_the_dispatcher_out(monkeypatch):
    x = torch.randn(64)
    monkeypatch.setattr(halves, "dispatched", None)
    assert torch.equal(halves(x)[1], x / 2)
    wants = x.clone().requires_grad_()
    monkeypatch.setattr(square, "dispatched", None)
    assert square(wants, 2.0, 64).requires_grad
    with torch.no_grad():
        assert not square(wants, 2.0, 64).requires_grad


def test_what_the_dispatcher_alone_can_do_goes_there():
    with torch._subclasses.FakeTensorMode():
        assert square(torch.empty(30), 2.0, 30).shape == (30,)
    assert square(torch.empty(30, device="meta"), 2.0, 30).device.type == "meta"


def test_arguments_by_name():
    x = torch.randn(64)
    assert torch.equal(square(x, n=64, a=2.0), square(x, 2.0, 64))


X = torch.ones(64)
WRONG = {
    "few": (lambda: square(X), "lacks `a` and `n`; it takes x, a and n", None),
    "one less": (lambda: square(X, a=2.0), "lacks `n`; it takes x, a and n", None),
    "many": (lambda: square(X, 2.0, 64, 1), "takes 3 arguments, got 4; it takes x, a and n", None),
    "unknown": (lambda: square(X, 2.0, 64, b=1), "takes no `b`; it takes x, a and n", None),
    "of a launch": (
        lambda: square(X, 2.0, 64, out=X),
        "takes no `out`; it takes x, a and n",
        "leave it out: operators allocate their outputs, as autograd requires; the functions of ptxdsl.kernels take `out=`",
    ),
    "twice": (lambda: square(X, a=2.0, n=64, x=X), "got `x` twice, by position and by name", None),
    "indexed": (
        lambda: square[1, 32](X, 2.0, 64),
        "was indexed with a grid and a block, which were already set when it was made",
        "call it with its arguments only: (x, a, n)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_call_with_other_arguments_says_what_it_takes(case):
    call, message, help = WRONG[case]
    with pytest.raises(pd.Error) as raised:
        call()
    assert (raised.value.message, raised.value.help) == (f"operator `ptxdsl_tests::square` {message}", help)
    assert raised.value.at.file == __file__


@pytest.mark.parametrize("value, kind", [(1.0, "float"), (np.ones(64, np.float32), "numpy.ndarray"), ([1.0], "list")])
def test_what_is_no_tensor_is_refused_by_name(value, kind):
    with pytest.raises(pd.CallError) as raised:
        square(value, 2.0, 64)
    assert (
        raised.value.message == f"`x` of operator `ptxdsl_tests::square` must be a tensor, got a value of type {kind}"
    )
    assert (
        raised.value.help
        == "pass a tensor: torch.from_numpy(…), or call the functions of ptxdsl.kernels, which take arrays"
    )


def test_an_output_that_is_none_is_refused():
    options = {"grid": 1, "block": 32, "out": {"y": lambda x, a, n: None}}
    operator = op("ptxdsl_tests::none", scaled_square, **options)
    with pytest.raises(LaunchError) as raised:
        operator(X, 2.0, 64)
    assert raised.value.message == "the function that allocates the output `y` returned None"
    assert raised.value.help == "return an empty tensor"


@pytest.mark.parametrize(
    "call, message, help",
    [
        (
            lambda: op("a::b", plain, bwd=plain),
            "op takes no `bwd`; it takes name, target, fake, mutates, grid, block, out, constants, backward and setup_context",
            "use `backward=`: f(ctx, *gradients)",
        ),
        (lambda: op(scaled_square), "the operator name <kernel scaled_square> is not valid", 'use "namespace::name", two identifiers'),
        (
            lambda: op("a::c", lambda x: x, fake=plain),
            "operator `a::c`: Parameter x must have a type annotation.",
            "annotate the arguments and the result: `def launcher(x: torch.Tensor, n: int) -> torch.Tensor`",
        ),
        (
            lambda: conv2d(X, X, padding=1),
            "conv2d takes no `padding`; it takes x, w, bias, pad, stride and dilation",
            "use `pad=`: one number, or one for height and one for width",
        ),
    ],
)  # fmt: skip
def test_what_others_call_otherwise(call, message, help):
    with pytest.raises(pd.Error) as raised:
        call()
    assert (raised.value.message, raised.value.help) == (message, help)


def test_what_is_mutated_counts_as_changed():
    x = torch.randn(64, requires_grad=True)
    y = x * 1
    kept = (y * y).sum()
    with torch.no_grad():
        double(y)
    assert torch.equal(y, 2 * x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        kept.backward()


def test_backward_of_an_operator_without_one():
    x = torch.randn(64, requires_grad=True)
    with pytest.raises(LaunchError) as raised:
        halves(x)[0].sum().backward()
    assert raised.value.message == "operator `ptxdsl_tests::halves` has no gradient"
    assert (
        raised.value.help == "pass `backward=` when making it, or call it with `x.detach()` or inside `torch.no_grad()`"
    )
    assert "halves(x)[0].sum().backward()" in str(raised.value)


def test_the_launch_refuses_what_does_not_fit():
    with pytest.raises(LaunchError, match="`x` expects ptr\\[f32\\], got a torch array of f16"):
        square(torch.zeros(64, dtype=torch.float16), 2.0, 64)


class Matrix(Parameters):
    data: ptr[f32]
    stride: u32


@pd.kernel
def takes_a_group(m: Matrix, y: ptr[f32]):
    y[0] = m.data[m.stride]


@pd.kernel
def writes_nothing(x: ptr[f32]):
    pd.printf("%f", x[0])


def plain(x: torch.Tensor) -> torch.Tensor:
    return x + 1


REFUSED = {
    "a group": (
        (takes_a_group,), {"grid": 1, "block": 1},
        "operator `a::b`: parameter `m` is Matrix, but torch passes only tensors and numbers",
        "write a launcher, a function of tensors and numbers that builds it and launches the kernel",
    ),
    "no fake": (
        (plain,), {},
        "operator `a::b` has no `fake`, so its outputs are unknown when tensors have no memory",
        "pass `fake=lambda x: torch.empty_like(x)`, or another function that returns empty tensors like its outputs",
    ),
    "no block": (
        (double_in_place,), {"grid": 1},
        "operator `a::b` launches kernel `double_in_place`, but has no `block`",
        "pass `grid=` and `block=`: numbers, or functions of the operator's arguments",
    ),
    "a fake of a kernel": (
        (double_in_place,), {"fake": plain},
        "operator `a::b` is made of a kernel, which does not take `fake`",
        "name its outputs by `out={'y': lambda x: torch.empty_like(x)}`; the other arrays that it writes are mutated",
    ),
    "an unknown output": (
        (double_in_place,), {"grid": 1, "block": 1, "out": {"z": plain}},
        "operator `a::b` has the output `z`, but kernel `double_in_place` takes x",
        "name pointer parameters of the kernel",
    ),
    "an output that is read": (
        (scaled_square,), {"grid": 1, "block": 1, "out": {"x": plain}},
        "operator `a::b` has the output `x`, which kernel `scaled_square` does not write",
        "it writes y",
    ),
    "an output of a kernel without any": (
        (writes_nothing,), {"grid": 1, "block": 1, "out": {"x": plain}},
        "operator `a::b` has the output `x`, which kernel `writes_nothing` does not write",
        "it writes nothing",
    ),
    "an output that nothing makes": (
        (double_in_place,), {"grid": 1, "block": 1, "out": {"x": 3}},
        "operator `a::b`: the output `x` is 3, which is not a function",
        "pass a function of the operator's arguments, such as `lambda x: torch.empty_like(x)`",
    ),
    "a gradient of what is mutated": (
        (double_in_place,), {"grid": 1, "block": 1, "backward": plain},
        "operator `a::b` writes `x`, so it cannot have a `backward`",
        "return a new tensor instead: autograd differentiates only operators that allocate their outputs",
    ),
    "options of kernels": (
        (plain,), {"fake": plain, "grid": 1},
        "operator `a::b` is made of a launcher, which does not take `grid`, `block`, `out` or `constants`",
        "leave these out: the launcher itself allocates its outputs and launches its kernels",
    ),
    "outputs as a list": (
        (scaled_square,), {"grid": 1, "block": 1, "out": ["y"]},
        "operator `a::b` has out=['y'], which is not a dict",
        "pass a dict of its outputs, such as `{'y': lambda x: torch.empty_like(x)}`",
    ),
    "a grid of other arguments": (
        (scaled_square,), {"grid": lambda n: n, "block": 1, "out": {"y": lambda x, a, n: x}},
        "operator `a::b`: `grid` is a function of n, but it is called with x, a, n",
        "write `lambda x, a, n: …`",
    ),
    "an output of other arguments": (
        (scaled_square,), {"grid": 1, "block": 1, "out": {"y": lambda x: x}},
        "operator `a::b`: `out['y']` is a function of x, but it is called with x, a, n",
        "write `lambda x, a, n: …`",
    ),
    "no outputs": (
        (scaled_square,), {"grid": lambda x, a, n: n, "block": 1},
        "operator `a::b`: `grid` is a function of x, a, n, but it is called with x, y, a, n",
        "write `lambda x, y, a, n: …`, or name its outputs: `out={'y': …}`",
    ),
    "a gradient that is no function": (
        (scaled_square,), {"grid": 1, "block": 1, "out": {"y": lambda x, a, n: x}, "backward": 3},
        "operator `a::b` has backward=3, which is not a function",
        "pass a function `backward(ctx, *gradients)` that returns one gradient per argument",
    ),
    "a context without a gradient": (
        (plain,), {"fake": plain, "setup_context": plain},
        "operator `a::b` has `setup_context`, but no `backward` that uses it",
        "pass `backward=` too",
    ),
    "a class": ((int,), {}, "operator `a::b` is made of <class 'int'>, which is neither a kernel nor a function", "pass a kernel (@pd.kernel) or a function that launches kernels"),
    "a number": ((3,), {}, "operator `a::b` is made of 3, which is neither a kernel nor a function", "pass a kernel (@pd.kernel) or a function that launches kernels"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    target, options, message, help = REFUSED[case]
    with pytest.raises(LaunchError) as raised:
        op("a::b", *target, **options)
    assert (raised.value.message, raised.value.help) == (message, help)
    assert "test_operator.py" in str(raised.value)


def dual(function, x):
    with torch.autograd.forward_ad.dual_level():
        return function(torch.autograd.forward_ad.make_dual(x, x))


FORWARD = {
    "a dual tensor": dual,
    "jvp": lambda f, x: torch.func.jvp(f, (x,), (x,)),
    "jvp of vmap": lambda f, x: torch.func.jvp(torch.vmap(f), (x[None],), (x[None],)),
    "jacfwd": lambda f, x: torch.func.jacfwd(f)(x),
}


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:FutureWarning")  # by torch's own jvp
class TestForwardMode:
    """Torch's dispatcher would take the derivative for zero, without a word."""

    @pytest.mark.parametrize("case", FORWARD)
    def test_it_is_refused(self, case):
        with pytest.raises(LaunchError) as refused:
            FORWARD[case](lambda x: square(x, a=2.0, n=8), torch.randn(8))
        assert refused.value.message == (
            "operator `ptxdsl_tests::square` has no forward-mode derivative (torch.func.jvp, jacfwd, dual tensors)"
        )
        assert refused.value.help == "take the gradient in reverse mode: `y.backward()` or `torch.autograd.grad(y, x)`"
        assert "test_operator.py" in str(refused.value)

    def test_a_compiled_function_cannot_have_it_either(self):
        torch._dynamo.reset()
        compiled = torch.compile(
            lambda x: torch.func.jvp(lambda x: square(x, 2.0, 8), (x,), (x,)), fullgraph=True, backend="eager"
        )
        with pytest.raises(torch._dynamo.exc.Unsupported) as refused:
            compiled(torch.randn(8))
        sentence = "operators of ptxdsl have no forward-mode derivative; take the gradient in reverse mode"
        assert f"(reason: {sentence})" in str(refused.value)

    def test_what_has_no_tangent_may_be_beside_it(self):
        x = torch.randn(8)
        with torch.autograd.forward_ad.dual_level():
            torch.autograd.forward_ad.make_dual(torch.ones(1), torch.ones(1))
            assert torch.equal(square(x, 2.0, 8), 2.0 * x * x)


def test_an_operator_whose_name_another_one_has_is_not_called():
    first = op("ptxdsl_tests::again", scaled_square, grid=1, block=32, out={"y": lambda x, a, n: torch.empty_like(x)})
    second = op("ptxdsl_tests::again", double_in_place, grid=1, block=8)
    x = torch.ones(8)
    second(x)
    assert x.tolist() == [2] * 8
    with pytest.raises(LaunchError) as refused:
        first(x, 2.0, 8)
    assert refused.value.message == "operator `ptxdsl_tests::again` was redefined, and this is the old one"
    assert refused.value.help == "call the newer one, or give this one another name"
    assert "test_operator.py" in str(refused.value)
    with pytest.raises(torch._dynamo.exc.Unsupported) as refused:
        torch.compile(lambda x: first(x, 2.0, 8), fullgraph=True, backend="eager")(x)
    assert "an operator of ptxdsl was redefined; call the newer one" in str(refused.value)


def test_an_operator_that_could_not_be_made_leaves_the_one_before():
    with pytest.raises(LaunchError):
        op("ptxdsl_tests::square", lambda x: x, fake=plain)
    assert square(torch.ones(4), 2.0, 4).tolist() == [2] * 4


def test_s4_lie_in_int8():
    @pd.kernel
    def packed(x: ptr[s4], y: ptr[f32]):
        y[0] = 1

    operator = op("ptxdsl_tests::packed", packed, grid=1, block=1, out={"y": lambda x: x.new_empty(1)})
    assert str(operator.dispatched._schema) == "ptxdsl_tests::packed(Tensor x) -> Tensor"  # s4 lie in int8


@pytest.mark.parametrize("name", ["square", "a::b::c", "a::1", ""])
def test_a_name_that_torch_does_not_take(name):
    with pytest.raises(LaunchError) as raised:
        op(name, plain, fake=plain)
    assert raised.value.message == f"the operator name {name!r} is not valid"
    assert raised.value.help == 'use "namespace::name", two identifiers'


def test_pd_torch_is_the_module():
    assert pd.torch.op is op


@pd.kernel
def scaled(x: ptr[f32], *, factor: float):
    x[pd.tid.x] = x[pd.tid.x] * factor


def test_a_constant_that_is_lacking_is_passed_in_a_dict():
    with pytest.raises(pd.TraceError) as refused:
        op("ptxdsl_tests::lacking", scaled, grid=1, block=32)
    assert (refused.value.message, refused.value.help) == (
        "kernel `scaled` needs its constant `factor`", "pass `constants={'factor': …}`",
    )  # fmt: skip
    assert "test_operator.py" in str(refused.value)
    assert (
        op("ptxdsl_tests::scaled", scaled, grid=1, block=32, constants={"factor": 3.0}).name == "ptxdsl_tests::scaled"
    )
