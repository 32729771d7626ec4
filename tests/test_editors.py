"""What editors, type checkers and `help` learn of `pd.ptx`: the same that the table says."""

import inspect
import json
import os
import pydoc
import random
import re
import shutil
import subprocess
import sys

import pytest

import ptxdsl as pd
from ptxdsl.isa.opcode import Op
from ptxdsl.isa.spelling import following, spellings
from tests.stubs import STUB, stub

FUNCTIONS = """
from typing import Annotated
import ptxdsl as pd
from ptxdsl import b64, f32, ptr, u32
from ptxdsl.layout import make_tiled_copy, tile_layout

COPY = make_tiled_copy("cp.async.bulk.tensor.shared.global", tile_layout(4, 32, 32), bits=32)

@pd.function
def gcd(a: u32, b: u32) -> u32:
    pd.return_(b == 0, value=a)
    return gcd(b, a % b)

@pd.function
def both(a: f32, p: ptr[f32]) -> tuple[f32, u32]:
    total = pd.var(f32, 0.0)
    total += pd.fma(a, a, p[0])
    return total, a.to(u32) + pd.tid.x

class Scale:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    @pd.kernel
    def run(self, x: Annotated[pd.MappedTensor, pd.TensorMap(f32, (4, 32))], y: ptr[f32]) -> None:
        COPY.copy(x, (0, 0), x.shared().address(0, 0), pd.shared(b64, 1).address())
        first, second = both(y[0], y)
        y[gcd(second, 3)] = pd.max(first, self.factor)

Scale(2.0).run[1, 32](None, None)
reveal_type(gcd(1, 2))
"""


@pytest.fixture(scope="module")
def cache(request):
    return request.config.cache.mkdir("mypy")


@pytest.fixture
def mypy(cache, tmp_path):
    """Runs mypy on a file of a user; the complaints, by line."""

    def check(text):
        file = tmp_path / "user.py"
        file.write_text(text)
        options = ["--strict", "--follow-imports=silent", "--cache-dir", str(cache), "--no-error-summary"]
        command = [sys.executable, "-m", "mypy", *options, file.name]
        environment = {**os.environ, "MYPYPATH": str(STUB.parents[2])}
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
        return [re.sub(r"^.*user\.py:", "", line) for line in done.stdout.splitlines()]

    return check


class TestUsersFile:
    def test_kernels_are_free_of_errors(self, mypy):
        assert (
            mypy(
                """
import numpy as np
import ptxdsl as pd
from ptxdsl import f32, ptr, u32

class Row(pd.Parameters):
    data: ptr[f32]
    stride: u32

@pd.kernel
def saxpy(x: ptr[f32], row: Row, a: f32, n: u32) -> None:
    i = pd.ctaid.x * pd.ntid.x + pd.tid.x
    tile, total, at = pd.shared(f32, 256), pd.var(f32, 0.0), pd.var(ptr[f32])
    with pd.if_(i < n):
        tile[pd.tid.x] = a * x[i] + row.data[i * row.stride]
        total += tile[0].to(u32).bitcast(f32)
        pd.ptx.st.global_.f32(x + i, total)

saxpy[(8,), (128,)](np.zeros(4), Row(data=np.zeros(4), stride=1), 2.0, 1000)
"""
            )
            == []
        )

    def test_functions_give_what_they_say_and_tensor_maps_are_annotated(self, mypy):
        assert mypy(FUNCTIONS) == ['31: note: Revealed type is "ptxdsl.trace.instruction.Scalar"']

    @pytest.mark.exhaustive
    def test_what_a_group_has_not_is_an_error(self, mypy):
        text = "import ptxdsl as pd\nclass Row(pd.Parameters):\n    n: pd.u32\nRow(n=1).m\n"
        assert mypy(text) == ['4: error: "Row" has no attribute "m"  [attr-defined]']

    def test_every_public_name_is_known_and_a_misspelt_one_is_an_error(self, mypy):
        names = [*pd.__all__, "layout", "schedule", "config", "types", "errors", "runtime"]
        lines = ["import ptxdsl as pd", *(f"pd.{name}" for name in names), "pd.tidx"]
        assert mypy("\n".join(lines)) == [
            f'{len(lines)}: error: Module has no attribute "tidx"; maybe "tid"?  [attr-defined]'
        ]


PYRIGHT = shutil.which("pyright") or shutil.which("basedpyright")


@pytest.fixture
def pyright(tmp_path):
    """The same by pyright: all that it says, as (line, first line of the message)."""
    if PYRIGHT is None:
        pytest.skip("pyright is not installed")

    def check(text):
        (tmp_path / "user.py").write_text(text)
        settings = {"extraPaths": [str(STUB.parents[2])], "typeCheckingMode": "standard"}
        (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
        command = [str(PYRIGHT), "--outputjson", "--pythonpath", sys.executable, "user.py"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        return [
            (d["range"]["start"]["line"] + 1, d["message"].partition("\n")[0])
            for d in json.loads(done.stdout)["generalDiagnostics"]
        ]

    return check


def test_pyright_takes_functions_and_tensor_maps(pyright):
    assert pyright(FUNCTIONS) == [(31, 'Type of "gcd(1, 2)" is "Scalar"')]


def test_pyright_finds_no_error_in_the_examples_with_tensor_maps(pyright):
    """The imports of its neighbours and of ml_dtypes cannot be resolved outside of their folder."""
    for name in ("09_tma_copy", "10_mbarrier_ring", "12_warp_specialised_gemm", "15_flash_attention"):
        errors = pyright((STUB.parents[2] / "examples" / f"{name}.py").read_text())
        assert [message for _, message in errors if not message.startswith("Import ")] == []


def test_pyright_says_the_same(pyright):
    assert pyright(
        """
import numpy as np
import ptxdsl as pd
from ptxdsl import f32, ptr, u32

@pd.autotune([{"tile": 64}], key=["n"], cost=lambda tile, n: n / tile)
@pd.kernel
def saxpy(x: ptr[f32], a: f32, n: u32, *, tile: int = 32) -> None:
    i = pd.ctaid.x * tile + pd.tid.x
    shared, total, at = pd.shared(f32, 256), pd.var(f32, 0.0), pd.var(ptr[f32])
    at.set(x + i)
    with pd.if_(i < n):
        shared[pd.tid.x] = a * x[i]
        total += shared[0].to(u32).bitcast(f32)
        pd.ptx.st.global_.f32(at, total)

saxpy[lambda tile: 100 // tile, lambda tile: tile](np.ones(100, np.float32), 2.0, 100)
with pd.debug(saxpy.kernel, 1, 32, np.zeros(4), 2.0) as launch:
    print(launch.resume().location, launch.warp("i")[:3], launch.shared("shared").values)
print(*pd.emulate(saxpy.kernel, 1, 32, np.zeros(4), trace=[3]).trace(3))
pd.ptx.ldmatirx
low, high = pd.ptx.ldmatrix.sync.aligned.m8n8.x4.shared.b16(0)
"""
    ) == [
        (21, 'Cannot access attribute "ldmatirx" for class "Ptx"'),
        (22, 'Expression with type "Vector4" cannot be assigned to target tuple'),
    ]


class TestStub:
    def test_it_is_what_the_table_says(self):
        assert STUB.read_text() == stub(), "write it again: make stubs"

    def test_a_misspelt_mnemonic_and_a_wrong_number_of_operands_are_errors_of_mypy(self, mypy):
        assert mypy(
            """
import ptxdsl as pd
from ptxdsl import f32, pred, u32

def helper() -> None:
    a, b = pd.var(u32, 1), pd.var(u32, 2)
    c = pd.ptx.add.u32(a, b, guard=a < b)
    pd.ptx.ad.u32(a, b)
    pd.ptx.add.u33(a, b)
    pd.ptx.add.u32(a)
    pd.ptx.add(a, b)
    low, high = pd.ptx.ldmatrix.sync.aligned.m8n8.x4.shared.b16(c)
    d = pd.ptx.bar.sync(0)
    pd.ptx("add.u32", a, b)
"""
        ) == [
            '8: error: "Ptx" has no attribute "ad"; maybe "add", "mad", or "sad"?  [attr-defined]',
            '9: error: "add_15" has no attribute "u33"  [attr-defined]',
            '10: error: Too few arguments for "__call__" of "add_13"  [call-arg]',
            '11: error: "add_15" not callable  [operator]',
            "12: error: Too many values to unpack (2 expected, 4 provided)  [misc]",
            "13: error: Function does not return a value (it only ever returns None)  [func-returns-value]",
        ]


class TestAtRuntime:
    def test_dir_lists_what_may_follow(self):
        assert {"add", "and_", "ldmatrix", "wgmma"} <= set(dir(pd.ptx))
        assert dir(pd.ptx.mma) == ["sp", "sp__ordered_metadata", "sync"]
        assert dir(pd.ptx.shfl.sync.bfly.b32) == dir(pd.ptx.nonsense) == []

    def test_what_may_follow_is_what_the_spellings_have(self):
        draw = random.Random(0)
        for name in Op.table.keys() - {"ld", "st", "atom"}:
            text, prefix = name, spellings(name)
            while prefix.words:
                assert set(following(text)) == set(prefix.words), text
                word = draw.choice(list(prefix.words))
                text, prefix = f"{text}.{word}", prefix.words[word]

    def test_help_is_the_page_of_the_table(self):
        shown = pydoc.plain(pydoc.render_doc(pd.ptx.ldmatrix.sync.aligned.m8n8.x4.shared.b16))
        assert "d = pd.ptx.ldmatrix.sync.aligned.m8n8.x4.shared.b16(address)" in shown
        assert "needs    PTX 6.5, sm_75" in shown
        assert pd.ptx.mma.__doc__.startswith(
            "mma: Multiply-accumulate matrices held in the registers of a warp: d = a * b + c."
        )
        assert pd.ptx.mam.__doc__ == "the table has no instruction `mam`; did you mean `mma` or `max` or `mad`?"
        assert "attributes spell it, a call emits the instruction" in type(pd.ptx).__doc__

    def test_signatures_name_the_sources(self):
        assert str(inspect.signature(pd.ptx.fma.rn.f32)) == "(a, b, c, /, *, out=None, guard=None, pair=False)"
        assert str(inspect.signature(pd.ptx.cp.async_.cg.shared.global_)).startswith("(dst, src, size, ")
        assert "sources" in str(inspect.signature(pd.ptx.add))

    def test_names_that_notebooks_ask_for_are_no_mnemonics(self):
        assert not hasattr(pd.ptx, "_repr_html_")
        assert repr(pd.ptx.cp.async_.bulk.tensor._2d) == "pd.ptx.cp.async.bulk.tensor.2d"
