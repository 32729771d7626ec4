"""PTX to cubin: what comes back, what a mistake is told, several modules, the cache, the dumps, the disassembly."""

import pickle
import re

import pytest

from ptxdsl import config
from ptxdsl.assemble import Resources, assemble, assemblers, cache
from ptxdsl.errors import AssembleError, Error

HEADER = ".version 7.0\n.target sm_80\n.address_size 64\n"
STORE = (
    HEADER
    + """\
.visible .entry store(.param .u64 out)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  .shared .align 4 .b8 tile[256];
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  st.shared.u32 [tile+4], %r1;
  bar.sync 0;
  st.global.u32 [%rd1], %r1;
  ret;
}
"""
)
HELPER = (
    HEADER
    + """\
.visible .func (.param .b32 r) helper(.param .b32 a)
{
  .reg .b32 %r<2>;
  ld.param.b32 %r1, [a];
  add.u32 %r1, %r1, 1;
  st.param.b32 [r], %r1;
  ret;
}
"""
)
CALLER = (
    HEADER
    + """\
.extern .func (.param .b32 r) helper(.param .b32 a);
.visible .entry caller(.param .u64 out)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  {
    .param .b32 p;
    .param .b32 q;
    st.param.b32 [p], %r1;
    call (q), helper, (p);
    ld.param.b32 %r2, [q];
  }
  st.global.u32 [%rd1], %r2;
  ret;
}
"""
)
ROUTES = [name for name in ("nvjitlink", "ptxas") if assemblers.ASSEMBLERS[name].why_not() is None]
every_route = pytest.mark.parametrize("route", ROUTES)


@pytest.fixture(autouse=True)
def no_cache():
    with config.using(cache_dir="off", dump=""):
        yield


def spilling():
    """A kernel whose registers, limited to 32 a thread, cannot hold its hundred values."""
    loads = [f"  ld.global.f32 %f{n}, [%rd1+{4 * n}];\n" for n in range(100)]
    stores = [f"  st.global.f32 [%rd1+{4 * n}], %f{99 - n};\n" for n in range(100)]
    return (
        f"{HEADER}.visible .entry spill(.param .u64 x) .maxntid 1024 .minnctapersm 2\n{{\n"
        "  .reg .f32 %f<100>;\n  .reg .b64 %rd<2>;\n  ld.param.u64 %rd1, [x];\n"
        f"{''.join(loads)}  bar.sync 0;\n{''.join(stores)}  ret;\n}}\n"
    )


@every_route
def test_a_cubin_says_what_its_kernels_need(route):
    with config.using(assembler=route):
        cubin = assemble(STORE, "sm_80")
    assert cubin.image.startswith(b"\x7fELF")
    assert (cubin.arch, cubin.warnings) == ("sm_80", ())
    needs = cubin.kernels["store"]
    assert (needs.shared_bytes, needs.barriers, needs.spill_store_bytes, needs.stack_bytes) == (256, 1, 0, 0)
    assert 4 <= needs.registers <= 32
    assert needs.constant_bytes >= 8


SHARED = [
    (".shared .align 16 .b8 outer[200];", "", 200, 200),
    ("", ".shared .align 16 .b8 inner[200];", 200, 200),
    (".shared .align 16 .b8 outer[200];", ".shared .align 128 .b8 inner[100];", 300, 456),  # the order decides the gap
    (".extern .shared .align 16 .b8 outer[];", ".shared .align 16 .b8 inner[32];", 32, 32),
    (".extern .shared .align 16 .b8 outer[];", "", 0, 0),
    (".shared .align 16 .b8 unused[64];", "", 0, 0),
    ("", "", 0, 0),
]


@pytest.mark.cases(24)
@every_route
@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"])
@pytest.mark.parametrize(("module", "kernel", "least", "most"), SHARED)
def test_shared_memory_is_what_the_kernel_declares(route, arch, module, kernel, least, most):
    """Neither twice nor without what is declared outside of the kernel, and without what a system reserves."""
    body = "".join(f"  st.shared.u32 [{name}], %r1;\n" for name in ("outer", "inner") if name in module + kernel)
    text = (
        f"{HEADER}{module}\n.visible .entry k()\n{{\n  .reg .b32 %r<2>;\n  {kernel}\n"
        f"  mov.u32 %r1, %tid.x;\n{body}  ret;\n}}\n"
    )
    with config.using(assembler=route):
        assert least <= assemble(text, arch).kernels["k"].shared_bytes <= most


@every_route
@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90a", "sm_120a"])
def test_ptx_for_an_early_gpu_assembles_for_later_ones(route, arch):
    with config.using(assembler=route):
        assert "store" in assemble(STORE, arch).kernels


@every_route
def test_spills_are_counted_and_warned_of(route):
    with config.using(assembler=route):
        cubin = assemble(spilling(), "sm_80")
    needs = cubin.kernels["spill"]
    assert needs.registers <= 32
    assert needs.spill_store_bytes > 0 and needs.spill_load_bytes > 0
    assert needs.stack_bytes >= needs.spill_store_bytes
    (warning,) = cubin.warnings
    assert warning.startswith("Registers are spilled to local memory in function 'spill'")


SERIALISED = """\
.version 8.0
.target sm_90a
.address_size 64
.file 1 "gemm.py"
.func opaque(.param .b32 a)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.b32 %r1, [a];
  mov.u64 %rd1, 64;
  st.global.u32 [%rd1], %r1;
  ret;
}
.visible .entry multiply(.param .u64 x)
{
  .reg .f32 %f<4>;
  .reg .b64 %rd<4>;
  .reg .b32 %r<2>;
  .loc 1 41 5
  ld.param.u64 %rd1, [x];
  mov.u64 %rd2, 0;
  mov.u64 %rd3, 0;
  mov.b32 %r1, 5;
BODY
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  st.global.v4.f32 [%rd1], {%f0, %f1, %f2, %f3};
  ret;
}
"""
FENCED = "  wgmma.fence.sync.aligned;\n"
MULTIPLIED = "  wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd2, %rd3, 1, 1, 1, 0, 0;\n"
CALLED = "  { .param .b32 p; st.param.b32 [p], %r1; call opaque, (p); }\n"


@every_route
@pytest.mark.parametrize("body, message, help", [
    (
        FENCED + MULTIPLIED + CALLED,
        "(C7519)",
        "place wgmma.fence between the last access to these registers and the first wgmma.mma_async",
    ),
    (
        FENCED + MULTIPLIED + "  st.global.f32 [%rd1+64], %f0;\n",
        "(C7517)",
        "wait with wgmma.wait_group before reading the accumulators",
    ),
])  # fmt: skip
def test_wgmma_that_had_to_be_serialised_is_refused_with_kernel_and_python_line(route, body, message, help):
    with config.using(assembler=route), pytest.raises(AssembleError) as refusal:
        assemble(SERIALISED.replace("BODY", body), "sm_90a")
    lines = refusal.value.message.splitlines()
    assert lines[0] == "the assembler changed `multiply`, which would run slower than written:"
    assert lines[1].startswith("  PTX line ") and f"(gemm.py:41): {message}" in lines[1]
    assert str(refusal.value.at) == "gemm.py:41"
    assert refusal.value.help == help


needs_ptxas = pytest.mark.skipif(assemblers.Ptxas().why_not() is not None, reason="there is no ptxas")


@needs_ptxas
def test_a_missing_fence_is_refused():
    with config.using(assembler="ptxas"), pytest.raises(AssembleError) as refusal:
        assemble(SERIALISED.replace("BODY", MULTIPLIED), "sm_90a")
    assert "(C7519) warpgroup.arrive is injected" in refusal.value.message
    assert refusal.value.help.startswith("place wgmma.fence between")


@needs_ptxas
def test_registers_that_nobody_gets_are_refused():
    body = "  .loc 1 42 5\n  setmaxnreg.dec.sync.aligned.u32 40;\n" + FENCED + MULTIPLIED
    for route, code, help in (
        ("ptxas", "(C7508)", "set the block size and the blocks per multiprocessor"),
        (
            "nvjitlink",
            "(C7504)",
            "assemble it with ptxas, from pip install 'ptxdsl[ptxas]' or the CUDA toolkit",
        ),
    ):
        with config.using(assembler=route), pytest.raises(AssembleError) as refusal:
            assemble(SERIALISED.replace("BODY", body), "sm_90a")
        assert f"(gemm.py:42): {code} Potential Performance Loss: 'setmaxnreg' ignored" in refusal.value.message
        assert "`multiply`" in refusal.value.message
        assert refusal.value.help.startswith(help)


def crowded():
    """128 sums of wgmma and a hundred other values meanwhile, where a thread has 168 registers."""
    text = SERIALISED.replace("multiply(.param .u64 x)", "multiply(.param .u64 x) .maxnreg 168").replace(
        "%f<4>", "%f<228>"
    )
    product, names = MULTIPLIED.replace("n8k", "n256k"), [f"%f{n}" for n in range(228)]
    product = product.replace("%f0, %f1, %f2, %f3", ", ".join(names[:128]))
    stores = [f"  st.global.f32 [%rd1+{4 * n}], {name};\n" for n, name in enumerate(names)]
    loads = [f"  ld.global.f32 {name}, [%rd1+{4 * n}];\n" for n, name in enumerate(names)]
    text = text.replace("BODY", "".join(loads) + FENCED + "  .loc 1 44 5\n" + product)
    return text.replace("  st.global.v4.f32 [%rd1], {%f0, %f1, %f2, %f3};\n", "".join(stores))


@every_route
def test_registers_spilled_beside_wgmma_are_refused_with_kernel_and_python_line(route):
    with config.using(assembler=route, spills="error"), pytest.raises(AssembleError) as refusal:
        assemble(crowded(), "sm_90a")
    first, second, *_ = refusal.value.message.splitlines()
    assert first == "`multiply` needs more registers than a thread can have, in addition to its wgmma accumulators:"
    assert re.fullmatch(
        r"  PTX line \d+ \(gemm.py:44\): \d+ bytes of registers per thread are spilled to memory", second
    )
    assert str(refusal.value.at) == "gemm.py:44"
    assert refusal.value.help == (
        "use fewer accumulator registers per warpgroup: a smaller N, or more warpgroups; or set PTXDSL_SPILLS=warn"
    )
    with config.using(assembler=route, spills="warn"):
        assert assemble(crowded(), "sm_90a").kernels["multiply"].spill_store_bytes > 0


@every_route
def test_modules_that_call_each_other_become_one_cubin(route):
    with config.using(assembler=route):
        cubin = assemble([CALLER, HELPER, STORE], "sm_80")
    assert cubin.kernels.keys() == {"caller", "store"}


BROKEN = (
    HEADER
    + """\
.file 1 "/kernels/saxpy.py"
.visible .entry saxpy(.param .u64 x)
{
  .reg .b32 %r<2>;
  .reg .f32 %f<2>;
  .loc 1 12 5
  add.u32 %r1, %f1, %r1;
  .loc 1 13 9, function_name $L__helper, inlined_at 1 12 5
  frob.u32 %r1, %r1;
  ret;
}
"""
)


@every_route
def test_every_mistake_is_listed_with_its_ptx_line_and_its_python_line(route):
    with config.using(assembler=route), pytest.raises(AssembleError) as refused:
        assemble(BROKEN, "sm_80")
    assert str(refused.value) == (
        "the PTX does not assemble for sm_80:\n"
        "  PTX line 10 (saxpy.py:12): Arguments mismatch for instruction 'add'\n"
        "    add.u32 %r1, %f1, %r1;\n"
        "  PTX line 12 (saxpy.py:13): Not a name of any known instruction: 'frob'\n"
        "    frob.u32 %r1, %r1;\n"
        "  saxpy.py:12"
    )


@every_route
def test_the_place_of_an_error_names_the_callers_of_a_helper(route):
    text = BROKEN.replace("add.u32 %r1, %f1, %r1;", "add.u32 %r1, %r1, %r1;")
    with config.using(assembler=route), pytest.raises(AssembleError) as refused:
        assemble(text, "sm_80")
    assert [(str(place), place.columns) for place in refused.value.at.chain()] == [
        ("saxpy.py:13", (8, 9)),
        ("saxpy.py:12", (4, 5)),
    ]


@every_route
def test_a_mistake_names_its_module(route):
    with config.using(assembler=route), pytest.raises(AssembleError) as refused:
        assemble([STORE, BROKEN], "sm_80")
    assert refused.value.message.splitlines()[1] == (
        "  module 2, PTX line 10 (saxpy.py:12): Arguments mismatch for instruction 'add'"
    )


@every_route
def test_a_missing_semicolon_is_explained(route):
    with config.using(assembler=route), pytest.raises(AssembleError) as refused:
        assemble(STORE.replace("bar.sync 0;", "bar.sync 0"), "sm_80")
    assert str(refused.value) == (
        "the PTX does not assemble for sm_80:\n"
        "  PTX line 13: Parsing error near 'st': syntax error\n"
        "    st.global.u32 [%rd1], %r1;\n"
        "  help: ptxas reports the place where it stopped parsing; a missing `;` is on the line before"
    )


@every_route
def test_a_function_that_nobody_defines_is_named(route):
    with config.using(assembler=route), pytest.raises(AssembleError) as refused:
        assemble(CALLER, "sm_80")
    assert "'helper'" in refused.value.message
    assert refused.value.help == "link it with the module that defines it: pd.link(kernel, module)"


@every_route
def test_too_much_static_shared_memory_is_refused_with_both_sizes(route):
    with config.using(assembler=route), pytest.raises(AssembleError) as refused:
        assemble(STORE.replace("tile[256]", "tile[60000]"), "sm_80")
    assert str(refused.value) == (
        "the PTX does not assemble for sm_80:\n"
        "  `store` declares 60000 bytes of static shared memory; the limit is 49152\n"
        "  help: declare it `.extern .shared` without a size, and pass `shared_bytes` at launch"
    )


@every_route
def test_a_version_that_the_assembler_does_not_know_is_explained(route):
    with config.using(assembler=route), pytest.raises(AssembleError) as refused:
        assemble(STORE.replace(".version 7.0", ".version 99.0"), "sm_80")
    assert refused.value.help == ("update the assembler (pip install -U 'ptxdsl[asm]'), or emit a lower .version")


@every_route
def test_an_unknown_option_of_ptxas_is_refused(route):
    with config.using(assembler=route), pytest.raises(AssembleError) as refused:
        assemble(STORE, "sm_80", options=["--frob"])
    assert refused.value.message == "the PTX does not assemble for sm_80:\n  Unknown option '-frob'"


@every_route
def test_an_option_of_ptxas_takes_effect(route):
    with config.using(assembler=route):
        assert assemble(STORE, "sm_80", options=["-maxrregcount=32", "--warning-as-error"]).warnings == ()


def test_an_unknown_architecture_is_refused_before_any_assembler_is_asked(monkeypatch):
    monkeypatch.setattr(assemblers, "ASSEMBLERS", {})
    with pytest.raises(AssembleError) as refused:
        assemble(STORE, "sm_42")
    assert str(refused.value) == (
        f"unknown architecture `sm_42`\n{refused.value.at.excerpt()}\n"
        "  help: known architectures are sm_80, sm_86, sm_87, sm_88, sm_89, sm_90, sm_90a, sm_100, sm_100a, sm_100f, "
        "sm_103, sm_103a, sm_103f, sm_110, sm_110a, sm_110f, sm_120, sm_120a, sm_120f, sm_121, sm_121a, sm_121f"
    )


@pytest.mark.parametrize("modules, called", [("int main() {}", "the text"), ([STORE, ""], "module 2 of 2")])
def test_a_text_that_is_no_ptx_is_refused(modules, called):
    with pytest.raises(AssembleError) as refused:
        assemble(modules, "sm_80")
    assert str(refused.value) == (f"{called} is not PTX: it has no `.version`\n  help: pass the text of a PTX module")


VARIABLE = HEADER + ".visible .global .align 4 .b8 table[16] = {1, 2, 3};\n"


@pytest.mark.parametrize(
    "modules, name",
    [
        ([STORE, STORE], "store"),
        ([HELPER, CALLER, HELPER.replace(", 1;", ", 2;")], "helper"),
        ([VARIABLE] * 2, "table"),
    ],
)
def test_a_name_that_two_modules_define_is_refused(modules, name):
    # nvJitLink would take the last definition and only print a note.
    with pytest.raises(AssembleError) as refused:
        assemble(modules, "sm_80")
    assert str(refused.value) == (
        f"`{name}` is defined in both module 1 and module {len(modules)}\n"
        "  help: define it in one module and declare it `.extern` in the others"
    )


@every_route
def test_a_declaration_is_no_definition(route):
    prototype = ".visible .func (.param .b32 r) helper(.param .b32 a);\n"
    declaring = HELPER.replace(HEADER, HEADER + prototype)
    another = CALLER.replace("caller", "another")
    with config.using(assembler=route):
        assert assemble([CALLER, declaring, another], "sm_80").kernels.keys() == {"caller", "another"}


def test_kernels_that_change_their_registers_are_assembled_by_ptxas_where_there_is_one(monkeypatch):
    for assembler in assemblers.ASSEMBLERS.values():
        monkeypatch.setattr(assembler, "why_not", lambda: None)
    assert isinstance(assemblers.choose(), assemblers.NvJitLink)
    assert isinstance(assemblers.choose(whole_program=True), assemblers.Ptxas)
    assert isinstance(assemblers.choose("nvjitlink", whole_program=True), assemblers.NvJitLink)


def test_the_cache_of_nvjitlink_is_not_asked(monkeypatch):
    """What it gives has no log, so that a kernel that was refused would be accepted the second time."""
    flags, create = [], assemblers.nvjitlink.create
    monkeypatch.setattr(
        assemblers.nvjitlink, "create", lambda count, given: (flags.extend(given), create(count, given))[1]
    )
    with config.using(assembler="nvjitlink", cache_dir="off"):
        assemble(STORE, "sm_90a")
    assert "-no-cache" in flags


@pytest.mark.gpu
def test_what_is_assembled_again_says_as_much():
    with config.using(assembler="nvjitlink", cache_dir="off"):
        first, *others = (assemble(STORE, "sm_90a").kernels for _ in range(3))
    assert first and others == [first, first]


def test_the_first_assembler_that_can_be_used_is_taken(monkeypatch):
    class Missing(assemblers.NvJitLink):
        def why_not(self):
            return "it is not installed"

    ptxas = assemblers.Ptxas()
    monkeypatch.setattr(assemblers, "ASSEMBLERS", {"nvjitlink": Missing(), "ptxas": ptxas})
    monkeypatch.setattr(ptxas, "why_not", lambda: None)
    assert assemblers.choose() is ptxas
    with pytest.raises(AssembleError) as refused:
        assemblers.choose("nvjitlink")
    assert str(refused.value) == (
        "PTXDSL_ASSEMBLER selects `nvjitlink`, which is not available: it is not installed\n"
        "  help: unset PTXDSL_ASSEMBLER to use the first assembler available"
    )
    monkeypatch.setattr(ptxas, "why_not", lambda: "there is none")
    with pytest.raises(AssembleError) as refused:
        assemblers.choose()
    assert str(refused.value) == (
        "no assembler for PTX is available: it is not installed; there is none\n"
        "  help: pip install 'ptxdsl[asm]'; it needs no GPU and no CUDA toolkit"
    )


def test_several_modules_without_nvlink_are_refused(monkeypatch):
    monkeypatch.setattr(assemblers, "tool", lambda name: None)
    outcome = assemblers.Ptxas().assemble([CALLER, HELPER], "sm_80", [])
    assert outcome.log == "error : linking several PTX modules requires nvlink, which is not on the PATH"


NO_SECTIONS = b"\x7fELF\n".ljust(64, b"\0")


class Counting:
    """An assembler that counts its runs."""

    def __init__(self, version="counting 1"):
        self.runs, self._version = 0, version

    def why_not(self):
        return None

    def version(self):
        return self._version

    def assemble(self, modules, arch, options):
        self.runs += 1
        log = "ptxas warning : slow\nCompiling entry function 'k' for\nFunction properties for k\nUsed 9 registers\n"
        return assemblers.Outcome(NO_SECTIONS + "".join(modules).encode(), log)


@pytest.fixture
def counting(monkeypatch):
    assembler = Counting()
    monkeypatch.setattr(assemblers, "ASSEMBLERS", {"counting": assembler})
    return assembler


def test_the_cache_gives_the_same_cubin_without_assembling(tmp_path, counting):
    with config.using(cache_dir=tmp_path):
        first, second = assemble(STORE, "sm_80"), assemble(STORE, "sm_80")
    assert counting.runs == 1
    assert first == second
    assert first.kernels == {"k": Resources(registers=9)}
    assert first.warnings == ("slow",)


def test_whatever_changes_the_cubin_changes_its_cache_entry(tmp_path, counting, monkeypatch):
    with config.using(cache_dir=tmp_path):
        assemble(STORE, "sm_80")
        assemble(STORE + "\n", "sm_80")
        assemble(STORE, "sm_90")
        assemble(STORE, "sm_80", options=["-O0"])
        assemble([STORE, HELPER], "sm_80")
        assert counting.runs == 5
        newer = Counting("counting 2")
        monkeypatch.setattr(assemblers, "ASSEMBLERS", {"counting": newer})
        assemble(STORE, "sm_80")
        assert newer.runs == 1


def test_a_damaged_cache_entry_is_made_anew(tmp_path, counting):
    with config.using(cache_dir=tmp_path):
        first = assemble(STORE, "sm_80")
        (entry,) = (p for p in tmp_path.rglob("*") if p.is_file())
        entry.write_bytes(entry.read_bytes()[:-5])
        assert assemble(STORE, "sm_80") == first
        assert assemble(STORE, "sm_80") == first
    assert counting.runs == 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no JSON",
        b"\xff\xfe",
        b"[]\nimage",
        b"{}\nimage",
        b"null",
        b"[" * 100_000,
        b'{"arch": "sm_80", "kernels": [], "warnings": []}\nimage',
        b'{"arch": "sm_80", "kernels": {"k": 9}, "warnings": []}\nimage',
        b'{"arch": "sm_80", "kernels": {"k": {"colour": 9}}, "warnings": []}\nimage',
        b'{"arch": "sm_80", "kernels": {}, "warnings": null}\nimage',
    ],
)
def test_an_entry_with_other_facts_is_made_anew(tmp_path, counting, content):
    with config.using(cache_dir=tmp_path):
        first = assemble(STORE, "sm_80")
        (entry,) = (p for p in tmp_path.rglob("*") if p.is_file())
        assert cache.store(tmp_path, entry.parent.name + entry.name, content)
        assert assemble(STORE, "sm_80") == first
        assert assemble(STORE, "sm_80") == first
    assert counting.runs == 2


def test_a_cache_that_cannot_be_written_costs_only_time(tmp_path, counting):
    (tmp_path / "file").write_text("")
    with config.using(cache_dir=tmp_path / "file"):
        assert assemble(STORE, "sm_80") == assemble(STORE, "sm_80")
    assert counting.runs == 2


def test_dumps_have_the_text_the_cubin_and_the_sass(tmp_path):
    with config.using(dump="all", dump_dir=tmp_path / "new"):
        cubin = assemble(STORE, "sm_80")
    files = {path.suffix: path for path in (tmp_path / "new").iterdir()}
    assert files.keys() == {".ptx", ".cubin", ".sass"}
    assert all(path.name.startswith("store.sm_80.") for path in files.values())
    assert files[".ptx"].read_text() == STORE
    assert files[".cubin"].read_bytes() == cubin.image
    assert "BAR.SYNC" in files[".sass"].read_text()


def test_the_ptx_is_dumped_also_where_it_does_not_assemble(tmp_path):
    with config.using(dump="ptx", dump_dir=tmp_path), pytest.raises(AssembleError):
        assemble([CALLER, BROKEN], "sm_80")
    assert sorted(path.name.split(".", 3)[3] for path in tmp_path.iterdir()) == ["0.ptx", "1.ptx"]


def test_a_dump_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with config.using(dump="ptx", dump_dir=tmp_path / "file" / "folder"), pytest.raises(Error) as refused:
        assemble(STORE, "sm_80")
    assert refused.value.message.startswith(f"cannot write the dump {tmp_path}/file/folder/store.sm_80.")
    assert refused.value.help == "set PTXDSL_DUMP_DIR to a writable folder"


def test_sass_shows_the_machine_instructions():
    sass = assemble(STORE, "sm_90a").sass()
    assert ".text.store" in sass
    assert "STG.E" in sass and "BAR.SYNC" in sass


def test_sass_without_a_disassembler_says_what_to_install(monkeypatch):
    cubin = assemble(STORE, "sm_80")
    monkeypatch.setattr(assemblers, "tool", lambda name: None)
    with pytest.raises(AssembleError) as refused:
        cubin.sass()
    assert str(refused.value) == (
        "no disassembler is installed, neither nvdisasm nor cuobjdump\n  help: pip install 'ptxdsl[sass]'"
    )


def test_a_cubin_can_be_pickled():
    cubin = assemble(STORE, "sm_80")
    assert pickle.loads(pickle.dumps(cubin)) == cubin


@pytest.mark.gpu
def test_the_driver_assembles_and_links_too():
    with config.using(assembler="driver"):
        cubin = assemble([CALLER, HELPER, STORE], "sm_80")
        assert cubin.image.startswith(b"\x7fELF")
        with pytest.raises(AssembleError) as refused:
            assemble(BROKEN, "sm_80")
    assert "PTX line 10 (saxpy.py:12): Arguments mismatch for instruction 'add'" in refused.value.message


@pytest.mark.parametrize("name", ["nvjitlink", "ptxas"])
def test_a_kept_cubin_is_loaded_and_no_command_is_started(name, tmp_path, monkeypatch):
    if assemblers.ASSEMBLERS[name].why_not() is not None:
        pytest.skip(f"there is no {name}")
    with config.using(cache_dir=tmp_path, assembler=name):
        made = assemble(STORE, "sm_80")
        monkeypatch.setattr(assemblers, "_run", None)
        assert assemble(STORE, "sm_80").image == made.image
