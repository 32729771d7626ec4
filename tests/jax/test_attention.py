"""attention() of JAX arrays: results and gradients as those of jax.numpy, inside jit and under vmap."""

import pytest

import ptxdsl as pd
from ptxdsl import LaunchError

jax = pytest.importorskip("jax", reason="jax is not installed")
jnp = jax.numpy
ours = pytest.importorskip("ptxdsl.jax")
on_each = pytest.mark.parametrize("platform", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])


@pytest.fixture(autouse=True)
def where(request):
    """JAX computes on the platform of the test."""
    platform = getattr(request.node, "callspec", None) and request.node.callspec.params.get("platform")
    with jax.default_device(jax.devices(platform or "cpu")[0]):
        yield


def operands(shape=(1, 4, 70, 64), kv=(1, 2, 90, 64), dtype=jnp.bfloat16):
    return [jax.random.normal(jax.random.key(n), size).astype(dtype) for n, size in enumerate((shape, kv, kv))]


def plain(q, k, v, causal=False, softcap=0.0):
    """Attention in float32."""
    q, k, v = (x.astype(jnp.float32) for x in (q, k, v))
    k, v = (jnp.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
    scores = softcap * jnp.tanh(scores / softcap) if softcap else scores
    m, n = scores.shape[-2:]
    seen = jnp.arange(n) <= jnp.arange(m)[:, None] + n - m if causal else jnp.full((m, n), True)
    return jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), -1) @ v


def differentiated(function):
    """Return a function of the output and the gradients of a weighted sum."""

    def loss(q, k, v):
        out = function(q, k, v).astype(jnp.float32)
        return (out * jnp.cos(jnp.arange(out.size).reshape(out.shape))).sum(), out

    def results(q, k, v):
        gradients, out = jax.grad(loss, (0, 1, 2), has_aux=True)(q, k, v)
        return out, *gradients

    return results


@on_each
@pytest.mark.parametrize("options", [{"causal": True}, {"softcap": 2.0}])
def test_results_and_gradients(options, platform):
    tensors = operands()
    mine, wanted = (
        jax.jit(differentiated(lambda *x, f=f: f(*x, **options)))(*tensors) for f in (ours.attention, plain)
    )
    assert [x.dtype for x in mine[1:]] == [jnp.bfloat16] * 3
    for one, other in zip(mine, wanted, strict=True):
        assert jnp.abs(one.astype(jnp.float32) - other.astype(jnp.float32)).max() <= 0.02 * jnp.abs(other).max()


@pytest.mark.exhaustive
def test_vmap_of_the_gradient():
    tensors = [jnp.stack([x, -x / 2]) for x in operands((1, 1, 16, 64), (1, 1, 16, 64))]
    mine, wanted = (jax.vmap(differentiated(f))(*tensors) for f in (ours.attention, plain))
    for one, other in zip(mine, wanted, strict=True):
        assert jnp.abs(one.astype(jnp.float32) - other.astype(jnp.float32)).max() <= 0.02 * jnp.abs(other).max()


def test_no_keys_give_zero():
    tensors = operands((1, 1, 8, 64), (1, 1, 0, 64))
    for result in differentiated(ours.attention)(*tensors):
        assert not result.size or jnp.abs(result).max() == 0


REFUSED = {
    "heads": (
        [(1, 3, 8, 64), (1, 2, 8, 64)],
        "`q` has the shape (1, 3, 8, 64), `k` (1, 2, 8, 64) and `v` (1, 2, 8, 64): 3 query heads do not divide among 2 "
        "key heads",
        "H is a multiple of Hkv",
    ),
    "rank": (
        [(8, 64), (1, 2, 8, 64)],
        "`q` has the shape (8, 64); q is (B, H, M, D), k (B, Hkv, N, D) and v (B, Hkv, N, Dv)",
        "reshape it, or permute its axes",
    ),
    "gradient of wide heads": (
        [(1, 1, 8, 256)] * 2,
        "attention_backward has no kernel for a head dimension of 256 with values of 256",
        "D is 64 or 128, for q, k and v alike",
    ),
}


@pytest.mark.cases(len(REFUSED))
@pytest.mark.parametrize("case", REFUSED)
def test_refusals_while_traced(case):
    shapes, message, help = REFUSED[case]
    with pytest.raises(LaunchError) as error:
        jax.jit(differentiated(ours.attention)).lower(*operands(*shapes))
    assert (error.value.message, error.value.help) == (message, help)


def test_arguments_of_jax_are_named():
    with pytest.raises(pd.CallError) as error:
        ours.attention(*operands(), is_causal=True)
    assert error.value.help == "use `causal=`"
