"""A mixture of experts over several GPUs: each rank holds some of the experts, and tokens are exchanged between ranks.

    python examples/20_expert_parallel.py                                             # one rank, on the emulator
    torchrun --nproc_per_node=4 examples/20_expert_parallel.py                        # four: gloo and emulators
    torchrun --nproc_per_node=2 examples/20_expert_parallel.py --device cuda [--bench]    # NCCL and two GPUs
    torchrun --nproc_per_node=4 examples/20_expert_parallel.py --device cuda --ranks-per-gpu=2    # gloo and two GPUs

Each rank routes its tokens and sorts them by expert. The rows of remote experts are sent to their ranks (dispatch),
multiplied there by grouped_gemm_ragged, and sent back (combine); their gradients take the same way. Communication
overlaps with computation: during the dispatch a rank multiplies its local rows, and during the combine of the backward
pass it computes the gradients of the weights. The result of 1, 2 and 4 ranks is compared with the layer on one device
in float64. NCCL allows one rank per GPU; ranks that share a GPU use gloo, which copies rows through host memory.

New here: ptxdsl.torch under torch.distributed, where NCCL uses a stream of its own next to the stream of the products.
"""

import os
import sys
from functools import reduce
from typing import NamedTuple

import torch
import torch.distributed as dist
from arrays import ON_GPU, check
from torch import nn

from ptxdsl.kernels.ragged import grouped_gemm_ragged
from ptxdsl.kernels.ragged_k import grouped_gemm_ragged_k
from ptxdsl.torch import Linear, combine, dispatch, route

BENCH = "--bench" in sys.argv
EXPERTS, CHOSEN = 8, 2
TOKENS, WIDTH, HIDDEN = (16384, 2048, 4096) if BENCH else (4096, 512, 256) if ON_GPU else (48, 16, 24)
MANY, NARROW = 65536, 1024  # in place of TOKENS and HIDDEN: the exchange then takes as long as the products
OVERLAP = {False: "without overlap", True: "with overlap"}
RANKS_PER_GPU = next((int(word.partition("=")[2]) for word in sys.argv if word.startswith("--ranks-per-gpu=")), 1)
BY_NCCL = ON_GPU and RANKS_PER_GPU == 1
DTYPE = torch.bfloat16 if ON_GPU else torch.float32  # float32 is multiplied as tf32


class PtxdslProducts:
    """Grouped products by ptxdsl; `ends` holds the end of each group's rows.

    `rows` multiplies (rows, K) by (groups, K, N); `along` multiplies (rows, M) by (rows, N) to (groups, M, N).
    """

    @staticmethod
    def rows(x, weights, ends, out=None):
        return grouped_gemm_ragged(x, weights, ends, out=out)

    @staticmethod
    def along(x, y, ends):
        return grouped_gemm_ragged_k(x, y, ends)


class TorchProducts:
    """Grouped products by torch, as the baseline."""

    @staticmethod
    def rows(x, weights, ends, out=None):
        product = torch._grouped_mm(x, weights, offs=ends)
        return product if out is None else out.copy_(product)

    @staticmethod
    def along(x, y, ends):
        return torch._grouped_mm(x.t(), y, offs=ends)


class Exchange:
    """The exchange of rows between ranks: a rank's rows, sorted by expert, go to the ranks of their experts."""

    def __init__(self, ends, overlap):
        """Exchange `ends`, the int32 end of each expert's rows, on the device. The host reads the counts in `wait`."""
        self.ranks, self.rank, self.overlap = dist.get_world_size(), dist.get_rank(), overlap
        local = len(ends) // self.ranks
        first = self.rank * local
        sent = on_the_wire(ends.expand(self.ranks, -1))
        received = torch.empty_like(sent)
        dist.all_to_all_single(received, sent)
        every = received.to(ends.device)
        to_here = every[:, first : first + local]
        self.ends = to_here - every[:, first - 1, None] if first else to_here.contiguous()
        last = every[:, local - 1 :: local]
        self.last = torch.empty(last.shape, dtype=last.dtype, pin_memory=ON_GPU).copy_(last, non_blocking=True)
        self.copied = torch.cuda.current_stream().record_event() if ON_GPU else None

    def wait(self):
        """Wait on the host, once, for the number of rows that each rank sends to each rank."""
        if self.copied is not None:
            self.copied.synchronize()
        counts = self.last.diff(prepend=self.last.new_zeros(self.ranks, 1)).tolist()
        self.sent, self.received = counts[self.rank], [of_rank[self.rank] for of_rank in counts]

    def through(self, rows, first, second, meanwhile):
        """Send rows to the ranks of their experts, apply two layers there, and send the results back.

        `first(origin, x)` returns the input of `second(origin, y, out)`, which writes to `out` if it is given, and
        returns its result. During the dispatch this rank applies the first layer to its local rows; during the combine,
        the second layer and `meanwhile`.
        """
        done, others = torch.empty_like(rows), list(self.received)
        others[self.rank] = 0
        leaving, returned = rows.split(self.sent), done.split(self.sent)
        coming = rows.new_empty(sum(others), rows.shape[1]).split(others)
        in_flight = self.start(leaving, coming)
        staying = first(self.rank, leaving[self.rank])
        arrived(in_flight)
        results = [second(rank, first(rank, x), None) if len(x) else x for rank, x in enumerate(coming)]
        in_flight = self.start(results, returned)
        second(self.rank, staying, returned[self.rank])
        meanwhile()
        arrived(in_flight)
        return done

    def start(self, leaving, coming):
        """Start to send `leaving`, a tensor of rows per rank, and to receive `coming`, except for this rank's rows.

        Without overlap, wait for both.
        """
        others = [rank for rank in range(self.ranks) if rank != self.rank]
        sent = {rank: on_the_wire(leaving[rank]) for rank in others if len(leaving[rank])}
        received = {rank: on_the_wire(coming[rank]) for rank in others if len(coming[rank])}
        operations = [dist.P2POp(dist.isend, rows, rank) for rank, rows in sent.items()]
        operations += [dist.P2POp(dist.irecv, rows, rank) for rank, rows in received.items()]
        works = dist.batch_isend_irecv(operations) if operations else []
        works += [Unloading(rows, coming[rank]) for rank, rows in received.items() if rows is not coming[rank]]
        if not self.overlap:
            arrived(works)
        return works


def arrived(works):
    """Order later launches after the transfers in `works`, and empty the list. With gloo, wait on the host."""
    while works:
        works.pop(0).wait()


def on_the_wire(tensor):
    """Return a contiguous tensor for the exchange: the tensor itself, or a host copy if ranks share a GPU."""
    return tensor.contiguous() if RANKS_PER_GPU == 1 else tensor.to("cpu", copy=True).contiguous()


class Unloading(NamedTuple):
    """The copy of received rows from host memory, which follows the transfers."""

    received: torch.Tensor
    rows: torch.Tensor

    def wait(self):
        self.rows.copy_(self.received)


class ThroughExperts(torch.autograd.Function):
    """Two layers on rows sorted by expert; each rank holds the weights of its experts."""

    @staticmethod
    def forward(ctx, rows, up, down, exchange, products):
        kept = {}  # by rank of origin: the rows, the hidden layer and its activation

        def first(origin, x):
            return x, products.rows(x, up, exchange.ends[origin])

        def second(origin, layer, out):
            x, hidden = layer
            kept[origin] = x, hidden, nn.functional.silu(hidden)
            return products.rows(kept[origin][-1], down, exchange.ends[origin], out)

        done = exchange.through(rows, first, second, lambda: None)
        ctx.exchange, ctx.products, ctx.origins = exchange, products, list(kept)
        ctx.save_for_backward(up, down, *(tensor for of_origin in kept.values() for tensor in of_origin))
        return done

    @staticmethod
    def backward(ctx, gradient):
        up, down, *saved = ctx.saved_tensors
        kept = {origin: saved[3 * n : 3 * n + 3] for n, origin in enumerate(ctx.origins)}
        exchange, products, of_up, of_down = ctx.exchange, ctx.products, [], []

        def second(origin, of_done):
            return of_done, products.rows(of_done, down.mT, exchange.ends[origin])

        def first(origin, layer, out):
            of_done, of_active = layer
            of_hidden = torch.ops.aten.silu_backward(of_active, kept[origin][1])
            gradients[origin] = of_done, of_hidden
            return products.rows(of_hidden, up.mT, exchange.ends[origin], out)

        def of_weights():
            for origin, (of_done, of_hidden) in gradients.items():
                x, _, active = kept[origin]
                of_down.append(products.along(active, of_done, exchange.ends[origin]))
                of_up.append(products.along(x, of_hidden, exchange.ends[origin]))

        gradients = {}
        of_rows = exchange.through(gradient.contiguous(), second, first, of_weights)
        return of_rows, *(reduce(torch.Tensor.add_, each) for each in (of_up, of_down)), None, None


class ExpertParallel(nn.Module):
    """Map (tokens, width) of this rank to the same shape. Rank r holds experts r·E/R … of E; every rank holds the
    router.
    """

    def __init__(self, experts, chosen, width, hidden, products):
        super().__init__()
        self.chosen, self.products, local = chosen, products, experts // dist.get_world_size()
        self.router = Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.empty(local, width, hidden))
        self.down = nn.Parameter(torch.empty(local, hidden, width))

    def forward(self, tokens, overlap=True):
        routes = route(self.router(tokens), self.chosen)
        exchange = Exchange(routes.ends, overlap)
        rows = dispatch(tokens, routes)
        exchange.wait()
        return combine(ThroughExperts.apply(rows, self.up, self.down, exchange, self.products), routes)


def layer(weights, device, products: type[PtxdslProducts | TorchProducts] = PtxdslProducts, hidden=HIDDEN):
    """Return the layer of this rank, with its share of the weights of all experts."""
    model = ExpertParallel(EXPERTS, CHOSEN, WIDTH, hidden, products).to(device, DTYPE)
    router, *of_experts = weights
    model.router.weight.data.copy_(router)
    for parameter, weight in zip((model.up, model.down), of_experts, strict=True):
        parameter.data.copy_(weight.chunk(dist.get_world_size())[dist.get_rank()])
    return model


def random_weights(generator, hidden=HIDDEN):
    """Return random weights of the router and of both layers of all experts."""
    shapes = (EXPERTS, WIDTH), (EXPERTS, WIDTH, hidden), (EXPERTS, hidden, WIDTH)
    scales = 0.3, WIDTH**-0.5, hidden**-0.5
    return [
        (torch.randn(shape, generator=generator, device=generator.device) * scale).to(DTYPE)
        for shape, scale in zip(shapes, scales, strict=True)
    ]


def decided(tokens, router):
    """Return tokens whose best experts lead by a margin, so that rounding the scores does not change the choice."""
    scores = tokens.double() @ router.double().t()
    best = scores.topk(CHOSEN + 1).values
    return tokens[best[:, -2] - best[:, -1] > 0.02 * scores.abs().max()][:TOKENS]


def reference(weights, tokens, gradient):
    """Compute the result and the gradients of the tokens and weights on one device in float64."""
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


def results(weights, tokens, gradient, overlap):
    """Compute the result and the gradients on all ranks, each with its share of tokens and experts."""
    ranks, rank = dist.get_world_size(), dist.get_rank()
    model, share = layer(weights, tokens.device), tokens.chunk(ranks)[rank].clone().requires_grad_()
    out = model(share, overlap)
    out.backward(gradient.chunk(ranks)[rank])
    of_router = on_the_wire(model.router.weight.grad)
    dist.all_reduce(of_router)
    of_tokens, of_up, of_down = (gathered(each) for each in (share.grad, model.up.grad, model.down.grad))
    return [gathered(out.detach()), of_tokens, of_router, of_up, of_down]


def gathered(share):
    """Concatenate the shares of all ranks."""
    share = on_the_wire(share)
    shares = [torch.empty_like(share) for _ in range(dist.get_world_size())]
    dist.all_gather(shares, share)
    return torch.cat(shares)


def compare(device):
    """Compare the layer on all ranks with the reference, without and with overlap."""
    generator, ranks = torch.Generator().manual_seed(20), dist.get_world_size()
    weights = [weight.to(device) for weight in random_weights(generator)]
    tokens = decided(torch.randn(2 * TOKENS, WIDTH, generator=generator).to(device, DTYPE), weights[0])
    gradient = torch.randn(TOKENS, WIDTH, generator=generator).to(device, DTYPE)
    exact = reference(weights, tokens, gradient)
    names = "output", "gradient of the tokens", "gradient of the router", "gradient of layer 1", "gradient of layer 2"
    for overlap in (False, True):
        for name, result, expected in zip(names, results(weights, tokens, gradient, overlap), exact, strict=True):
            if dist.get_rank() == 0:
                title = f"{name}, {ranks} rank{'s' * (ranks > 1)}, {'with' if overlap else 'without'} overlap"
                check(title, result.float(), expected, tolerance=(0.02 if ON_GPU else 0.004) * abs(expected).max())


def milliseconds(step, times=20):
    """Return the mean milliseconds of a step; all ranks start together."""
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
    """Print the tokens per second of all ranks, for ptxdsl and for torch's grouped product."""
    for tokens, hidden in ((TOKENS, HIDDEN), (MANY, HIDDEN), (TOKENS, NARROW)):
        if dist.get_rank() == 0:
            print(f"    {tokens} tokens of {WIDTH} a rank, {EXPERTS} experts of {hidden}:")
        bench_layer(device, tokens, hidden)


def bench_layer(device, count, hidden):
    generator, ranks = torch.Generator(device).manual_seed(20), dist.get_world_size()
    weights = random_weights(generator, hidden)
    tokens = torch.randn(count, WIDTH, device=device, dtype=DTYPE).requires_grad_()
    gradient = torch.randn(count, WIDTH, device=device, dtype=DTYPE)
    for name, products in (("ptxdsl", PtxdslProducts), ("torch._grouped_mm", TorchProducts)):
        model = layer(weights, device, products, hidden)
        for overlap in (False, True):
            with torch.no_grad():
                forward = milliseconds(lambda: model(tokens, overlap))  # noqa: B023
            both = milliseconds(lambda: model(tokens, overlap).backward(gradient))  # noqa: B023
            if dist.get_rank() == 0:
                rates = " forward, ".join(f"{count * ranks / each / 1e3:.2f}" for each in (forward, both))
                print(
                    f"    {name:18} {OVERLAP[overlap]}: {rates} with backward, million tokens a second",
                    flush=True,
                )


def refuse(ranks):
    """Exit with a message if the program cannot run as requested with `ranks` ranks on this machine."""
    every = int(os.environ.get("WORLD_SIZE", "1"))
    if EXPERTS % every:
        sys.exit(f"{every} ranks cannot share {EXPERTS} experts evenly\n  help: start 1, 2, 4 or 8")
    if RANKS_PER_GPU < 1:
        sys.exit(f"--ranks-per-gpu={RANKS_PER_GPU}\n  help: pass a number of 1 or more")
    if BENCH and not ON_GPU:
        sys.exit("--bench needs GPUs\n  help: add --device cuda, or leave out --bench")
    if ON_GPU and torch.cuda.device_count() * RANKS_PER_GPU < ranks:
        sys.exit(
            f"{ranks} ranks need {-(-ranks // RANKS_PER_GPU)} GPUs, with {RANKS_PER_GPU} on each; this machine has "
            f"{torch.cuda.device_count()}\n  help: start fewer, let some share a GPU with --ranks-per-gpu=2 (gloo "
            "instead of NCCL), or leave out --device cuda: gloo and the emulator"
        )


def main():
    local_rank, ranks = (
        int(os.environ.get(name, default)) for name, default in (("LOCAL_RANK", 0), ("LOCAL_WORLD_SIZE", 1))
    )
    refuse(ranks)
    device = torch.device("cuda", local_rank // RANKS_PER_GPU) if ON_GPU else torch.device("cpu")
    options = {} if "WORLD_SIZE" in os.environ else {"store": dist.HashStore(), "rank": 0, "world_size": 1}
    if ON_GPU:
        torch.cuda.set_device(device)
    if BY_NCCL:
        before_products = dist.ProcessGroupNCCL.Options(is_high_priority_stream=True)
        options |= {"device_id": device, "pg_options": before_products}
    dist.init_process_group("nccl" if BY_NCCL else "gloo", **options)
    try:
        bench(device) if BENCH else compare(device)
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
