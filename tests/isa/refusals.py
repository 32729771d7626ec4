"""What the author of a wrong instruction reads."""

from __future__ import annotations

from ptxdsl.errors import VerifyError
from ptxdsl.parse import parse
from ptxdsl.verify import verify

SET = " ".join(
    f"mov.{type} %{letter}{n}, {zero};"
    for letter, type, zero in (("r", "b32", "0"), ("d", "b64", "0"), ("h", "b16", "0"), ("f", "f32", "0f00000000"))
    for n in range(10)
)
FRAME = f""".version 8.8
.target sm_100
.address_size 64
.global .align 16 .b8 table[64];
.visible .entry k(.param .u64 p) {{
.reg .b32 %r<10>; .reg .b64 %d<10>; .reg .b16 %h<10>; .reg .f32 %f<10>; .reg .f64 %e<10>; .reg .pred %p<4>;
{SET} setp.ne.u32 %p0, %r0, 0;
.shared .align 16 .b8 tile[1024];
"""


def refusal(instruction: str) -> str:
    """The text of the error for one instruction on line 9, or "" if it is fine."""
    try:
        verify(parse(f"{FRAME}{instruction}\nret;\n}}\n"))
    except VerifyError as error:
        return str(error).replace("\n  <ptx>:9", "")
    return ""
