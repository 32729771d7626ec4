"""One random call by its seed, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ptxdsl.errors import AssembleError, EmulationError, LaunchError, ScheduleError
from tests.random_calls.call import Call, OnEmulator, OnGpu, Placed, Wrong
from tests.random_calls.convolutions import draw_convolution, draw_filter_gradient, draw_image_gradient
from tests.random_calls.drawing import SMALL, Draw
from tests.random_calls.groups import (
    draw_grouped,
    draw_masked,
    draw_ragged,
    draw_ragged_k,
    draw_scaled,
    draw_scaled_ragged_k,
)
from tests.random_calls.products import draw_list, draw_product

Drawing = Callable[[Draw], Call]
Tell = Callable[[Call | None], None]
Machine = Callable[[], OnEmulator]
EVERYWHERE: dict[Drawing, float] = {
    **{draw_product: 10, draw_list: 2, draw_grouped: 3, draw_ragged: 4, draw_masked: 2, draw_ragged_k: 2},
    draw_convolution: 4,
}
HOPPER: dict[Drawing, float] = {
    **{draw_scaled: 3, draw_image_gradient: 2, draw_filter_gradient: 2},
    draw_scaled_ragged_k: 2,
}


def silent(call: Call | None) -> None:
    """Tells nobody that a call begins, or with None that all have been launched."""


class Outcome(NamedTuple):
    """`refusal` is what was said where nothing ran."""

    call: Call
    refusal: str = ""
    stored: Sequence[np.ndarray] = ()


def drawn(seed: int, arch: str, most: int = SMALL, variant: int = 0) -> Call:
    """The call of a seed. `variant` is for another one of the same kernel."""
    draw = Draw(seed, arch, most, variant)
    call = draw.weighted(EVERYWHERE | (HOPPER if arch == "sm_90a" else {}))(draw)
    call.notes = f"{call.notes} (seed {seed} of {arch}, sizes to {most}, variant {variant})"
    return call


def tried(
    calls: Sequence[Call], machine: Machine, times: int = 1, tell: Tell = silent, graph: bool = False
) -> list[Outcome]:
    """Makes all calls so many times, with arrays at other addresses, one after another without a wait between them;
    then again with the last arrays, where that gives the same, and as a `graph` of a GPU. `tell` is told of each before
    it begins. Raises Wrong where numbers are, or differ from time to time."""
    rounds = [[Placed(call, machine()) for call in calls] for _ in range(times)]
    refusals = [[_refusal(each, tell) for each in placed] for placed in rounds]
    if times > 1:
        last = zip(rounds[-1], refusals[-1], strict=True)
        refusals.append([_refusal(each, tell) if each.call.is_repeatable else said for each, said in last])
    tell(None)
    there = machine()
    there.finish()
    if graph and isinstance(there, OnGpu):
        _replay(there, rounds[-1], refusals[-1])
    return [
        _outcome(call, [*runs], [*said])
        for call, runs, said in zip(calls, zip(*rounds, strict=True), zip(*refusals, strict=True), strict=True)
    ]


def _replay(machine: OnGpu, calls: Sequence[Placed], refusals: Sequence[str]) -> None:
    """Makes calls that were not refused once more, as a graph, with arrays as they were at first."""
    accepted = [each for each, refusal in zip(calls, refusals, strict=True) if not refusal and each.call.outputs]
    for each in accepted:
        each.machine.restore(each.call.outputs)
    machine.replay([each.launch for each in accepted])
    machine.finish()


def _refusal(placed: Placed, tell: Tell) -> str:
    tell(placed.call)
    try:
        placed.launch()
    except (LaunchError, ScheduleError, AssembleError) as refusal:
        return f"{type(refusal).__name__}: {refusal}"
    except EmulationError as error:
        raise Wrong(f"{placed.call}\n    {error}") from error
    return ""


def _outcome(call: Call, runs: list[Placed], refusals: list[str]) -> Outcome:
    try:
        if len({refusal[:20] for refusal in refusals}) > 1:  # addresses in their texts differ
            raise Wrong(f"refused once of several times: {refusals}")
        if refusals[0]:
            return Outcome(call, refusals[0])
        first, *others = [placed.judged() for placed in runs]
        for other in others:
            for number, (one, another) in enumerate(zip(first, other, strict=True)):
                if one.tobytes() != another.tobytes():
                    raise Wrong(f"output {number} differs from run to run")
    except Wrong as wrong:
        raise Wrong(f"{call}\n    {wrong}") from None
    return Outcome(call, "", first)
