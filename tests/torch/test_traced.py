"""Launches in functions that torch traces: what torch.compile says of them, and what values without memory are told."""

import warnings

import pytest

import ptxdsl as pd
from ptxdsl import LaunchError, f32, ptr
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.grouped import grouped_gemm

torch = pytest.importorskip("torch", reason="torch is not installed")
# Where there is a GPU, torch forgets graphs by parts of its own that it calls deprecated
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")


@pd.kernel
def twice(x: ptr[f32], y: ptr[f32]):
    y[pd.tid.x] = 2 * x[pd.tid.x]


@pd.autotune([{}], key=())
@pd.kernel
def thrice(x: ptr[f32], y: ptr[f32]):
    y[pd.tid.x] = 3 * x[pd.tid.x]


def launched(x):
    y = torch.empty_like(x)
    twice[1, 32](x + 1, y)
    return y - 1


def tuned(x):
    y = torch.empty_like(x)
    thrice[1, 32](x, y)
    return y


def multiplied(a):
    return gemm(a + 1, a) + 1


def grouped(a):
    return grouped_gemm([a], [a])[0]


X, A = torch.ones(32), torch.ones(16, 16)
OPERATOR = (
    'torch cannot trace through a ptxdsl launch; make the kernel an operator, `f = ptxdsl.torch.op("my::f", kernel, '
    "grid=…, block=…, out={…})`, and call f(…); without fullgraph=True the launch runs between two graphs"
)
UNTRACEABLE = {
    "a launch": (launched, X, OPERATOR),
    "of a tuned kernel": (tuned, X, OPERATOR),
    "a product": (
        multiplied,
        A,
        "torch cannot trace `gemm` of ptxdsl.kernels; call the operator `gemm` of ptxdsl.torch; without "
        "fullgraph=True it runs between two graphs",
    ),
    "a function that is no operator": (
        grouped,
        A,
        "torch cannot trace `grouped_gemm` of ptxdsl.kernels; turn the call into an operator, "
        '`f = ptxdsl.torch.op("my::f", launcher, fake=…)`, and call f(…); without fullgraph=True it runs between two '
        "graphs",
    ),
}


@pytest.fixture(autouse=True)
def graphs_are_forgotten():
    torch._dynamo.reset()


@pytest.mark.parametrize("case", UNTRACEABLE)
def test_a_graph_that_must_not_end_says_what_to_call(case):
    function, argument, sentence = UNTRACEABLE[case]
    with pytest.raises(torch._dynamo.exc.Unsupported) as refused:
        torch.compile(function, fullgraph=True, backend="eager")(argument)
    assert f"(reason: {sentence})" in str(refused.value)
    assert f'File "{__file__}"' in str(refused.value)


@pytest.mark.parametrize("function, argument", [(launched, X), (multiplied, A), (grouped, A)])
def test_else_it_runs_between_two_graphs(function, argument):
    graphs = []

    def keep(graph, inputs):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(function, backend=keep)
    for _ in range(2):
        assert torch.allclose(compiled(argument), function(argument))
    assert len(graphs) == (0 if function is grouped else 2)  # nothing of torch stands beside it


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def in_fake_mode(function, argument):
    with torch._subclasses.FakeTensorMode():
        return function(torch.empty(argument.shape))


def make_fx(function, **options):
    return torch.fx.experimental.proxy_tensor.make_fx(function, **options)


def jit_trace(function, argument):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is deprecated
        return torch.jit.trace(function, (argument,))


TRACED = "cannot be used: torch traces it (torch.compile, torch.export, FakeTensorMode), and it has no memory yet"
RECORDED = "cannot be used: torch records what is done to it (make_fx, torch.jit.trace), and would leave a launch out"
WRAPPED = "cannot be used: torch transforms it (torch.vmap, torch.func), and it has no memory of its own"
TRACERS = {
    "FakeTensorMode": (in_fake_mode, TRACED),
    "torch.export": (lambda f, x: torch.export.export(Module(f), (x,), strict=False), TRACED),
    "make_fx": (lambda f, x: make_fx(f, tracing_mode="fake")(x), TRACED),
    "make_fx of tensors that are there": (lambda f, x: make_fx(f)(x), RECORDED),
    "make_fx before autograd": (lambda f, x: make_fx(f, pre_dispatch=True)(x), RECORDED),
    "torch.jit.trace": (jit_trace, RECORDED),
    "symbolic_trace": (lambda f, x: torch.fx.symbolic_trace(f), TRACED),
    "vmap": (lambda f, x: torch.vmap(f)(x[None]), WRAPPED),
    "grad": (lambda f, x: torch.func.grad(lambda x: f(x).sum())(x), WRAPPED),
    "functionalize": (lambda f, x: torch.func.functionalize(f)(x), WRAPPED),
}


@pytest.mark.parametrize("tracer", TRACERS)
@pytest.mark.parametrize(
    "function, argument, name, help",
    [
        (
            launched, X, "x",
            "make the kernel a torch operator: `ptxdsl.torch.op(name, kernel, grid=…, block=…, out={…})`",
        ),
        (
            multiplied, A, "a",
            "call an operator: `gemm` of ptxdsl.torch, or one made of your call by "
            "`ptxdsl.torch.op(name, launcher, fake=…)`",
        ),
    ],
    ids=["a launch", "a product"],
)  # fmt: skip
def test_values_without_memory_are_refused(tracer, function, argument, name, help):
    function(argument)  # a launch of tensors that are there is no excuse
    trace, sentence = TRACERS[tracer]
    with pytest.raises(LaunchError) as refused:
        trace(function, argument)
    assert (refused.value.message, refused.value.help) == (f"`{name}` {sentence}", help)
    assert "test_traced.py:" in str(refused.value)


@pytest.mark.gpu
@pytest.mark.parametrize("function, argument", [(launched, X), (multiplied, A)], ids=["a launch", "a product"])
def test_a_launch_that_is_remembered_is_refused_too(function, argument):
    argument = argument.cuda()
    for _ in range(3):
        function(argument)
    with pytest.raises(LaunchError, match="torch records what is done to it"):
        make_fx(function)(argument)
    function(argument)
