"""What every test shares: the two tiers, the `gpu` marker and a seeded random generator."""

import faulthandler
import gc
import os
import random
import zlib

import hypothesis
import numpy as np
import pytest

from ptxdsl import config, errors
from ptxdsl.driver import why_no_gpu
from tests import tiers
from tests.tiers import SEED

LIMIT = "PTXDSL_TEST_SECONDS"  # what takes longer hangs: its process ends with a traceback of all threads

# No time limit for one example: the first call of many functions here compiles or fills a cache.
hypothesis.settings.register_profile("exhaustive", deadline=None)
hypothesis.settings.register_profile("quick", deadline=None, max_examples=40)


errors.tracebacks.show_all = True  # of our own, where a test fails


# Kernels are kept, with all their text: to look through them for garbage as often as Python does by itself took a sixth
# of the time of all tests.
gc.set_threshold(20_000, 20, 20)


def pytest_collection_finish():
    gc.freeze()  # the tests themselves are no garbage


def pytest_configure(config):
    hypothesis.settings.load_profile("exhaustive" if config.option.exhaustive else "quick")
    # Set before pytest-xdist starts its workers, which inherit it: one seed for the whole run.
    os.environ.setdefault(SEED, str(random.SystemRandom().getrandbits(32)))
    # One process with JAX would else take three quarters of a GPU's memory from all others.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def pytest_sessionstart(session):
    # Not in pyproject.toml: what other plugins warn of while they start would end the run before it begins.
    session.config.addinivalue_line("filterwarnings", "error")


@pytest.hookimpl(tryfirst=True, wrapper=True)
def pytest_sessionfinish(session):
    session.config.getini("filterwarnings").remove("error")
    gc.collect()
    gc.freeze()  # pytest looks for what is left five times more, a second each for all kernels that were kept
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    with os.fdopen(os.dup(2), "w") as stderr:
        faulthandler.dump_traceback_later(float(os.environ.get(LIMIT, 240)), exit=True, file=stderr)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()


def pytest_report_header():
    return f"{SEED}={os.environ[SEED]}"


def pytest_addoption(parser):
    tiers.add_options(parser)


def pytest_collection_modifyitems(config, items):
    tiers.select(config, items)
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu and (reason := why_no_gpu()):
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason=f"needs a GPU: {reason}"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    if report.failed and "rng" in item.fixturenames:
        report.sections.append(("random numbers", f"run again with {SEED}={os.environ[SEED]}"))
    return report


@pytest.fixture
def rng(request):
    """A generator whose numbers differ from run to run, and depend on the seed and the test alone within one."""
    return np.random.default_rng([int(os.environ[SEED]), zlib.crc32(request.node.nodeid.encode())])


@pytest.fixture
def lockstep():
    """For tests of a text that names who came first: it is that of this schedule, whatever PTXDSL_SCHEDULE says."""
    with config.using(schedule="lockstep"):
        yield
