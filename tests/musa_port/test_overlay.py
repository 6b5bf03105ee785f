# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The overlay has torch's headers with the changes that a MUSA compiler needs, and no other change."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.utils.cpp_extension

import musa_port
from musa_port import cpp_extension, files, rules
from musa_port.engine import Engine
from musa_runtime import config
from tests.harness import skips

pytestmark = pytest.mark.once

INCLUDE = Path(torch.__file__).parent / "include"
MCC = Path(config.musa_home()) / "bin" / "mcc"
# Permitted changes in a header: macros of the compiler, headers and types of the SDK, and two names of ATen.
PERMITTED = re.compile(
    r"__CUDACC__|__CUDA_ARCH__(?: *[<>]=? *\d+)?|__nv_bfloat162?|c10::cuda::compat|REGISTER_CUDA_DISPATCH"
    r"|#include <(?:cuda|cuda_runtime|cuda_fp16|cuda_bf16)\.h>"
    r"|#include <(?:c10/cuda/CUDAMathCompat\.h|ATen/cuda/DeviceUtils\.cuh|ATen/native/cuda/DeviceSqrt\.cuh)>"
)

KERNEL = """
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <c10/util/complex.h>

struct Pair {
  c10::Half first;
  C10_HOST_DEVICE float sum() const { return first + 1.0f; }
};

template <typename T>
__global__ void widen(const T* x, float* y) {
  y[threadIdx.x] = static_cast<float>(x[threadIdx.x]);
}

__global__ void mixed(const Pair* pairs, const c10::complex<float>* z, __half* out) {
  const c10::complex<float> product = z[0] * z[1];
  const float length = std::abs(product);
  out[0] = c10::Half(pairs[0].sum() + length);
  CUDA_KERNEL_ASSERT(length >= 0);
}

void launch(const c10::Half* x, const c10::BFloat16* b, float* y) {
  widen<<<1, 32>>>(x, y);
  widen<<<1, 32>>>(b, y);
}
"""


@pytest.fixture(scope="module")
def ported(tmp_path_factory) -> Path:
    return musa_port.port_torch_headers(tmp_path_factory.mktemp("ported"))


@pytest.fixture(scope="module")
def overlay(ported: Path) -> Path:
    return musa_port.overlay_dir(ported)


def options(overlay: Path | None, ported: Path) -> list[str]:
    before = [] if overlay is None else [f"-I{overlay}"]
    return [
        "-std=c++20",
        "-DNDEBUG",
        *before,
        f"-I{musa_port.include_dir()}",
        *(f"-isystem{path}" for path in cpp_extension.include_paths()),
        f"-idirafter{ported}",
    ]


def needs_clang() -> None:
    sys.path.insert(0, str(MCC.parents[1] / "lib" / "mcc"))
    import two_pass

    try:
        two_pass.find_clang()
    except two_pass.ClangMissingError as error:
        pytest.skip(f"no clang for the passes: {error}")


def test_it_holds_every_header_of_torch_that_tests_for_the_compiler(overlay: Path) -> None:
    test = re.compile(r"\b__CUDACC__|\b__CUDA_ARCH__")
    folders = [INCLUDE / name for name in ("ATen", "c10", "torch/headeronly")]
    found = set()
    for path in (path for folder in folders for path in folder.rglob("*.h")):
        name = path.relative_to(INCLUDE)
        if not {"cuda", "cpu", "hip", "test", "xpu", "mps"} & set(name.parts) and test.search(
            path.read_text()
        ):
            found.add(str(name))
    held = {str(path.relative_to(overlay)) for path in overlay.rglob("*.h")}
    assert found == held | set(files.NOT_IN_OVERLAY)
    assert {"torch/headeronly/util/Half.h", "torch/headeronly/macros/Macros.h", "ATen/NumericUtils.h"} <= held


def test_nothing_but_compiler_and_sdk_changes() -> None:
    """Names such as DeviceType::CUDA are exported by libtorch; a header that renamed one would not link."""
    engine = Engine(rules.load("overlay"))
    changes = set()
    for source in files.overlay_sources():
        result = engine.port(source.path.read_text())
        changes |= {before for before, _ in result.changes}
        code = re.sub(r"//[^\n]*|/\*.*?\*/", "", result.text, flags=re.DOTALL)
        assert not re.search(r"__CUDA(?:CC|_ARCH)__", code), source.name
        assert not engine.port(result.text).changes, f"{source.name}: porting twice changes something"
    assert [change for change in changes if not PERMITTED.fullmatch(change)] == []
    kept = engine.port("DeviceType::CUDA kCUDA x.is_cuda() CUDAHooksInterface cudaStream_t CUDA_VERSION")
    assert not kept.changes


def test_an_equality_of_architectures_holds_for_none_of_musas(overlay: Path) -> None:
    text = (overlay / "torch" / "headeronly" / "macros" / "Macros.h").read_text()
    numbers = set(re.findall(r"__MUSA_ARCH__ == (\d+)", text))
    assert numbers and not numbers & {"210", "220", "310"}


def test_the_host_preprocesses_to_the_same_text_with_it(ported: Path, overlay: Path, tmp_path: Path) -> None:
    """The overlay is on the path of the host's sources too, and must not change them."""
    compiler = shutil.which("c++")
    if compiler is None:
        skips.skip_permanently("glibc-tools", "a C++ compiler")
    source = tmp_path / "host.cpp"
    held = sorted(str(path.relative_to(overlay)) for path in overlay.rglob("*.h"))
    # These are parts of other headers, or need a library whose headers the wheel does not have.
    parts = {"ATen/jiterator_macros.h", "c10/util/BFloat16-math.h", "c10/util/complex_math.h"}
    parts |= {"c10/util/logging_is_google_glog.h"}
    source.write_text(
        "#include <ATen/core/Tensor.h>\n"
        + "".join(f"#include <{name}>\n" for name in held if name not in parts)
    )
    texts = []
    for chosen in (None, overlay):
        command = [compiler, "-E", "-P", *options(chosen, ported), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        texts.append(done.stdout.replace(str(overlay), str(INCLUDE)))  # in __FILE__ of checks
    assert len(texts[0]) > 100_000
    assert texts[0] == texts[1]


@pytest.mark.slow
@pytest.mark.parametrize("with_overlay", [True, False])
def test_two_passes_need_it(ported: Path, overlay: Path, tmp_path: Path, with_overlay: bool) -> None:
    needs_clang()
    source = tmp_path / "kernel.mu"
    source.write_text(KERNEL)
    chosen = options(overlay if with_overlay else None, ported)
    command = [str(MCC), "--two-pass", "-fsyntax-only", *chosen, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if with_overlay:
        assert (done.returncode, done.stderr) == (0, "")
    else:
        assert done.returncode == 1 and "refused by the device pass" in done.stderr
        assert "operator float" in done.stderr and "'sum'" in done.stderr


HOST_CODE = """
#include <c10/util/TypeIndex.h>
#include <c10/util/string_view.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/complex.h>
#include <c10/util/typeid.h>
#include <torch/library.h>

// The host's uses of torch's headers, in a source of mcc and in one of the host's compiler.
static bool out_of_range() {
  try {
    c10::basic_string_view<char>("abc", 3).at(5);
  } catch (const std::out_of_range&) {
    return true;
  }
  return false;
}
std::string FUNCTION() {
  return std::to_string(sizeof(c10::TensorImpl)) + " " + std::to_string(sizeof(c10::Half)) + " " +
      std::to_string(alignof(c10::complex<double>)) + " " + std::to_string(out_of_range()) + " " +
      std::to_string(std::hash<c10::util::type_index>()(c10::util::get_type_index<c10::Half>())) + " " +
      std::string(caffe2::TypeMeta::Make<c10::BFloat16>().name()) + " " +
      std::to_string(float(c10::Half(1.5f)));
}
"""


@pytest.mark.slow
@pytest.mark.full
def test_one_pass_keeps_the_hosts_side_as_it_is(musa, tmp_path: Path) -> None:
    """The emulator's mcc defines __MUSA_ARCH__ for the host's code too. Layouts, identities of types and
    range checks are nevertheless those of the host's compiler."""
    (tmp_path / "device.mu").write_text("#define FUNCTION of_mcc\n" + HOST_CODE)
    (tmp_path / "host.cpp").write_text(
        "#define FUNCTION of_host\n"
        + HOST_CODE
        + "std::string of_mcc();\n"
        + "TORCH_LIBRARY(overlay_test, m) {\n"
        + '  m.def("of_mcc", [](int64_t) { return of_mcc(); });\n'
        + '  m.def("of_host", [](int64_t) { return of_host(); });\n}\n'
    )
    sources = [tmp_path / "host.cpp", tmp_path / "device.mu"]
    cpp_extension.load("overlay_test", sources, build_directory=str(tmp_path), is_python_module=False)
    ours, theirs = torch.ops.overlay_test.of_mcc(0), torch.ops.overlay_test.of_host(0)
    assert ours == theirs
    assert theirs.endswith(" c10::BFloat16 1.500000") and " 1 " in theirs
