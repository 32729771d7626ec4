"""Settings: what each variable may say, what the default is, and what a value that it cannot have is told."""

from pathlib import Path

import pytest

from ptxdsl import config
from ptxdsl.errors import Error
from ptxdsl.isa.target import TARGETS


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch):
    for variable in ("CACHE_DIR", "DUMP", "DUMP_DIR", "DEVICE", "ARCH", "LINEINFO", "ASSEMBLER", "DEPENDENT_LAUNCH"):
        monkeypatch.delenv(f"PTXDSL_{variable}", raising=False)


def test_without_variables_only_the_cache_is_on(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    settings = config.current()
    assert settings.cache_dir == Path("/caches/ptxdsl")
    assert (settings.dump, settings.device, settings.arch, settings.assembler) == (frozenset(), None, None, None)
    assert settings.lineinfo and settings.dependent_launch


def test_the_cache_is_under_the_home_folder_without_xdg(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/ada")
    assert config.current().cache_dir == Path("/home/ada/.cache/ptxdsl")


@pytest.mark.parametrize(
    "variable, text, name, value",
    [
        ("PTXDSL_CACHE_DIR", "off", "cache_dir", None),
        ("PTXDSL_CACHE_DIR", "/here", "cache_dir", Path("/here")),
        ("PTXDSL_DUMP", "ptx, sass", "dump", {"ptx", "sass"}),
        ("PTXDSL_DUMP", "all", "dump", {"ptx", "cubin", "sass"}),
        ("PTXDSL_DUMP_DIR", "out", "dump_dir", Path("out")),
        ("PTXDSL_DEVICE", "cuda", "device", "cuda"),
        ("PTXDSL_ARCH", "sm_90a", "arch", "sm_90a"),
        ("PTXDSL_ARCH", "", "arch", None),
        ("PTXDSL_LINEINFO", "off", "lineinfo", False),
        ("PTXDSL_LINEINFO", "1", "lineinfo", True),
        ("PTXDSL_ASSEMBLER", "ptxas", "assembler", "ptxas"),
        ("PTXDSL_DEPENDENT_LAUNCH", "off", "dependent_launch", False),
        ("PTXDSL_DEPENDENT_LAUNCH", "on", "dependent_launch", True),
        ("PTXDSL_DEPENDENT_LAUNCH", "", "dependent_launch", True),
    ],
)
def test_a_variable_is_read_each_time_it_is_asked_for(monkeypatch, variable, text, name, value):
    config.current()
    monkeypatch.setenv(variable, text)
    assert getattr(config.current(), name) == value


@pytest.mark.parametrize(
    "variable, text, must_be",
    [
        ("PTXDSL_DUMP", "ptx,obj", "ptx, cubin, sass (comma-separated) or all"),
        ("PTXDSL_DEVICE", "gpu", "emulator or cuda"),
        ("PTXDSL_ARCH", "sm_42", f"one of {', '.join(config.ARCHITECTURES)}"),
        ("PTXDSL_LINEINFO", "maybe", "on or off"),
        ("PTXDSL_ASSEMBLER", "gas", "nvjitlink, ptxas or driver"),
        ("PTXDSL_DEPENDENT_LAUNCH", "never", "on or off"),
    ],
)
def test_a_value_that_a_variable_cannot_have_is_refused(monkeypatch, variable, text, must_be):
    monkeypatch.setenv(variable, text)
    with pytest.raises(Error) as refused:
        config.current()
    assert str(refused.value) == (
        f"{variable} is `{text}`; it must be {must_be}\n  help: use one of these, or leave it unset"
    )


@pytest.mark.parametrize(
    "name, text, near",
    [
        ("arch", "sm90a", "sm_90a"),
        ("numerics", "H200", "h200"),
        ("schedule", "randm", "random"),
        ("device", "emulate", "emulator"),
        ("assembler", "nvjitlnk", "nvjitlink"),
    ],
)
def test_a_value_that_is_nearly_one_is_told_which(name, text, near):
    with pytest.raises(Error) as refused, config.using(**{name: text}):
        pass
    assert refused.value.message.startswith(f"{name} is `{text}`; it must be ")
    assert refused.value.help == f"did you mean `{near}`?"


def test_using_changes_settings_for_its_body_only():
    before = config.current()
    with config.using(arch="sm_80", cache_dir="off", lineinfo=False) as inner:
        assert config.current() is inner
        assert (inner.arch, inner.cache_dir, inner.lineinfo) == ("sm_80", None, False)
    assert config.current() == before


def test_using_refuses_an_unknown_setting():
    with pytest.raises(Error) as refused, config.using(architecture="sm_80"):
        pass
    assert str(refused.value) == (
        "unknown setting `architecture`\n"
        f"{refused.value.at.excerpt()}\n"
        "  help: the settings are cache_dir, dump, dump_dir, device, arch, lineinfo, numerics, checks, strict, schedule, "
        "steps, seconds, assembler, spills, dependent_launch"
    )


def test_using_refuses_a_wrong_value_by_the_name_of_the_setting():
    with pytest.raises(Error) as refused, config.using(device="tpu"):
        pass
    assert refused.value.message == "device is `tpu`; it must be emulator or cuda"


@pytest.mark.parametrize(
    "name, value, in_key",
    [
        ("arch", "sm_90a", True),
        ("lineinfo", False, True),
        ("assembler", "ptxas", True),
        ("cache_dir", Path("/x"), False),
        ("dump", frozenset({"ptx"}), False),
        ("dump_dir", Path("/x"), False),
        ("device", "cuda", False),
        ("dependent_launch", False, False),
    ],
)
def test_the_key_has_what_a_compiled_kernel_depends_on(name, value, in_key):
    with config.using(**{name: value}) as changed:
        assert (changed.key != config.Config().key) == in_key


def test_every_architecture_is_a_target_that_the_instruction_table_knows():
    assert set(config.ARCHITECTURES) <= TARGETS.keys()


@pytest.mark.parametrize("variable, text", [("DEVICE", "emulator"), ("ARCH", "sm_90"), ("DEPENDENT_LAUNCH", "off")])
def test_what_decides_changes_with_each_setting_that_does(monkeypatch, variable, text):
    before = config.deciding()
    monkeypatch.setenv(f"PTXDSL_{variable}", text)
    assert config.deciding() != before
    assert hash(config.deciding()) == hash(config.deciding())
    monkeypatch.delenv(f"PTXDSL_{variable}")
    assert config.deciding() == before
    with config.using(**{variable.lower(): text}):
        assert config.deciding() != before


def test_a_folder_decides_nothing(monkeypatch):
    before = config.deciding()
    monkeypatch.setenv("PTXDSL_CACHE_DIR", "/elsewhere")
    assert config.deciding() == before


def test_dependent_launches_are_allowed_where_neither_the_environment_nor_using_says_no(monkeypatch):
    assert config.allows_dependent_launches()
    with config.using(arch="sm_90a"):
        assert config.allows_dependent_launches()
    with config.using(dependent_launch=False):
        assert not config.allows_dependent_launches()
    for text, allowed in (("off", False), ("on", True), ("", True), ("0", False)):
        monkeypatch.setenv("PTXDSL_DEPENDENT_LAUNCH", text)
        assert config.allows_dependent_launches() == config.current().dependent_launch == allowed
        with config.using(dependent_launch="on"):
            assert config.allows_dependent_launches()
    monkeypatch.setenv("PTXDSL_DEPENDENT_LAUNCH", "never")
    with pytest.raises(Error, match="PTXDSL_DEPENDENT_LAUNCH is `never`; it must be on or off"):
        config.allows_dependent_launches()
