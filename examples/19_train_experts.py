"""Training a mixture of experts with the operators of ptxdsl.torch, compared with the same model in plain torch.

    python examples/19_train_experts.py                  # on the emulator
    python examples/19_train_experts.py --device cuda    # on the GPU, larger and longer
    torchrun --nproc_per_node=2 examples/19_train_experts.py [--device cuda] [--steps=50]    # DDP; --fsdp: shards

The model predicts the next symbol of a sequence with a hidden rule: an embedding, experts with a residual connection, a
linear layer. Both models start from the same weights and see the same batches. Weights are float32, products are
bfloat16. New here: modules of ptxdsl.torch, whose operators have gradients; DDP and FSDP pass them local tensors.
"""

import os
import sys
import time
from itertools import pairwise

import torch
import torch.distributed as dist
from arrays import ON_GPU, check
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from ptxdsl.torch import Linear, MixtureOfExperts

DEVICE = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if ON_GPU else torch.device("cpu")
RANKS = int(os.environ.get("WORLD_SIZE", "1"))
SYMBOLS, EXPERTS, CHOSEN = 64, 8 if ON_GPU else 3, 2
WIDTH, HIDDEN, BATCH, STEPS = (512, 1024, 4096, 200) if ON_GPU else (16, 24, 48, 4)
STEPS = next((int(each.partition("=")[2]) for each in sys.argv if each.startswith("--steps=")), STEPS)
LEARNING_RATE = 2e-3 if ON_GPU else 2e-2


class PlainLinear(nn.Linear):
    """A linear layer of plain torch, in place of `ptxdsl.torch.Linear`."""

    def forward(self, x):
        return nn.functional.linear(x, self.weight.to(x.dtype), None if self.bias is None else self.bias.to(x.dtype))


class PlainExperts(nn.Module):
    """Experts in plain torch, one after another, in place of `ptxdsl.torch.Experts`."""

    def __init__(self, experts, width, hidden):
        super().__init__()
        self.up, self.down = (
            nn.Parameter(torch.empty(experts, *shape)) for shape in ((width, hidden), (hidden, width))
        )

    def forward(self, rows, ends):
        begins = [0, *ends.tolist()]
        up, down = self.up.to(rows.dtype), self.down.to(rows.dtype)
        groups = [rows[begin:end] for begin, end in pairwise(begins)]
        return torch.cat([nn.functional.silu(x @ up[n]) @ down[n] for n, x in enumerate(groups)])


class Model(nn.Module):
    """Map symbols (tokens,) to scores of the next symbol (tokens, SYMBOLS)."""

    def __init__(self, plain):
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, WIDTH)
        self.mixture = MixtureOfExperts(EXPERTS, CHOSEN, WIDTH, HIDDEN)
        self.head = (PlainLinear if plain else Linear)(WIDTH, SYMBOLS)
        if plain:
            self.mixture.router = PlainLinear(WIDTH, EXPERTS, bias=False)
            self.mixture.experts = PlainExperts(EXPERTS, WIDTH, HIDDEN)

    def forward(self, symbols):
        x = self.embedding(symbols).bfloat16()
        return self.head(x + self.mixture(x)).float()


def parallel(model):
    """Return the model as it is for one rank, else replicated (DDP) or sharded (FSDP)."""
    if RANKS == 1:
        return model
    if "--fsdp" in sys.argv:
        fully_shard(model)
        return model
    return DistributedDataParallel(model, device_ids=[DEVICE.index] if ON_GPU else None)


def batches(steps):
    """Yield this rank's share of each batch: symbols and their successors, one in eight of them random."""
    generator = torch.Generator().manual_seed(19)
    rule = torch.randperm(SYMBOLS, generator=generator)
    rank = dist.get_rank() if RANKS > 1 else 0
    for _ in range(steps):
        symbols = torch.randint(SYMBOLS, (BATCH,), generator=generator)
        noise = torch.randint(SYMBOLS, (BATCH,), generator=generator)
        following = torch.where(torch.rand(BATCH, generator=generator) < 0.125, noise, rule[symbols])
        yield tuple(each.chunk(RANKS)[rank].to(DEVICE) for each in (symbols, following))


def train(plain, state, steps=STEPS):
    """Train a model and return the loss of each step."""
    model = Model(plain)
    model.load_state_dict(state)
    model = parallel(model.to(DEVICE))
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE)
    losses = []
    for symbols, following in batches(steps):
        loss = nn.functional.cross_entropy(model(symbols), following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    losses = torch.stack(losses)
    if RANKS > 1:
        dist.all_reduce(losses)
    return losses / RANKS


def timed(plain, state):
    """Return the losses and the steps per second."""
    if ON_GPU:
        train(plain, state, steps=3)  # the first steps compile the kernels
    begin = time.perf_counter()
    losses = train(plain, state).double().cpu()
    return losses, STEPS / (time.perf_counter() - begin)


def compare():
    """Train both models, compare their losses and print their speed."""
    torch.manual_seed(19)
    state = Model(plain=False).state_dict()
    losses, rate = timed(False, state)
    expected, plain_rate = timed(True, state)
    if RANKS == 1 or dist.get_rank() == 0:
        title = f"losses of {STEPS} steps, from {losses[0]:.3f} to {losses[-1]:.3f}, in torch to {expected[-1]:.3f}"
        check(title, losses.to(DEVICE), expected.numpy(), tolerance=0.05 if ON_GPU else 0.02)
        print(f"    {rate:.1f} steps a second, in plain torch {plain_rate:.1f}")


def main():
    if ON_GPU and torch.cuda.device_count() <= DEVICE.index:
        sys.exit(
            f"rank {DEVICE.index} of this machine needs a GPU of its own; there are {torch.cuda.device_count()}\n"
            "  help: start fewer ranks, or leave out --device cuda: gloo and the emulator"
        )
    if ON_GPU:
        torch.cuda.set_device(DEVICE)
    if RANKS > 1:
        dist.init_process_group("nccl" if ON_GPU else "gloo", device_id=DEVICE if ON_GPU else None)
    try:
        compare()
    finally:
        if RANKS > 1:
            dist.destroy_process_group()


if __name__ == "__main__":
    main()
