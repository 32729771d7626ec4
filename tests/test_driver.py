"""The driver: which GPUs there are, why there is none, and failures as sentences. All of it on a stand-in."""

from types import SimpleNamespace

import pytest
from cuda.bindings.driver import CUresult
from cuda.pathfinder import DynamicLibNotFoundError

from ptxdsl import driver
from ptxdsl.errors import LaunchError

from .fake_driver import FakeCuda, installed


def raising(error):
    def cuInit(flags):
        raise error

    return SimpleNamespace(cuInit=cuInit, CUresult=CUresult)


@pytest.mark.parametrize(
    "fake, reason",
    [
        (raising(DynamicLibNotFoundError("search path\nmore")), "the CUDA driver (libcuda) is not installed"),
        (raising(RuntimeError("Failed to dlopen\nmore")), "the CUDA driver cannot be loaded (Failed to dlopen)"),
        (FakeCuda(gpus=0), "the CUDA driver finds no GPU"),
        (FakeCuda(), None),
    ],
)
def test_the_reason_for_no_gpu(fake, reason):
    with installed(fake):
        assert driver.why_no_gpu() == reason


def test_a_driver_that_does_not_start_is_a_reason():
    fake = FakeCuda()
    fake.failing["cuInit"] = CUresult.CUDA_ERROR_NO_DEVICE
    with installed(fake):
        assert driver.why_no_gpu() == "the CUDA driver cannot be initialised (CUDA_ERROR_NO_DEVICE)"


def test_without_a_gpu_a_launch_points_to_the_emulator():
    with installed(FakeCuda(gpus=0)), pytest.raises(LaunchError) as refused:
        driver.device(0)
    line = refused.value.at.line
    assert str(refused.value) == (
        "no GPU to launch on: the CUDA driver finds no GPU\n"
        f"  test_driver.py:{line} | driver.device(0)\n"
        f"{' ' * (20 + len(str(line)))}^^^^^^^^^^^^^^^^\n"
        "  help: pass numpy arrays, which run on the emulator"
    )


def test_a_gpu_that_is_not_there():
    with installed(FakeCuda(gpus=2)), pytest.raises(LaunchError) as refused:
        driver.device(2)
    assert refused.value.message == "GPU cuda:2 does not exist; this machine has 2"
    assert refused.value.help == "use cuda:0 … cuda:1"
    assert refused.value.at.text.strip() == "driver.device(2)"


def test_what_is_known_of_a_gpu():
    with installed(FakeCuda(gpus=2)):
        found = driver.device(1)
    assert (found.ordinal, found.name, found.capability) == (1, "Fake 1", (9, 0))
    assert (found.multiprocessors, found.shared_bytes, found.threads_per_block) == (132, 232448, 1024)
    assert str(found) == "cuda:1 (Fake 1, sm_90a)"


@pytest.mark.parametrize("major, minor, arch", [(8, 0, "sm_80"), (8, 9, "sm_89"), (9, 0, "sm_90a"), (12, 1, "sm_121a")])
def test_the_target_with_all_instructions_of_a_gpu(major, minor, arch):
    with installed(FakeCuda(COMPUTE_CAPABILITY_MAJOR=major, COMPUTE_CAPABILITY_MINOR=minor)):
        assert driver.device_arch() == arch


def test_the_context_of_a_thread_is_put_back():
    with installed(FakeCuda(gpus=2)) as fake:
        with driver.on(0):
            with pytest.raises(ZeroDivisionError), driver.on(1):
                assert fake.current == 1
                raise ZeroDivisionError
            assert fake.current == 0
        assert fake.contexts == []


@pytest.mark.parametrize("given, result", [((), None), ((5,), 5), ((5, 6), (5, 6))])
def test_a_call_gives_what_the_driver_gives(given, result):
    assert driver.call("testing", lambda *values: (CUresult.CUDA_SUCCESS, *values), *given) == result


@pytest.mark.parametrize(
    "status, help",
    [
        ("CUDA_ERROR_UNKNOWN", None),
        ("CUDA_ERROR_OUT_OF_MEMORY", "free device memory, or use smaller arrays"),
        (
            "CUDA_ERROR_ILLEGAL_ADDRESS",
            "an earlier kernel on this GPU failed, and the process must be restarted; run that kernel on the emulator "
            "(numpy arrays) to find the Python line and the thread",
        ),
    ],
)
def test_a_failure_says_what_we_did_the_status_and_its_meaning(status, help):
    code = getattr(CUresult, status)
    with installed(FakeCuda()), pytest.raises(LaunchError) as failed:
        driver.call("loading k", lambda: (code,))
    assert failed.value.message == f"loading k: {status}: explanation of {int(code)}"
    assert failed.value.help == help


def test_waiting_reports_a_fault_of_an_earlier_kernel():
    fake = FakeCuda()
    fake.failing["cuCtxSynchronize"] = CUresult.CUDA_ERROR_MISALIGNED_ADDRESS
    with installed(fake), pytest.raises(LaunchError) as failed:
        driver.synchronize()
    assert failed.value.message == "waiting for cuda:0: CUDA_ERROR_MISALIGNED_ADDRESS: explanation of 716"
    assert "emulator" in failed.value.help
