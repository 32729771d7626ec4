"""Tokens to experts and back as operators of torch: results and gradients as torch's own operations have them."""

import pytest

from ptxdsl import Error, LaunchError

torch = pytest.importorskip("torch", reason="torch is not installed")
ours = pytest.importorskip("ptxdsl.torch")
routing = pytest.importorskip("ptxdsl.torch.routing")

pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
on_each = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
RANK = [[0, 2], [1, 3], [5, 4]]


def through_squares(scores, tokens):
    """Rows of expert e are squared and multiplied by e + 1."""
    routes = ours.route(scores, 2)
    rows = ours.dispatch(tokens, routes)
    expert = torch.bucketize(torch.arange(len(rows), device=rows.device), routes.ends, right=True)
    return ours.combine(rows * rows * (expert[:, None] + 1).to(rows.dtype), routes)


def by_torch(scores, tokens):
    weights, experts = scores.double().softmax(-1).topk(2)
    weights = weights / weights.sum(-1, keepdim=True) * (experts + 1)
    return (tokens.double() ** 2 * weights.sum(-1, keepdim=True)).to(tokens.dtype)


@on_each
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("width", [24, 21])
def test_a_mixture_of_squares(dtype, width, device):
    scores, tokens, gradient = (torch.randn(20, n, device=device).to(dtype) for n in (5, width, width))
    results = []
    for function in (through_squares, by_torch):
        leaves = [each.clone().requires_grad_() for each in (scores, tokens)]
        out = function(*leaves)
        out.backward(gradient)
        results.append([out, *(leaf.grad for leaf in leaves)])
    for result, expected in zip(*results, strict=True):
        assert result.dtype is dtype
        tolerance = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}[dtype]
        assert (result - expected).abs().max() <= tolerance * expected.abs().max()


def test_experts_without_tokens_and_tokens_without_rows():
    routes = ours.route(torch.tensor([[0.0, 9.0, 1.0], [0.0, 9.0, 1.0]]), 1)
    assert routes.ends.tolist() == [0, 2, 2] and routes.rank.tolist() == [[0], [1]]
    assert ours.dispatch(torch.empty(0, 8), ours.route(torch.empty(0, 3), 2)).shape == (0, 8)


def arguments():
    rank, weights = torch.tensor(RANK, dtype=torch.int32), torch.rand(3, 2)
    tokens, rows = torch.randn(3, 8), torch.randn(6, 8)
    return {
        "sort_by_expert": (torch.tensor([[1, 0], [2, 1]]), 3),
        "spread": (tokens.requires_grad_(), rank),
        "gather_rows": (rows, rank),
        "combine_rows": (rows.clone().requires_grad_(), rank, weights.clone().requires_grad_()),
        "combine_gradients": (tokens.detach(), rows, rank, weights),
    }


@pytest.mark.parametrize("name", arguments())
def test_opcheck(name):
    torch.library.opcheck(getattr(torch.ops.ptxdsl, name).default, arguments()[name])


def test_too_many_experts():
    with pytest.raises(LaunchError) as raised:
        routing.sort_by_expert(torch.zeros(4, dtype=torch.int64), 8193)
    assert raised.value.message == "`experts` is 8193; the sort kernel supports 1 to 8192"
    assert raised.value.help == "use torch.sort"


def test_rows_of_another_type():
    with pytest.raises(LaunchError) as raised:
        routing.spread(torch.zeros(3, 8, dtype=torch.float64), torch.tensor(RANK, dtype=torch.int32))
    assert raised.value.message == "rows of torch.float64 are not supported; they must be float16, bfloat16 or float32"
    assert raised.value.help == "convert them first"


ROUTES = {
    "more than there are": (
        lambda: ours.route(torch.randn(4, 3), 5), "`chosen` is 5; there are 3 experts", "choose 1 to 3 for each token",
    ),
    "none": (
        lambda: ours.route(torch.randn(4, 1), 0), "`chosen` is 0; there is 1 expert", "choose 1 to 1 for each token",
    ),
    "no int": (
        lambda: ours.route(torch.randn(4, 3), 1.5), "`chosen` is 1.5; it must be the number of experts per token",
        "pass an int, such as 2",
    ),
    "of a module": (
        lambda: ours.MixtureOfExperts(3, 5, 16, 16), "`chosen` is 5; there are 3 experts", "choose 1 to 3 for each token",
    ),
    "scores of a token": (
        lambda: ours.route(torch.randn(4), 1), "`scores` has the shape (4,); it must be (tokens, experts)", "reshape it to two dimensions",
    ),
    "a misspelt name": (lambda: ours.gem, "ptxdsl.torch has no `gem`", "did you mean `gemm`?"),
    "a name of torch": (lambda: ours.addmm, "ptxdsl.torch has no `addmm`", "`gemm` is the product of two matrices"),
}  # fmt: skip


@pytest.mark.parametrize("case", ROUTES)
def test_what_is_refused_in_words(case):
    call, message, help = ROUTES[case]
    with pytest.raises(Error) as raised:
        call()
    assert (raised.value.message, raised.value.help) == (message, help)
