"""The run over cases: rows, budget, other checkouts, result files."""

import json
import os
import sys

import against
import common
import pytest
import tables
from protocols import Local

from .fake_gpu import FakeGpu

CASES = [(10,), (20,), (40,)]


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(common, "START", 0.0)
    return FakeGpu()


def benchmark(gpu, preparation_seconds=0.0):
    """Contenders at 1 and 2 GFLOP/s; a case is its number of megaflop."""

    def other(case):
        gpu.seconds += preparation_seconds
        return {"library": gpu.takes("library", case[0])}

    return common.Benchmark(
        others=other,
        ours=lambda case: {"ptxdsl": gpu.takes("ptxdsl", case[0] / 2)},
        label=lambda case: {"work": case[0]},
        operations=lambda case: 1e6 * case[0],
    )


def options(*arguments):
    return common.gpu_parser("").parse_args(arguments)


def rows(gpu, *arguments, children=None, **how):
    return list(common.rows(gpu, benchmark(gpu, **how), CASES, options(*arguments), children or {}))


def test_a_row_for_each_contender_has_both_protocols(gpu):
    library, ours = rows(gpu, "--rounds", "3", "--turns", "2")[2:4]
    assert library == pytest.approx(
        {
            "work": 20,
            "contender": "library",
            "us, rest": 2e4,
            "TFLOP/s, rest": 1e-3,
            "ratio, rest": 1.0,
            "us, held": 2e4,
            "TFLOP/s, held": 1e-3,
            "ratio, held": 1.0,
            "rounds": 3,
            "turns": 2,
        }
    )
    assert ours["contender"] == "ptxdsl"
    assert [ours["ratio, rest"], ours["ratio, held"]] == pytest.approx([2.0, 2.0])


@pytest.mark.parametrize("protocol, other", [("rest", "held"), ("held", "rest")])
def test_one_protocol_alone(gpu, protocol, other):
    for row in rows(gpu, "--protocol", protocol, "--rounds", "3", "--turns", "2"):
        assert f"us, {protocol}" in row and f"us, {other}" not in row


def test_without_a_budget_nothing_is_dropped(gpu):
    assert {(row["rounds"], row["turns"]) for row in rows(gpu)} == {(11, 3)}


def test_a_budget_drops_rounds_then_cases(gpu):
    everything = rows(gpu)
    needed = gpu.seconds
    for share in (0.8, 0.5, 0.2):
        gpu.seconds = 0.0
        fewer = rows(gpu, "--budget", str(share * needed))
        assert gpu.seconds <= share * needed
        done = [row for row in fewer if "rounds" in row]
        assert done and all(row["rounds"] < 11 for row in done)
        assert [row["work"] for row in done] == [row["work"] for row in everything][: len(done)]


def test_a_case_without_time_says_so(gpu):
    last = rows(gpu, "--budget", "5", preparation_seconds=10.0)
    assert last[1:] == [{"work": work, "contender": "left out: no time"} for work in (20, 40)]


class FakeTree:
    """A version of ptxdsl that is `slower` times as slow, in this process."""

    def __init__(self, gpu, slower):
        self.gpu, self.slower = gpu, slower

    def contenders(self, case):
        return {"ptxdsl": Local(self.gpu, self.gpu.takes("tree", self.slower * case[0]))}


def test_versions_stand_side_by_side(gpu):
    children = {"": FakeTree(gpu, 1.0), "before ": FakeTree(gpu, 1.25)}
    first = rows(gpu, "--rounds", "3", "--turns", "2", children=children)[:3]
    assert [row["contender"] for row in first] == ["library", "ptxdsl", "before ptxdsl"]
    assert [row.get("now/before, rest") for row in first] == [None, pytest.approx(1.25), None]
    assert first[1]["now/before, held"] == pytest.approx(1.25)


def test_a_contender_that_the_other_version_lacks_is_timed_alone(gpu):
    children = {"": FakeTree(gpu, 1.0), "before ": FakeTree(gpu, 1.0)}
    children["before "].contenders = lambda case: {}
    assert [row["contender"] for row in rows(gpu, "--rounds", "3", children=children)[:2]] == ["library", "ptxdsl"]


def test_the_result_file_names_its_origin(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/somewhere/gemm.py", "--rounds", "3"])
    common.report([{"shape": "1x1x1", "us": 1.0}, {"shape": "2x2x2", "more": "x"}], tmp_path / "new" / "result.json")
    written = json.loads((tmp_path / "new" / "result.json").read_text())
    assert written["environment"]["command"] == "python benchmarks/gemm.py --rounds 3"
    assert {"gpu", "driver", "date"} <= set(written["environment"])
    assert written["rows"] == [{"shape": "1x1x1", "us": 1.0}, {"shape": "2x2x2", "more": "x"}]
    assert capsys.readouterr().out == (
        f"shape  us  more\n1x1x1   1      \n2x2x2         x\nwritten to {tmp_path / 'new' / 'result.json'}\n"
    )


def test_rows_before_an_error_are_kept(tmp_path, capsys):
    def failing():
        yield {"shape": "1x1x1"}
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        common.report(failing(), tmp_path / "result.json")
    assert json.loads((tmp_path / "result.json").read_text())["rows"] == [{"shape": "1x1x1"}]


def test_an_old_result_is_not_lost_to_a_run_without_rows(tmp_path, capsys):
    (tmp_path / "result.json").write_text("old")
    common.report([], tmp_path / "result.json")
    assert (tmp_path / "result.json").read_text() == "old"
    assert capsys.readouterr().out == "nothing was measured\n"


CHILD = """
import os, sys
sys.path[:0] = [{benchmarks!r}, {tests!r}]
from against import Server, serve
from fake_gpu import FakeGpu
import ptxdsl
gpu = FakeGpu()
print("what libraries print while they are imported")
def make(case):
    if case[0] == "bad":
        raise ValueError("no such case")
    assert case == ("good", (1, 2)), case
    return {{"ptxdsl": gpu.takes("ptxdsl", ptxdsl.MILLISECONDS)}}
serve(Server(gpu, make, ptxdsl.__file__), int(sys.argv[2]))
"""


@pytest.fixture
def tree(tmp_path, request):
    """A checkout whose ptxdsl takes 7 ms, in a child process."""
    (tmp_path / "checkout" / "ptxdsl").mkdir(parents=True)
    (tmp_path / "checkout" / "ptxdsl" / "__init__.py").write_text("MILLISECONDS = 7.0\n")
    here = os.path.dirname(__file__)
    script = tmp_path / "script.py"
    script.write_text(CHILD.format(benchmarks=os.path.dirname(against.__file__), tests=here))
    tree = against.Tree(tmp_path / "checkout", script)
    request.addfinalizer(tree.close)
    tree.check_origin()
    return tree


def test_a_child_times_its_own_version(tree):
    contender = tree.contenders(("good", (1, 2)))["ptxdsl"]
    assert contender.single_ms() == pytest.approx(7.0)
    assert contender.slice_ms(20) == pytest.approx(7.0)
    assert contender.host_us(20) == pytest.approx(7000.0)


@pytest.mark.parametrize("apart, names", [(True, ["ptxdsl"]), (False, [])])
def test_this_checkout_may_run_apart_without_another_one(tree, monkeypatch, apart, names):
    monkeypatch.setattr(common, "ROOT", tree.directory)
    monkeypatch.setattr(sys, "argv", [str(tree.directory.parent / "script.py")])
    with common.versions(None, apart) as children:
        assert [name for child in children.values() for name in child.contenders(("good", (1, 2)))] == names


def test_an_error_in_the_child_is_one_here_and_the_child_goes_on(tree):
    with pytest.raises(RuntimeError, match=r"(?s)in the process of .*checkout: Traceback .*ValueError: no such case"):
        tree.contenders(("bad",))
    assert list(tree.contenders(("good", (1, 2)))) == ["ptxdsl"]


def test_a_child_that_died_is_an_error(tree):
    tree._process.kill()
    tree._process.wait()
    with pytest.raises(RuntimeError) as error:
        tree.ask("origin")
    assert str(error.value) == f"in the process of {tree.directory}: it ended"


def test_a_folder_without_ptxdsl_is_refused(tmp_path):
    with pytest.raises(SystemExit) as refusal:
        against.Tree(tmp_path, tmp_path / "script.py")
    assert str(refusal.value) == f"--against {tmp_path}: there is no folder ptxdsl in it; name the root of a checkout"


def test_another_ptxdsl_than_the_named_one_is_refused(tmp_path):
    (tmp_path / "ptxdsl").mkdir()
    (tmp_path / "ptxdsl" / "__init__.py").touch()
    script = tmp_path / "script.py"
    script.write_text(
        'import os, sys\nsys.stdin.readline()\nos.write(int(sys.argv[2]), b\'{"result": "/elsewhere/__init__.py"}\\n\')\n'
    )
    tree = against.Tree(tmp_path, script)
    with pytest.raises(SystemExit) as refusal:
        tree.check_origin()
    tree.close()
    assert str(refusal.value) == f"--against {tmp_path}: that process imported /elsewhere/__init__.py"


def test_tables_have_rest_and_held_in_a_cell(gpu):
    rows_of_both = rows(gpu, "--rounds", "3", "--turns", "2")
    rows_of_both[3].pop("us, held")
    assert tables.table(rows_of_both, "us") == (
        "|  | library | ptxdsl |\n"
        "| --- | --- | --- |\n"
        "| 10 | 10000 / 10000 | 5000 / 5000 |\n"
        "| 20 | 20000 / 20000 | 10000 / – |\n"
        "| 40 | 40000 / 40000 | 20000 / 20000 |\n"
    )


@pytest.mark.parametrize(
    "figure, text", [(515.4, "515"), (68.84, "68.8"), (5.1, "5.10"), (0.0123, "0.0123"), (10784.0, "10784")]
)
def test_figures_have_three_digits(figure, text):
    assert tables.digits(figure) == text
