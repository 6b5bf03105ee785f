# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The compiler: Triton's passes over TTIR, which inline the functions that a kernel calls. The binary is the
text of the TTIR.
"""

from __future__ import annotations

import dataclasses
import hashlib
import types
from typing import Any

from triton._C.libtriton import ir, passes
from triton.backends.compiler import BaseBackend, GPUTarget


@dataclasses.dataclass(frozen=True)
class Options:
    """The options that Triton's frontend and Inductor's launcher read."""

    num_warps: int = 4
    num_ctas: int = 1
    num_stages: int = 2
    warp_size: int = 32
    cluster_dims: tuple[int, ...] = (1, 1, 1)
    enable_fp_fusion: bool = True
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e5",)
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "ieee"
    allowed_dot_input_precisions: tuple[str, ...] = ("ieee",)
    max_num_imprecise_acc_default: int = 0
    extern_libs: tuple[Any, ...] = ()
    debug: bool = False
    backend_name: str = "musa"
    sanitize_overflow: bool = False
    launch_cooperative_grid: bool = False
    arch: str | None = None
    instrumentation_mode: str = ""

    def hash(self) -> str:
        return hashlib.sha256(repr(self).encode()).hexdigest()


class StubBackend(BaseBackend):
    """Compiles for targets of the name "musa"."""

    binary_ext = "musabin"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == "musa"

    def parse_options(self, options: dict[str, Any]) -> Options:
        names = {field.name for field in dataclasses.fields(Options)}
        given = {name: value for name, value in options.items() if name in names and value is not None}
        return Options(**given)

    def pack_metadata(self, metadata: Any) -> tuple[int, ...]:
        return metadata.num_warps, metadata.num_ctas, metadata.shared

    def get_codegen_implementation(self, options: Options) -> dict[str, Any]:
        return {"min_dot_size": lambda left, right: (1, 1, 1)}

    def get_module_map(self) -> dict[str, types.ModuleType]:
        from triton.language.extra.cuda import libdevice  # declares functions as "__nv_<name>"

        return {"triton.language.extra.libdevice": libdevice}

    def load_dialects(self, context: Any) -> None:
        pass

    def hash(self) -> str:
        return "musa stub 1"

    def add_stages(self, stages: dict[str, Any], options: Options, language: Any = None) -> None:
        def ttir(module: Any, metadata: dict[str, Any]) -> Any:
            manager = ir.pass_manager(module.context)
            passes.common.add_inliner(manager)
            passes.common.add_canonicalizer(manager)
            passes.common.add_cse(manager)
            manager.run(module, "make_ttir")
            return module

        def binary(module: Any, metadata: dict[str, Any]) -> bytes:
            metadata.update(
                shared=0,
                name=module.get_entry_func_name(),
                tmem_size=0,
                global_scratch_size=0,
                global_scratch_align=1,
                profile_scratch_size=0,
                profile_scratch_align=1,
            )
            return module.str_nodebug().encode()

        stages["ttir"] = ttir
        stages["musabin"] = binary
