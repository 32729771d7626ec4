"""The performance page: written from the result files."""

import pytest
import records
import report


@pytest.mark.parametrize("path", report.PAGES, ids=lambda path: path.name)
def test_the_page_is_what_the_result_files_give(path):
    assert path.read_text() == report.page(report.PAGES[path]), "run `python benchmarks/report.py`"


def test_the_latest_run_of_a_case_counts(monkeypatch):
    def run(date, us):
        environment = {"gpu": "NVIDIA H200", "date": date, "command": "python benchmarks/gemm.py"}
        rows = [{"shape": "8x8x8", "contender": name, "us, rest": time} for name, time in us.items()]
        return records.Run(environment, rows)

    runs = [
        run("1", {"cublas": 4.0, "ptxdsl": 4.0}),
        run("2", {"cublas": 3.0, "ptxdsl": 2.0}),
        run("3", {"cublas": 9.0}),
    ]
    monkeypatch.setattr(records, "runs", lambda name: runs)
    (pair,) = records.pairs("gemm", lambda row: row["shape"]).values()
    assert (pair.ratio("rest"), pair.ratio("held"), pair.run) == (1.5, None, runs[1])
    assert (pair.run.origin, pair.run.day) == ("H200, `gemm.py`", "2")
