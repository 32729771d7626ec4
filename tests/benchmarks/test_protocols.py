"""The two protocols of the benchmarks, on a clock that the test turns."""

import pytest
from protocols import Budget, Extent, Local, held, host, least, rest, timed, warm

from .fake_gpu import FakeGpu


@pytest.fixture
def gpu():
    return FakeGpu()


def turns(log):
    """Runs of the log in order, repetitions of one as one, with their number."""
    counted = []
    for name in log:
        if counted and counted[-1][0] == name:
            counted[-1][1] += 1
        else:
            counted.append([name, 1])
    return [tuple(turn) for turn in counted]


def test_rest_takes_turns_with_a_flush_before_each_launch(gpu):
    contenders = {name: Local(gpu, gpu.takes(name, ms)) for name, ms in {"a": 2.0, "b": 3.0}.items()}
    assert rest(gpu, contenders, 3) == pytest.approx({"a": 2.0, "b": 3.0})
    assert gpu.log == ["rest 0.5", *["flush", "a", "flush", "b"] * 4]


def test_rest_is_the_median_without_the_first_round(gpu):
    contenders = {"a": Local(gpu, gpu.takes("a", 100, 1, 7, 3))}
    assert rest(gpu, contenders, 3) == pytest.approx({"a": 3.0})


def test_a_loop_of_launches_waits_until_the_host_has_sent_it_off(gpu):
    Local(gpu, gpu.takes("loop", 1), wait_cycles=5000).single_ms()
    assert gpu.log == ["flush", "wait 5000", "loop"]


def test_held_takes_turns_of_seven_slices_of_150_ms(gpu):
    contenders = {"a": Local(gpu, gpu.takes("a", 1.0)), "b": Local(gpu, gpu.takes("b", 30.0))}
    assert held(contenders, 2) == pytest.approx({"a": 1.0, "b": 30.0})
    assert turns(gpu.log) == [("a", 1), ("b", 1), ("a", 7 * 150), ("b", 7 * 5), ("a", 7 * 150), ("b", 7 * 5)]


def test_held_does_not_flush_nor_rest(gpu):
    held({"a": Local(gpu, gpu.takes("a", 10), wait_cycles=5000)}, 3)
    assert set(gpu.log) == {"a"}


def test_held_drops_the_first_slice_of_each_turn(gpu):
    # 15 launches of 10 ms at the high clock, then 20 ms each at the low one.
    contenders = {"a": Local(gpu, gpu.takes("a", *[10.0] * 16, 20.0))}
    assert held(contenders, 2) == pytest.approx({"a": 20.0})


def test_the_number_of_launches_follows_the_slice_before(gpu):
    contenders = {"a": Local(gpu, gpu.takes("a", 75.0, 10.0))}  # the first is slow
    held(contenders, 2)
    assert len(gpu.log) == 1 + (2 + 6 * 15) + (15 + 6 * 15)


def test_a_launch_longer_than_a_slice_is_launched_once(gpu):
    assert held({"a": Local(gpu, gpu.takes("a", 400.0))}, 2) == pytest.approx({"a": 400.0})
    assert gpu.log == ["a"] * (1 + 7 + 7)


def test_warm_says_what_the_second_time_takes(gpu):
    contenders = {"a": Local(gpu, gpu.takes("a", 9000.0, 4.0)), "b": Local(gpu, gpu.takes("b", 5.0))}
    assert warm(gpu, contenders) == pytest.approx(0.009 + 2e-4)


@pytest.mark.parametrize(
    "extent, protocols", [(Extent(3, 0), {"rest"}), (Extent(0, 3), {"held"}), (Extent(3, 3), {"rest", "held"})]
)
def test_an_extent_says_which_protocols_run(gpu, extent, protocols):
    assert set(timed(gpu, {"a": Local(gpu, gpu.takes("a", 1.0))}, extent)) == protocols


def test_a_run_takes_little_less_than_its_extent_says(gpu):
    contenders = {"a": Local(gpu, gpu.takes("a", 1.0)), "b": Local(gpu, gpu.takes("b", 5.0))}
    extent, launch_seconds = Extent(11, 3), warm(gpu, contenders)
    start = gpu.now()
    timed(gpu, contenders, extent)
    assert 0.95 < (gpu.now() - start) / extent.seconds(launch_seconds, 2) <= 1.0


@pytest.mark.parametrize("share", [3.0, 4.0, 7.0])
def test_less_time_is_fewer_rounds_and_turns(share):
    full = Extent(11, 3)
    less = full.within(share, launch_seconds=0.1, contenders=2)
    assert 3 <= less.rounds < 11
    assert 1 <= less.turns < 3


def test_enough_time_changes_nothing():
    assert Extent(11, 3).within(60.0, 0.1, 2) == Extent(11, 3)
    assert Budget(FakeGpu(), None, 0.0).extent(Extent(11, 3), float("inf"), 0.1, 2) == Extent(11, 3)


def test_medians_keep_three_rounds_however_little_time_there_is():
    assert Extent(11, 3).within(0.0, 0.1, 2) == Extent(3, 1)
    assert Extent(2, 0).within(0.0, 0.1, 2) == Extent(2, 0)  # fewer were asked for


def test_what_does_not_fit_into_the_budget_is_not_begun(gpu):
    least = Extent(3, 1).seconds(0.1, 2)
    budget = Budget(gpu, least + 0.01, start=0.0)
    assert budget.extent(Extent(11, 3), 0.1, 0.1, 2) == Extent(3, 1)
    gpu.seconds += 0.02
    assert budget.extent(Extent(11, 3), 0.1, 0.1, 2) is None


def test_launches_of_the_host_are_counted_in_turns_of_an_empty_queue(gpu):
    contenders = {"a": Local(gpu, gpu.takes("a", 0.5, 0.25)), "b": Local(gpu, gpu.takes("b", 1.0))}
    assert host(contenders, 2, launches=10) == pytest.approx({"a": 250.0, "b": 1000.0})
    alone = ["rest 0", *["a"] * 10, "rest 0", "rest 0", *["b"] * 10, "rest 0"]
    assert gpu.log == alone * 3


def test_of_several_processes_the_least_of_each_figure_counts():
    assert least([{"a": 3.0, "b": 2.0}, {"a": 1.0, "b": 5.0}]) == {"a": 1.0, "b": 2.0}
