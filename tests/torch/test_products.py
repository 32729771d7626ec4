"""The products that ship as operators of torch: results and gradients as torch's, in eager and in compiled code."""

import pytest

from ptxdsl import LaunchError

torch = pytest.importorskip("torch", reason="torch is not installed")
ours = pytest.importorskip("ptxdsl.torch")
convolution = pytest.importorskip("ptxdsl.torch.convolution")
functional = torch.nn.functional

# What torch says of itself: autograd's thread multiplies by cuBLAS before it has a context, which torch then makes
# current; and graphs of compiled models begin with one that records nothing, on purpose.
pytestmark = pytest.mark.filterwarnings(
    "ignore:The .grad attribute of a Tensor:UserWarning",
    "ignore:Attempting to run cuBLAS, but there was no current CUDA context!:UserWarning",
    "ignore:The CUDA Graph is empty:UserWarning",
)
on_each = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])


def normal(device, *shape, dtype=torch.float16):
    return torch.randn(shape, device=device).to(dtype)


def assert_same(ours, reference, *tensors):
    """Both functions have the same result and gradients, up to the rounding of f16."""
    results = []
    for function in (ours, reference):
        leaves = [tensor.detach().clone().requires_grad_() for tensor in tensors]
        result = function(*leaves)
        torch.manual_seed(1)
        result.backward(torch.randn(result.shape).to(result))
        results.append([result, *(leaf.grad for leaf in leaves)])
    for result, expected in zip(*results, strict=True):
        assert result.shape == expected.shape and result.dtype is expected.dtype
        scale = expected.double().abs().max().item()
        assert (result.double() - expected.double()).abs().max().item() <= 4e-3 * scale


@on_each
@pytest.mark.parametrize("shapes", [((40, 24), (24, 56)), ((3, 40, 24), (3, 24, 56)), ((3, 40, 24), (24, 56))])
def test_gemm(shapes, device):
    assert_same(ours.gemm, torch.matmul, *(normal(device, *shape) for shape in shapes))


@on_each
def test_gemm_of_transposed_views_and_of_a_gradient_without_strides(device):
    a, b = normal(device, 24, 40), normal(device, 56, 24)
    assert_same(lambda a, b: ours.gemm(a.t(), b.t()), lambda a, b: a.t() @ b.t(), a, b)
    wants = a.clone().requires_grad_()
    ours.gemm(wants.t(), b.t()).sum().backward()
    assert torch.allclose(wants.grad, b.sum(0)[:, None].expand_as(wants), atol=0.05)


@on_each
@pytest.mark.parametrize("shape", [(20, 24), (2, 10, 24)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear(shape, bias, device):
    beside = [normal(device, 56)] if bias else []
    assert_same(ours.linear, functional.linear, normal(device, *shape), normal(device, 56, 24), *beside)


def by_groups(a, b, ends):
    begins = [0, *ends]
    return torch.cat([a[begins[n] : end] @ b[n] for n, end in enumerate(ends)])


@on_each
def test_grouped_gemm_ragged(device):
    ends = [10, 10, 33]  # an empty group, and rows behind the last one
    offsets = torch.tensor(ends, dtype=torch.int32, device=device)
    a, b = normal(device, 40, 24), normal(device, 3, 24, 16)
    assert_same(lambda a, b: ours.grouped_gemm_ragged(a, b, offsets)[:33], lambda a, b: by_groups(a, b, ends), a, b)


WINDOWS = [
    {"pad": 1}, {"pad": 1, "stride": 2}, {"pad": (2, 1), "stride": (1, 2), "dilation": (2, 1)}, {"stride": 3},
]  # fmt: skip


def check_conv2d(moves, x, w, bias):
    def reference(x, w, bias):
        named = {"padding" if name == "pad" else name: value for name, value in moves.items()}
        x, w = (t.permute(0, 3, 1, 2).float() for t in (x, w))
        return functional.conv2d(x, w, bias.float(), **named).permute(0, 2, 3, 1).half()

    assert_same(lambda *tensors: ours.conv2d(*tensors, **moves), reference, x, w, bias)


@on_each
@pytest.mark.parametrize("moves", WINDOWS)
def test_conv2d(moves, device):
    check_conv2d(moves, normal(device, 2, 9, 12, 8), normal(device, 16, 3, 3, 8), normal(device, 16))


@on_each
def test_conv2d_of_every_second_pixel(device):
    check_conv2d({"stride": (2, 3)}, normal(device, 2, 9, 8, 16), normal(device, 16, 1, 1, 16), normal(device, 16))


@on_each
def test_conv2d_that_pads_more_than_its_filters_reach(device):
    x, w = normal(device, 8, 5, 6, 8), normal(device, 16, 1, 1, 8)

    def padded(x, w):
        return functional.pad(x, (0, 0, 0, 2, 1, 0)) @ w[:, 0, 0].t()

    assert_same(lambda x, w: ours.conv2d(x, w, pad=((1, 0), (0, 2))), padded, x, w)


@on_each
@pytest.mark.parametrize("moves", WINDOWS[:2])
def test_conv2d_whose_gradients_have_kernels(moves, device, monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    called = []
    for name in ("conv2d_dgrad", "conv2d_wgrad"):
        kernel = getattr(convolution, name)
        monkeypatch.setattr(
            convolution, name, lambda *a, n=name, k=kernel, **more: (k(*a, **more), called.append(n))[0]
        )
    check_conv2d(moves, normal(device, 2, 7, 6, 64), normal(device, 16, 3, 3, 64), normal(device, 16))
    assert called == ["conv2d_dgrad", "conv2d_wgrad"]


def arguments(device):
    def wants(*shape):
        return normal(device, *shape).requires_grad_()

    offsets = torch.tensor([3, 8], dtype=torch.int32, device=device)
    moves = [0, 1, 1, 0], [1, 2], [1, 1]
    return {
        "gemm": (wants(8, 16), wants(16, 8)),
        "linear": (wants(8, 16), wants(24, 16), wants(24)),
        "grouped_gemm_ragged": (wants(8, 16), wants(2, 16, 8), offsets),
        "grouped_gemm_ragged_k": (normal(device, 8, 16), normal(device, 8, 24), offsets),
        "conv2d": (wants(1, 4, 5, 8), wants(8, 2, 2, 8), wants(8), *moves),
        "conv2d_dx": (normal(device, 1, 4, 3, 8), normal(device, 8, 2, 2, 8), [4, 5], *moves),
        "conv2d_dw": (normal(device, 1, 4, 3, 8), normal(device, 1, 4, 5, 8), [2, 2], *moves),
    }


@on_each
@pytest.mark.parametrize("name", arguments("cpu"))
def test_opcheck(name, device):
    torch.library.opcheck(getattr(torch.ops.ptxdsl, name).default, arguments(device)[name], atol=0.1, rtol=0.1)


@on_each
def test_a_compiled_model_trains_as_the_eager_one(device):
    torch.manual_seed(2)
    model = torch.nn.Sequential(ours.Linear(16, 32), torch.nn.ReLU(), ours.Linear(32, 8)).to(device, torch.float16)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    x, gradients = normal(device, 24, 16), []
    for each in (model, compiled):
        model.zero_grad()
        each(x).float().square().mean().backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    assert all(torch.equal(*pair) for pair in zip(*gradients, strict=True))


@on_each
def test_autocast_lowers_what_modules_multiply(device):
    model = torch.nn.Sequential(ours.Linear(16, 32), ours.Linear(32, 8)).to(device)
    x = torch.randn(24, 16, device=device)
    with torch.autocast(device, torch.bfloat16):
        result = model(x)
    assert result.dtype is torch.bfloat16
    assert torch.allclose(result.float(), model(x), atol=0.05)


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning")  # torch's own use
def test_a_model_in_cuda_graphs():
    model = torch.nn.Sequential(ours.Linear(64, 128), torch.nn.ReLU(), ours.Linear(128, 64)).to("cuda", torch.bfloat16)
    compiled = torch.compile(model, fullgraph=True, mode="reduce-overhead")
    x = normal("cuda", 96, 64, dtype=torch.bfloat16)
    with torch.no_grad():
        for _ in range(4):
            result = compiled(x).clone()
        assert torch.allclose(result, model(x), atol=2e-2)


def by_expert(mixture, tokens):
    """What a mixture of experts is, one token and one expert after another."""
    weights, chosen = mixture.router(tokens).float().softmax(-1).topk(mixture.chosen)
    weights = weights / weights.sum(-1, keepdim=True)
    up, down = mixture.experts.up, mixture.experts.down
    rows = []
    for n, token in enumerate(tokens):
        parts = [functional.silu(token @ up[e]) @ down[e] for e in chosen[n]]
        rows.append(sum(w.to(p) * p for w, p in zip(weights[n], parts, strict=True)))
    return torch.stack(rows)


@on_each
def test_a_mixture_of_experts(device):
    torch.manual_seed(3)
    mixture = ours.MixtureOfExperts(4, 2, 16, 24, device=device, dtype=torch.float32)
    tokens, gradients = torch.randn(12, 16, device=device), []
    for function in (mixture, lambda tokens: by_expert(mixture, tokens)):
        mixture.zero_grad()
        result = function(tokens)
        result.square().sum().backward()
        gradients.append([result.detach(), *(p.grad.clone() for p in mixture.parameters())])
    for result, expected in zip(*gradients, strict=True):  # in tf32
        assert (result - expected).abs().max() <= 5e-3 * expected.abs().max()


def test_a_mixture_compiles_as_one_graph_and_a_layer_is_exported():
    mixture, tokens = ours.MixtureOfExperts(3, 2, 16, 24), torch.randn(12, 16)
    compiled = torch.compile(mixture, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(tokens), mixture(tokens))
    exported = torch.export.export(ours.Linear(16, 8), (tokens,))
    assert "torch.ops.ptxdsl.linear.default" in exported.graph_module.code


def test_a_product_of_other_types_is_refused():
    with pytest.raises(LaunchError, match="`a` is float16 and `b` is float32"):
        ours.gemm(torch.zeros(8, 8).half(), torch.zeros(8, 8))


@pytest.mark.parametrize("bias", [None, torch.zeros(4)], ids=["alone", "with a bias"])
def test_linear_is_refused_by_the_names_of_its_arguments(bias):
    with pytest.raises(LaunchError) as refused:
        ours.linear(torch.randn(3, 5), torch.randn(4, 6), bias)
    assert refused.value.message == "`x` has the shape (3, 5) and `weight.T` (6, 4): 5 columns meet 6 rows"
    with pytest.raises(LaunchError) as refused:
        ours.linear(torch.randn(3, 5), torch.randn(4, 5).half(), bias)
    assert refused.value.message == "`x` is float32 and `weight.T` is float16"
    assert "test_products.py:" in str(refused.value)
