"""`python -m tests.random_calls SEED COUNT [--machine gpu] [--arch sm_80]` makes so many calls, and prints
a line for each that goes wrong."""

from __future__ import annotations

import argparse
import collections
import time
import traceback

from ptxdsl import config
from tests.random_calls import workers
from tests.random_calls.call import OnEmulator, OnGpu
from tests.random_calls.drawing import SMALL
from tests.random_calls.many import drawn, tried


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--machine", choices=["emulator", "gpu"], default="emulator")
    parser.add_argument("--most", type=int, default=SMALL, help="of a size, such as 700 on a GPU")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--processes", type=int, default=0, help="on a GPU, with time limits for each call")
    parser.add_argument("--variant", type=int, default=0, help="other sizes and numbers")
    options = parser.parse_args()
    if options.processes:
        return workers.run(options.seed, options.count, options.processes, options.seconds) > 0
    began, wrong, refusals = time.monotonic(), 0, collections.Counter[str]()
    machine = OnEmulator if options.machine == "emulator" else OnGpu
    for seed in range(options.seed, options.seed + options.count):
        if time.monotonic() - began > options.seconds:
            break
        call, start = drawn(seed, options.arch, options.most, options.variant), time.monotonic()
        try:
            with config.using(arch=options.arch, schedule=f"random:{seed}" if seed % 3 else "lockstep"):
                (outcome,) = tried([call], machine, 2)
            refusals[outcome.refusal.partition("\n")[0]] += 1
            said = outcome.refusal.partition("\n")[0]
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            wrong += 1
            said = f"WRONG {type(error).__name__}: {error}"
            if not isinstance(error, AssertionError):
                said += "\n" + "".join(traceback.format_exception(error)[-3:])
        if options.verbose or said.startswith("WRONG"):
            print(f"{seed} {time.monotonic() - start:.2f}s {call}\n    {said}", flush=True)
    for refusal, count in refusals.most_common(400):
        print(f"{count:5} {refusal[:220] or 'as it should be'}")
    print(f"{wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    raise SystemExit(main())
