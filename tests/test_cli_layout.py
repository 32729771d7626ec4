"""The command `ptxdsl layout`: what it draws, where it writes, what it refuses."""

from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from ptxdsl import cli
from ptxdsl.layout import atom, bank_wavefronts, parse, to_latex, to_svg, to_text

SWIZZLED = "Sw<3,3,3> o 0 o (8,64):(64,1)"
C_OF_MMA = "((4,8),(2,2)):((32,1),(16,8))"
TWO = """\
(2,4):(4,1)

   0 1 2 3
 0 0 1 2 3
 1 4 5 6 7

(2,2):(1,2)

   0 1
 0 0 2
 1 1 3
"""
SWIZZLE_OF_F32 = """\
Sw<1,2,1> on 32-bit elements: where blocks of 16 bytes are stored

             block 0           block 1
 0   at 0, banks 0-3   at 1, banks 4-7
 1 at 3, banks 12-15  at 2, banks 8-11
"""
ROWS_OF_128_BYTES = """\
ldmatrix.x1 of (8,64):(64,1): 64 wavefronts of 8 at best, 8-way conflict

one instruction; rows are phase.wavefront, columns banks
       0-3   4-7  8-11 12-15 16-19 20-23 24-27 28-31
 0.0    T0
 0.1    T1
 0.2    T2
 0.3    T3
 0.4    T4
 0.5    T5
 0.6    T6
 0.7    T7
"""
SWIZZLED_ROWS = """\
ldmatrix.x4 of Sw<3,3,3> o 0 o (8,64):(64,1): 8 wavefronts of 8 at best, no conflict

one instruction; rows are phase.wavefront, columns banks
       0-3   4-7  8-11 12-15 16-19 20-23 24-27 28-31
 0.0    T0    T1    T2    T3    T4    T5    T6    T7
 1.0    T9    T8   T11   T10   T13   T12   T15   T14
 2.0   T18   T19   T16   T17   T22   T23   T20   T21
 3.0   T27   T26   T25   T24   T31   T30   T29   T28
"""
DESCRIBED = """\
B of wgmma.m64n8k16.f32.bf16: K-major, 128-byte swizzle, leading 16 bytes, stride 1024 bytes, descriptor \
0x4000004000010000 | address / 16

byte of each chunk, by row; starts of the parts of N: 8:64, of K: 4:2
   chunk 0 chunk 1
 0       0      16
 1     144     128
 2     288     304
 3     432     416
 4     576     592
 5     720     704
 6     864     880
 7    1008     992
"""
COPIES = (
    "write ldmatrix.x1|x2|x4[.trans], stmatrix.x1|x2|x4[.trans], cp.async.4|8|16, "
    "or ld|st[.global|.shared] with 1, 2, 4, 8 or 16 bytes as .16, .b128 or .v4.b32"
)
LAYOUTS = "write ((4,8),(2,2)):((32,1),(16,8)), Sw<3,3,3> or Sw<3,3,3> o 0 o (8,64):(64,1), as layouts are printed"


@pytest.fixture
def run(capfdbinary, monkeypatch):
    """Runs the command; returns its exit status, stdout and stderr."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments):
        try:
            code = cli.main(["layout", *arguments])
        except SystemExit as ended:
            code = ended.code
        out, err = capfdbinary.readouterr()
        return SimpleNamespace(code=code, out=out.decode(), err=err.decode())

    return run


def stripped(text):
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    "arguments, printed",
    [
        (["(2,4):(4,1)", "(2,2)"], TWO),
        (["Sw<1,2,1>", "--bits", "32"], SWIZZLE_OF_F32),
        (["(8,64):(64,1)", "--banks", "ldmatrix.x1"], ROWS_OF_128_BYTES),
        ([SWIZZLED, "--banks", "ldmatrix.x4"], SWIZZLED_ROWS),
        (["Sw<3,3,3> o 0 o (64,64):(64,1)", "--b", "wgmma.m64n8k16.f32.bf16"], DESCRIBED),
    ],
)
def test_it_prints(run, arguments, printed):
    done = run(*arguments)
    assert (done.code, stripped(done.out), done.err) == (0, printed, "")


def test_a_layout_without_an_offset_is_the_one_with_offset_0(run):
    done = run("Sw<2,3,3> o (64,32):(32,1)")
    assert done.out == run("Sw<2,3,3> o 0 o (64,32):(32,1)").out
    assert done.out.startswith("Sw<2,3,3> o 0 o (64,32):(32,1) on 16-bit elements: one colour is four banks\n")


@pytest.mark.parametrize("spec", [C_OF_MMA, SWIZZLED, "Sw<2,3,3>", "mma.m16n8k16.f32.f16", "ldmatrix.x4"])
def test_every_kind_of_spec_in_every_form(run, spec):
    value = parse(spec)
    assert run(spec).out == to_text(value, color=False)
    assert run(spec, "--latex").out == to_latex(value)
    svg = run(spec, "--svg", "-").out
    assert svg == to_svg(value)
    assert ElementTree.fromstring(svg).tag.endswith("svg")


@pytest.mark.parametrize("arguments, message, help", [
    (
        ["(64,64):(64,1)", "--a", "wgmma.m64n8k16.f32.bf16"],
        "wgmma reads operand A of wgmma.m64n8k16.f32.bf16 as swizzle atoms of 8 rows of 16 bytes along K or M, at one "
        "stride in each direction, with no swizzle: (64,64):(64,1) does not have these atoms in each (64,16)",
        "use this layout instead: Sw<3,3,3> o 0 o (64,64):(64,1)",
    ),
    (
        ["(64,64):(64,1)", "--a", "wgmma.m64n8k16.f32.bf16", "--b", "wgmma.m64n8k16.f32.bf16"],
        "--a and --b cannot be combined",
        "draw each with its own command",
    ),
])  # fmt: skip
def test_descriptors_that_are_not_drawn(run, arguments, message, help):
    done = run(*arguments)
    assert (done.code, done.err) == (2, f"ptxdsl: {message}\n  help: {help}\n")


def test_operands_in_shared_memory_are_drawn_by_their_bytes(run):
    lines = run("wgmma.m64n8k16.f32.bf16").out.splitlines()
    a = lines.index("A (M x K) in shared memory: bytes of a K-major tile, 128-byte swizzle")
    assert lines[a + 3].split() == ["1", *(str(144 + 2 * k) for k in range(8)), *(str(128 + 2 * k) for k in range(8))]
    assert "B (K x N) in shared memory: bytes of a K-major tile, 128-byte swizzle" in lines
    assert "C (M x N)" in lines


def test_a_short_name_is_the_usual_instruction(run):
    assert run("mma.m16n8k16").out == to_text(atom("mma.m16n8k16.f32.f16"), color=False)


def test_the_bits_of_an_element_move_the_banks(run):
    bytes_ = parse("(16,64):(64,1)")
    drawn = run("(16,64):(64,1)", "--banks", "ldmatrix.x4", "--bits", "8").out
    assert drawn == to_text(bank_wavefronts("ldmatrix.x4", bytes_, 8), color=False)
    assert drawn != run("(16,64):(64,1)", "--banks", "ldmatrix.x4").out
    assert run(SWIZZLED, "--bits", "32", "--svg").out == to_svg(parse(SWIZZLED).picture(32))


def test_drawings_go_to_files(run, tmp_path):
    svg, latex, text = (tmp_path / name for name in ("a.svg", "a.tex", "a.txt"))
    assert run("(4,8)", "--svg", str(svg), "--latex", str(latex)) == SimpleNamespace(code=0, out="", err="")
    assert svg.read_text() == to_svg(parse("(4,8)"))
    assert latex.read_text() == to_latex(parse("(4,8)"))
    assert run("(4,8)", "-o", str(text)).out == ""
    assert text.read_text() == to_text(parse("(4,8)"), color=False)
    assert run("(2,8)", "--svg", "-o", str(svg)).out == ""
    assert svg.read_text() == to_svg(parse("(2,8)"))


def test_a_file_may_be_named_before_the_spec_and_as_one_by_its_path(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("--svg", "a.svg", "(4,8)") == SimpleNamespace(code=0, out="", err="")
    assert run("(4,8)", "--svg", "./(4,8)") == SimpleNamespace(code=0, out="", err="")
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == dict.fromkeys(
        ["a.svg", "(4,8)"], to_svg(parse("(4,8)"))
    )


def test_colours_are_for_terminals_only(run, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert "\x1b[" not in run("(4,8)").out
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b[30;48;5;153m" in run("(4,8)").out
    run("(4,8)", "-o", str(tmp_path / "a.txt"))
    assert "\x1b[" not in (tmp_path / "a.txt").read_text()


@pytest.mark.parametrize(
    "arguments, message, help",
    [
        (["(4,8"], "cannot read the layout '(4,8': at column 5 found the end, expected ')'", LAYOUTS),
        (["(4,8):(1"], "cannot read the layout '(4,8):(1': at column 9 found the end, expected ')'", LAYOUTS),
        (
            ["(4,8):(1,4,2)"],
            "shape (4,8) and stride (1,4,2) have different nesting: in the shape (4,8) has 2 modes, "
            "in the stride (1,4,2) has 3 modes",
            "give each int of the shape one int in the stride",
        ),
        (
            ["nonsense"],
            "'nonsense' is not a layout, a swizzle or an instruction",
            f"{LAYOUTS}; or an instruction such as mma.m16n8k16.f32.f16, ldmatrix.x4, cp.async.16 or ld.shared.16",
        ),
        ([], "SPEC is missing", "give one, as in: ptxdsl layout '(4,8)'"),
        (
            ["(8,8)", "--svg", "(4,4)"],
            "--svg takes (4,4) as the file to write, but it is a SPEC",
            "write the SPEC first, as in: ptxdsl layout '(4,4)' --svg FILE, or name the file ./(4,4)",
        ),
        (
            ["--svg", "(8,8)"],
            "--svg takes (8,8) as the file to write, but it is a SPEC",
            "write the SPEC first, as in: ptxdsl layout '(8,8)' --svg FILE, or name the file ./(8,8)",
        ),
        (
            ["--latex", "mma.m16n8k16"],
            "--latex takes mma.m16n8k16 as the file to write, but it is a SPEC",
            "write the SPEC first, as in: ptxdsl layout 'mma.m16n8k16' --latex FILE, or name the file ./mma.m16n8k16",
        ),
        (["ldmatrix.x3"], "there is no copy atom 'ldmatrix.x3'", COPIES),
        (
            ["mma.m16n8k17"],
            "there is no MMA atom 'mma.m16n8k17'",
            "write mma.SHAPE.ACCUMULATOR.INPUT; the shapes are m16n8k16, m16n8k8, m16n8k4, m16n8k32, m8n8k4, m8n8k16",
        ),
        (
            ["(1024,1024,1024)"],
            "(1024,1024,1024):(1,1024,1048576) has 1073741824 cells; a drawing has at most 65536",
            "draw one tile of it",
        ),
        (["Sw<30,4,30>"], f"Sw<30,4,30> has {1 << 60} cells; a drawing has at most 65536", "draw one tile of it"),
        (["(8,64)", "--banks", "mma.m16n8k16"], "there is no copy atom 'mma.m16n8k16'", COPIES),
        (
            ["(8,64)", "--banks", "ld.global.16"],
            "ld.global.16 does not access shared memory, so it has no bank conflicts",
            "use ld.shared or st.shared",
        ),
        (
            ["Sw<3,3,3>", "--banks", "ldmatrix.x4"],
            "--banks ldmatrix.x4 needs a layout; Sw<3,3,3> is not a layout",
            "write 'Sw<3,3,3> o 0 o SHAPE:STRIDE'",
        ),
        (
            ["ldmatrix.x4", "--banks", "ldmatrix.x4"],
            "--banks ldmatrix.x4 needs a layout; ldmatrix.x4 is not a layout",
            "pass a layout as SPEC",
        ),
        (
            ["(12,64):(64,1)", "--banks", "ldmatrix.x4"],
            "one ldmatrix.x4 of a warp accesses (16,16) elements here, which do not divide (12,64)",
            "use a layout of (16,64), or an instruction of fewer than 4 matrices",
        ),
        (
            ["(32,4):(4,1)", "--banks", "ld.shared.16"],
            "ld.shared.16 moves 128 contiguous bits; mode 1 of (32,4):(4,1) has 4 elements of 16 bits",
            "use an instruction that moves fewer bytes",
        ),
        (
            ["(32,4):(4,1)", "--banks", "ld.shared.4", "--bits", "64"],
            "ld.shared.4 moves 32 contiguous bits; mode 1 of (32,4):(4,1) has 4 elements of 64 bits",
            "use an instruction that moves more bytes",
        ),
        (
            ["4", "8", "--svg", "a.svg"],
            "--svg draws one SPEC; 2 are given",
            "draw each with its own command",
        ),
        (["4", "--svg", "--latex"], "--svg and --latex both write to stdout", "name a file for each"),
        (
            ["4", "--svg", "--latex", "-o", "a"],
            "--svg and --latex both write to a",
            "name a file for each",
        ),
        (["4", "--svg", "b", "--latex", "b"], "--svg and --latex both write to b", "name a file for each"),
        (
            ["4", "--latex", "a.tex", "-o", "b"],
            "-o b is not used: --latex names its own file",
            "leave out -o",
        ),
    ],
)
def test_it_refuses(run, arguments, message, help):
    done = run(*arguments)
    assert (done.code, done.out, done.err) == (2, "", f"ptxdsl: {message}\n  help: {help}\n")


def test_it_refuses_a_file_that_cannot_be_written(run):
    done = run("4", "--svg", "/nowhere/a.svg")
    assert (done.code, done.err) == (2, "ptxdsl: /nowhere/a.svg cannot be written: No such file or directory\n")


def test_it_refuses_other_widths(run):
    done = run("4", "--bits", "7")
    assert done.code == 2
    assert "argument --bits: invalid choice: 7 (choose from 8, 16, 32, 64, 128)" in done.err


def test_a_box_of_a_tensor_map_is_drawn_as_its_layout(run):
    box = "TensorMap(f32, (8, 16), swizzle=64)"
    drawn = run(box)
    assert (drawn.code, drawn.err) == (0, "")
    assert drawn.out == run("Sw<2,2,3> o 0 o (8,16):(16,1)", "--bits", "32").out
    assert "on 32-bit elements" in drawn.out
    assert run(box, "--svg").out.startswith("<svg")


def test_the_boxes_of_a_tile_are_drawn(run):
    drawn = run("Sw<3,3,3> o 0 o (8,(64,2)):(64,(1,512))", "--boxes", "cp.async.bulk.tensor.shared.global")
    assert (drawn.code, drawn.err) == (0, "")
    assert "2 boxes of (8,64), 128-byte swizzle" in drawn.out
    assert " box 1, byte 1024 " in drawn.out and " box 0, byte 144 " in drawn.out
    of_map = run("TensorMap.tiled(bf16, (8, 128), swizzle=128)", "--boxes", "cp.async.bulk.tensor.shared.global")
    assert of_map.out == drawn.out


@pytest.mark.parametrize(("arguments", "message", "help"), [
    (
        ["(64,64):(66,1)", "--boxes", "cp.async.bulk.tensor.shared.global"],
        "a box must start at a multiple of 128 bytes of shared memory: (64,64):(66,1) has one at byte 132",
        "use this layout instead: Sw<3,3,3> o 0 o (64,64):(64,1)",
    ),
    (
        ["mma.m16n8k16", "--boxes", "cp.async.bulk.tensor.shared.global"],
        "cp.async.bulk.tensor.shared.global needs the layout of a tile; found mma.m16n8k16.f32.f16",
        "pass the layout of a tile in shared memory",
    ),
    (
        ["(64,64)", "--boxes", "cp.async.bulk.tensor.shared.global", "--banks", "ldmatrix.x4"],
        "--banks and --boxes cannot be combined",
        "draw each with its own command",
    ),
])  # fmt: skip
def test_what_has_no_boxes_is_refused(run, arguments, message, help):
    refused = run(*arguments)
    assert refused.code == 2
    assert refused.err == f"ptxdsl: {message}\n  help: {help}\n"


def test_the_descriptor_of_a_tile_of_several_boxes_is_drawn(run):
    drawn = run("TensorMap.tiled(bf16, (128, 128), swizzle=128)", "--a", "wgmma.m64n256k16.f32.bf16")
    assert (drawn.code, drawn.err) == (0, "")
    assert "starts of the parts of M: 2:512, of K: (4,2):(2,1024)" in drawn.out


@pytest.mark.parametrize(("spec", "message", "help"), [
    (
        "TensorMap(bf16, (8, 96), swizzle=128)",
        "the last axis of a box of (8, 96) has 192 bytes of bf16; swizzle=128 takes no more than 128",
        "a box is written as the array's axes, outermost first: (96, 8)?",
    ),
    (
        "TensorMap(bf17, (8, 64))",
        "'TensorMap(bf17, (8, 64))' is not a tensor map",
        "write TensorMap(TYPE, (ROWS, COLUMNS), swizzle=128) or TensorMap.tiled(…), as their repr does",
    ),
])  # fmt: skip
def test_what_is_no_tensor_map_is_refused(run, spec, message, help):
    refused = run(spec)
    assert (refused.code, refused.err) == (2, f"ptxdsl: {message}\n  help: {help}\n")
