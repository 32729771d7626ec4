"""A mixture of experts over several GPUs: each holds some of the experts, and tokens travel to theirs and back.

    python examples/20_expert_parallel.py                                             # one rank, on the emulator
    torchrun --nproc_per_node=4 examples/20_expert_parallel.py                        # four: gloo and emulators
    torchrun --nproc_per_node=2 examples/20_expert_parallel.py --device cuda [--bench]    # NCCL and two GPUs

Each rank routes its tokens and sorts them by expert; an all-to-all takes them to the rank of the expert, where
grouped_gemm_ragged multiplies them; another one takes them back, where they are combined. The gradient goes the same
way backwards. The result is compared with the layer on one device in float64: it is the same for 1, 2 and 4 ranks.
New here: ptxdsl.torch under torch.distributed. Tokens travel in parts, on a second stream, while others are multiplied.
"""

import os
import sys
from itertools import product
from typing import NamedTuple

import torch
import torch.distributed as dist
from arrays import ON_GPU, check
from torch import nn

from ptxdsl.torch import Linear, Routes, combine, grouped_gemm_ragged, route

BENCH = "--bench" in sys.argv
EXPERTS, CHOSEN = 8, 2
TOKENS, WIDTH, HIDDEN = (16384, 2048, 4096) if BENCH else (4096, 512, 256) if ON_GPU else (48, 16, 24)
NARROW = 1024  # instead of HIDDEN, where the exchange takes as long as the products
DTYPE = torch.bfloat16 if ON_GPU else torch.float32  # which is multiplied as tf32


class Exchange(torch.autograd.Function):
    """Rows to other ranks, `sent[r]` of them to rank r and `received[r]` from it. The gradient travels back."""

    @staticmethod
    def forward(ctx, rows, sent, received):
        ctx.splits = received, sent
        return all_to_all(rows, sent, received)

    @staticmethod
    def backward(ctx, gradient):
        return all_to_all(gradient, *ctx.splits), None, None


def all_to_all(rows, sent, received):
    out = rows.new_empty(sum(received), *rows.shape[1:])
    dist.all_to_all_single(out, rows.contiguous(), received, sent)
    return out


class SecondStream:
    """Where rows travel while others are multiplied. On a CPU there is one stream, and all of this does nothing."""

    def __init__(self, used):
        self.stream = torch.cuda.Stream(priority=-1) if used and ON_GPU else None  # before the blocks of products

    def exchange(self, rows, sent, received):
        """The exchanged rows, and the event for which `arrived` waits."""
        if self.stream is None:
            return Exchange.apply(rows, sent, received), None
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            rows.record_stream(self.stream)
            return Exchange.apply(rows, sent, received), self.stream.record_event()

    def arrived(self, rows, event):
        """The rows, once they are there: later ones may still be on their way."""
        if event is not None:
            torch.cuda.current_stream().wait_event(event)
            rows.record_stream(torch.cuda.current_stream())
        return rows


class Travel(NamedTuple):
    """Of a part of the tokens: the rows that leave, sorted by expert, and their routes; how many come from each rank
    for each local expert, and where those of each end; how many go to and come from each rank."""

    rows: torch.Tensor
    routes: Routes
    counts: list[list[int]]
    ends: torch.Tensor
    sent: list[int]
    received: list[int]


class ExpertParallel(nn.Module):
    """(tokens, width) of this rank to the same. Rank r holds experts r·E/R … of E; all hold the router.

    `grouped(rows, weights, ends)` multiplies the rows of each local expert by its weights.
    """

    def __init__(self, experts, chosen, width, hidden, grouped):
        super().__init__()
        self.ranks, self.chosen, self.grouped = dist.get_world_size(), chosen, grouped
        self.local = experts // self.ranks
        self.router = Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.empty(self.local, width, hidden))
        self.down = nn.Parameter(torch.empty(self.local, hidden, width))

    def forward(self, tokens, parts=1):
        """The tokens of a part travel on a second stream while those of another are multiplied, where there are any."""
        stream = SecondStream(used=parts > 1)
        travels = self.plan(tokens.chunk(parts))
        arriving = [stream.exchange(t.rows, t.sent, t.received) for t in travels]
        back = []
        for rows, t in zip(arriving, travels, strict=True):
            done = self.multiply(stream.arrived(*rows), t.counts, t.ends)
            back.append(stream.exchange(done, t.received, t.sent))
        return torch.cat([combine(stream.arrived(*rows), t.routes) for rows, t in zip(back, travels, strict=True)])

    def plan(self, parts):
        """The travel of each part; the host waits once, for how many rows go where."""
        routes = [route(self.router(tokens), self.chosen) for tokens in parts]
        ends = torch.stack([each.ends for each in routes])
        counts = ends.diff(prepend=ends.new_zeros(len(parts), 1))
        leaving = counts.view(len(parts), self.ranks, self.local).transpose(0, 1).contiguous()
        incoming = torch.empty_like(leaving)
        dist.all_to_all_single(incoming, leaving)
        ends = incoming.sum(0).cumsum(1).to(torch.int32)
        leaving, incoming = torch.stack([leaving, incoming]).transpose(1, 2).tolist()
        rows = [tokens[each.source] for tokens, each in zip(parts, routes, strict=True)]
        sent, received = ([[sum(of_rank) for of_rank in part] for part in each] for each in (leaving, incoming))
        return [Travel(*each) for each in zip(rows, routes, incoming, ends.unbind(), sent, received, strict=True)]

    def multiply(self, rows, counts, ends):
        """The rows through their experts: they come sorted by rank, and are multiplied sorted by expert."""
        by_rank = list(product(range(self.ranks), range(self.local)))
        by_expert = sorted(by_rank, key=lambda pair: pair[1])
        rows = reordered(rows, counts, by_rank, by_expert)
        hidden = nn.functional.silu(self.grouped(rows, self.up, ends))
        return reordered(self.grouped(hidden, self.down, ends), counts, by_expert, by_rank)


def reordered(rows, counts, order, wanted):
    """Blocks of rows, counts[rank][expert] of them each, from one order of (rank, expert) to another."""
    blocks = dict(zip(order, rows.split([counts[rank][expert] for rank, expert in order]), strict=True))
    return torch.cat([blocks[pair] for pair in wanted])


def by_torch(rows, weights, ends):
    """What `grouped_gemm_ragged` is measured against."""
    return torch._grouped_mm(rows, weights, offs=ends)


def layer(weights, device, grouped=grouped_gemm_ragged, hidden=HIDDEN):
    """The layer with its share of the weights of all experts."""
    model = ExpertParallel(EXPERTS, CHOSEN, WIDTH, hidden, grouped).to(device, DTYPE)
    router, *of_experts = weights
    model.router.weight.data.copy_(router)
    for parameter, weight in zip((model.up, model.down), of_experts, strict=True):
        parameter.data.copy_(weight.chunk(model.ranks)[dist.get_rank()])
    return model


def random_weights(generator, hidden=HIDDEN):
    """Of the router and of the two layers of all experts, in float64."""
    shapes = (EXPERTS, WIDTH), (EXPERTS, WIDTH, hidden), (EXPERTS, hidden, WIDTH)
    scales = 0.3, WIDTH**-0.5, hidden**-0.5
    return [
        (torch.randn(shape, generator=generator) * scale).to(DTYPE) for shape, scale in zip(shapes, scales, strict=True)
    ]


def decided(tokens, router):
    """Tokens whose experts are clearly the best, so that rounded scores choose as exact ones do."""
    scores = tokens.double() @ router.double().t()
    best = scores.topk(CHOSEN + 1).values
    return tokens[best[:, -2] - best[:, -1] > 0.02 * scores.abs().max()][:TOKENS]


def reference(weights, tokens, gradient):
    """The result and the gradients of tokens and weights, on one device, in float64."""
    router, up, down, tokens = (each.double().requires_grad_() for each in (*weights, tokens))
    scores, chosen = (tokens @ router.t()).softmax(-1).topk(CHOSEN)
    scores = scores / scores.sum(-1, keepdim=True)
    out = torch.zeros_like(tokens)
    for expert in range(EXPERTS):
        token, choice = (chosen == expert).nonzero(as_tuple=True)
        rows = nn.functional.silu(tokens[token] @ up[expert]) @ down[expert]
        out = out.index_add(0, token, rows * scores[token, choice, None])
    out.backward(gradient.double())
    return [each.detach().cpu().numpy() for each in (out, tokens.grad, router.grad, up.grad, down.grad)]


def results(weights, tokens, gradient, parts):
    """The same by all ranks, each with its share of tokens and experts."""
    ranks, rank = dist.get_world_size(), dist.get_rank()
    model, share = layer(weights, tokens.device), tokens.chunk(ranks)[rank].clone().requires_grad_()
    out = model(share, parts)
    out.backward(gradient.chunk(ranks)[rank])
    dist.all_reduce(model.router.weight.grad)
    of_tokens, of_up, of_down = (gathered(each) for each in (share.grad, model.up.grad, model.down.grad))
    return [gathered(out.detach()), of_tokens, model.router.weight.grad, of_up, of_down]


def gathered(share):
    """The shares of all ranks, one behind the other."""
    shares = [torch.empty_like(share) for _ in range(dist.get_world_size())]
    dist.all_gather(shares, share.contiguous())
    return torch.cat(shares)


def compare(device):
    """The layer on all ranks, with tokens that travel in one part and in two, against the reference."""
    generator, ranks = torch.Generator().manual_seed(20), dist.get_world_size()
    weights = [weight.to(device) for weight in random_weights(generator)]
    tokens = decided(torch.randn(2 * TOKENS, WIDTH, generator=generator).to(device, DTYPE), weights[0])
    gradient = torch.randn(TOKENS, WIDTH, generator=generator).to(device, DTYPE)
    exact = reference(weights, tokens, gradient)
    names = "output", "gradient of the tokens", "of the router", "of the first layer", "of the second layer"
    for parts in (1, 2):
        for name, result, expected in zip(names, results(weights, tokens, gradient, parts), exact, strict=True):
            if dist.get_rank() == 0:
                title = f"{name}, {ranks} rank{'s' * (ranks > 1)}, {parts} part{'s' * (parts > 1)}"
                check(title, result.float(), expected, tolerance=(0.02 if ON_GPU else 0.004) * abs(expected).max())


def milliseconds(step, times=20):
    """Of one step, of which all ranks begin the first one together."""
    for _ in range(3):
        step()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    dist.barrier()
    begin.record()
    for _ in range(times):
        step()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / times


def bench(device):
    """Tokens a second of all ranks, beside the same layer by torch's grouped product."""
    for hidden in (HIDDEN, NARROW):
        if dist.get_rank() == 0:
            print(f"    {TOKENS} tokens of {WIDTH} a rank, {EXPERTS} experts of {hidden}:")
        bench_layer(device, hidden)


def bench_layer(device, hidden):
    generator, ranks = torch.Generator().manual_seed(20), dist.get_world_size()
    weights = random_weights(generator, hidden)
    tokens = torch.randn(TOKENS, WIDTH, generator=generator).to(device, DTYPE).requires_grad_()
    for name, grouped in (("ptxdsl", grouped_gemm_ragged), ("torch._grouped_mm", by_torch)):
        model = layer(weights, device, grouped, hidden)
        for parts in (1, 2, 4):
            with torch.no_grad():
                forward = milliseconds(lambda: model(tokens, parts))  # noqa: B023
            both = milliseconds(lambda: model(tokens, parts).sum().backward())  # noqa: B023
            if dist.get_rank() == 0:
                rates = (f"{TOKENS * ranks / each / 1e3:.2f}" for each in (forward, both))
                print(
                    "    {:18} {} parts: {} forward, {} with backward, million tokens a second".format(
                        name, parts, *rates
                    )
                )


def main():
    if ON_GPU and torch.cuda.device_count() < int(os.environ.get("LOCAL_WORLD_SIZE", "1")):
        sys.exit(
            f"{os.environ.get('LOCAL_WORLD_SIZE', '1')} ranks need as many GPUs, NCCL takes one each; this machine "
            f"has {torch.cuda.device_count()}\n  help: start fewer, or leave out --device cuda: gloo and the emulator"
        )
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if ON_GPU else torch.device("cpu")
    alone = {} if "WORLD_SIZE" in os.environ else {"store": dist.HashStore(), "rank": 0, "world_size": 1}
    if ON_GPU:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if ON_GPU else "gloo", device_id=device if ON_GPU else None, **alone)
    try:
        bench(device) if BENCH else compare(device)
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
