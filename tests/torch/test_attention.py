"""attention() as an operator of torch: results and gradients as torch's, in eager and in compiled code."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
ours = pytest.importorskip("ptxdsl.torch")
pytestmark = pytest.mark.filterwarnings(
    "ignore:The .grad attribute of a Tensor:UserWarning",
    "ignore:Attempting to run cuBLAS, but there was no current CUDA context!:UserWarning",
)
on_each = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])


def operands(device, shape=(1, 4, 70, 64), kv_heads=2):
    kv = (shape[0], kv_heads, *shape[2:])
    return [torch.randn(size, device=device).to(torch.bfloat16).requires_grad_() for size in (shape, kv, kv)]


def results(function, tensors):
    """Return the output and the gradients in float64."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in tensors]
    out = function(*leaves)
    torch.manual_seed(1)
    out.backward(torch.randn(out.shape).to(out))
    return [x.double() for x in (out, *(leaf.grad for leaf in leaves))]


def plain(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


@on_each
def test_results_and_gradients(device):
    tensors = operands(device)
    for mine, wanted in zip(
        results(lambda *x: ours.attention(*x, causal=True), tensors), results(plain, tensors), strict=True
    ):
        assert (mine - wanted).abs().max() <= 0.02 * wanted.abs().max()


def capped(q, k, v):
    """Attention with scores capped at 2, in float32."""
    q, k, v = (x.float() for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = 2 * torch.tanh(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 / 2)
    return torch.softmax(scores, -1) @ v


@on_each
def test_capped_results_and_gradients(device):
    tensors = operands(device)
    for mine, wanted in zip(
        results(lambda *x: ours.attention(*x, softcap=2.0), tensors), results(capped, tensors), strict=True
    ):
        assert (mine - wanted).abs().max() <= 0.02 * wanted.abs().max()


@on_each
def test_opcheck(device):
    torch.library.opcheck(
        torch.ops.ptxdsl.attention.default, (*operands(device), -1, 0, 0.125, 2.0), atol=0.1, rtol=0.1
    )


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning")  # torch's own use
def test_a_compiled_block_trains_as_torch_does():
    """A transformer block of two heads: attention, residuals, norms and an MLP, 40 steps of Adam."""

    class Block(torch.nn.Module):
        def __init__(self, attend):
            super().__init__()
            self.attend, self.norms = attend, torch.nn.ModuleList([torch.nn.LayerNorm(128) for _ in range(2)])
            self.qkv, self.out = torch.nn.Linear(128, 384), torch.nn.Linear(128, 128)
            self.mlp = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.GELU(), torch.nn.Linear(256, 128))

        def forward(self, x):
            b, length, _ = x.shape
            q, k, v = self.qkv(self.norms[0](x)).view(b, length, 3, 2, 64).permute(2, 0, 3, 1, 4)
            mixed = self.attend(q, k, v).transpose(1, 2).reshape(b, length, 128)
            x = x + self.out(mixed)
            return x + self.mlp(self.norms[1](x))

    losses = []
    for attend in (lambda q, k, v: ours.attention(q, k, v, causal=True), plain):
        torch.manual_seed(3)
        block = torch.compile(Block(attend).to("cuda", torch.bfloat16), fullgraph=True)
        x, target = (torch.randn(4, 200, 128, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        optimiser = torch.optim.Adam(block.parameters(), 1e-3)
        block_losses = []
        for _ in range(40):
            optimiser.zero_grad()
            loss = (block(x) - target).float().square().mean()
            loss.backward()
            optimiser.step()
            block_losses.append(loss.item())
        losses.append(block_losses)
    mine, wanted = losses
    assert mine[-1] < mine[0]
    assert mine == pytest.approx(wanted, rel=0.02)
