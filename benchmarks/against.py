"""Another version of ptxdsl as a contender in the same run, in a process of its own on the same GPU.

One process cannot import two packages of the same name. A benchmark therefore starts itself again with `--serve`, once
for each checkout, with that checkout first on the path. The child makes the arrays of a case and times its rounds and
turns on command, with its own events. Only one process at a time uses the GPU. Both versions run in a child, so the
cost of switching processes is the same for all.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from protocols import Contender, Gpu, Local, Run

Case = tuple[Any, ...]  # numbers, texts and tuples of these
Make = Callable[[Case], dict[str, Run]]


class Tree:
    """A child process with the ptxdsl of another directory."""

    def __init__(self, directory: pathlib.Path, script: pathlib.Path) -> None:
        self.directory = directory.resolve()
        if not (self.directory / "ptxdsl" / "__init__.py").is_file():
            raise SystemExit(f"--against {directory}: there is no folder ptxdsl in it; name the root of a checkout")
        path = os.pathsep.join(filter(None, [str(self.directory), os.environ.get("PYTHONPATH")]))
        answers, answers_of_child = os.pipe()
        self._answers = os.fdopen(answers)
        self._process = subprocess.Popen(
            [sys.executable, str(script), "--serve", str(answers_of_child)],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            pass_fds=[answers_of_child],  # not stdout, which libraries print to
            bufsize=0,
        )
        os.close(answers_of_child)
        self._requests = cast(BinaryIO, self._process.stdin)

    def check_origin(self) -> None:
        """Wait until the process has started. Raises SystemExit if it imported the ptxdsl of another directory."""
        origin = pathlib.Path(self.ask("origin")).resolve()
        if self.directory not in origin.parents:
            raise SystemExit(f"--against {self.directory}: that process imported {origin}")

    def ask(self, command: str, *arguments: object) -> Any:
        """Send a request and return the child's answer; an error of the child is raised here."""
        with contextlib.suppress(BrokenPipeError):  # the answer says so
            self._requests.write(json.dumps([command, *arguments]).encode() + b"\n")
        answer = json.loads(self._answers.readline() or '{"error": "it ended"}')
        if "error" in answer:
            raise RuntimeError(f"in the process of {self.directory}: {answer['error']}")
        return answer["result"]

    def contenders(self, case: Case) -> dict[str, Contender]:
        """Return the names of the contenders of a case in the child; the previous case is freed."""
        return {name: Remote(self, name) for name in self.ask("make", case)}

    def close(self) -> None:
        """End the process."""
        self._requests.close()
        self._process.wait()
        self._answers.close()


@dataclass(frozen=True)
class Remote:
    """A contender in a child process."""

    tree: Tree
    name: str

    def single_ms(self) -> float:
        return float(self.tree.ask("single", self.name))

    def slice_ms(self, launches: int) -> float:
        return float(self.tree.ask("slice", self.name, launches))

    def host_us(self, launches: int) -> float:
        return float(self.tree.ask("host", self.name, launches))


class Server:
    """The child's side."""

    def __init__(self, gpu: Gpu, make: Make, origin: str, wait_cycles: int = 0) -> None:
        self._gpu, self._make, self._origin, self._wait_cycles = gpu, make, origin, wait_cycles
        self._contenders: dict[str, Local] = {}

    def answer(self, line: str) -> dict[str, object]:
        """Answer a line that Tree.ask() wrote."""
        command, *arguments = json.loads(line)
        try:
            return {"result": getattr(self, f"_answer_{command}")(*arguments)}
        except Exception:
            return {"error": traceback.format_exc()}

    def _answer_origin(self) -> str:
        return self._origin

    def _answer_make(self, case: list[Any]) -> list[str]:
        self._contenders.clear()  # frees its arrays
        runs = self._make(_tuples(case))
        self._contenders = {name: Local(self._gpu, run, self._wait_cycles) for name, run in runs.items()}
        return list(runs)

    def _answer_single(self, name: str) -> float:
        return self._contenders[name].single_ms()

    def _answer_slice(self, name: str, launches: int) -> float:
        return self._contenders[name].slice_ms(launches)

    def _answer_host(self, name: str, launches: int) -> float:
        return self._contenders[name].host_us(launches)


def serve(server: Server, answers_fd: int) -> None:
    """Answer until the parent closes stdin."""
    with os.fdopen(answers_fd, "w") as answers:
        for line in sys.stdin:
            print(json.dumps(server.answer(line)), file=answers, flush=True)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
