"""Special registers: names, types and requirements (PTX ISA, "Special Registers")."""

from __future__ import annotations

from ..ir import SpecialRegister
from ..types import Type, b32, pred, u32, u64
from .target import Requirement, requirement

SPECIAL_REGISTERS: dict[str, SpecialRegister] = {}
REQUIREMENTS: dict[str, Requirement] = {}


def _declare(names: str, type: Type, ptx: str = "1.0", sm: int = 10) -> None:
    for name in names.split():
        SPECIAL_REGISTERS[f"%{name}"] = SpecialRegister(f"%{name}", type)
        REQUIREMENTS[f"%{name}"] = requirement(ptx, sm)


def _vectors(*names: str) -> str:
    return " ".join(f"{name}.{axis}" for name in names for axis in "xyzw")


_declare(_vectors("tid", "ntid", "ctaid", "nctaid"), u32)
_declare("laneid warpid smid clock pm0 pm1 pm2 pm3", u32, "1.3")
_declare("nwarpid nsmid lanemask_eq lanemask_le lanemask_lt lanemask_ge lanemask_gt", u32, "2.0", 20)
_declare("pm4 pm5 pm6 pm7", u32, "3.0", 20)
_declare("clock_hi", u32, "5.0", 20)
_declare("globaltimer_lo globaltimer_hi", u32, "3.1", 30)
_declare("total_smem_size dynamic_smem_size", u32, "4.1", 20)
_declare("aggr_smem_size", u32, "8.1", 90)
_declare(_vectors("clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid"), u32, "7.8", 90)
_declare("cluster_ctarank cluster_nctarank", u32, "7.8", 90)
_declare("is_explicit_cluster", pred, "7.8", 90)
_declare("gridid", u64, "3.0")
_declare("clock64", u64, "2.0", 20)
_declare("globaltimer", u64, "3.1", 30)
_declare("current_graph_exec", u64, "8.0", 50)
_declare(" ".join(f"pm{n}_64" for n in range(8)), u64, "4.0", 50)
_declare(" ".join(f"envreg{n}" for n in range(32)), b32, "2.1")
_declare(" ".join(f"reserved_smem_offset_{n}" for n in ("begin", "end", "cap", "0", "1")), b32, "7.6", 80)
