# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The porting engine: its changes in CUDA sources, and its reports about the rest."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import musa_port as porting
from musa_port import files, rules
from musa_port.__main__ import main
from musa_port.engine import Engine

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]

CUDA = """\
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include "kernels.cuh"
__global__ void fill(float* x) { x[threadIdx.x] = 1; }
void run(const at::Tensor& x) {
  TORCH_CHECK(x.is_cuda(), "x must be a CUDA tensor"); // cudaMalloc is in a comment
  const c10::cuda::CUDAGuard guard(x.device());
  cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  fill<<<1, 32, 0, stream>>>(x.data_ptr<float>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  cudaDeviceSynchronize();
}
"""


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(rules.load("torch"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "extension"
    folder.mkdir()
    (folder / "fill.cu").write_text(CUDA)
    (folder / "kernels.cuh").write_text("#pragma once\n")
    return folder


def test_names_paths_and_launches(engine: Engine) -> None:
    ported = engine.port(CUDA).text
    assert "#include <ATen/musa/MUSAContext.h>" in ported and '#include "kernels.muh"' in ported
    assert "x.is_privateuseone()" in ported
    assert "c10::musa::MUSAGuard guard" in ported
    assert "musaStream_t stream = at::musa::getCurrentMUSAStream();" in ported
    assert "C10_MUSA_KERNEL_LAUNCH_CHECK();" in ported and "musaDeviceSynchronize();" in ported
    assert "fill<<<1, 32, 0, stream>>>(x.data_ptr<float>());" in ported
    assert engine.path("native/cuda/Fill.cu") == "native/musa/Fill.mu"


def test_porting_twice_changes_nothing(engine: Engine) -> None:
    once = engine.port(CUDA)
    again = engine.port(once.text)
    assert again.text == once.text and not again.changes


def test_the_headers_of_torch_port_and_stay_ported(engine: Engine, tmp_path: Path) -> None:
    report = files.write(files.wheel_sources(), engine, tmp_path / "first")
    assert report.files > 100 and sum(report.changes.values()) > 1000
    again = files.write(files.tree_sources(tmp_path / "first"), engine, tmp_path / "second")
    assert sum(again.changes.values()) == 0


def test_an_unchanged_file_is_not_written_again(engine: Engine, source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert files.write(files.tree_sources(source), engine, out).written == 2
    before = (out / "fill.mu").stat().st_mtime_ns
    assert files.write(files.tree_sources(source), engine, out).written == 0
    assert (out / "fill.mu").stat().st_mtime_ns == before


def test_the_input_is_never_written(engine: Engine, source: Path) -> None:
    (source / "plain.h").write_text("int x;\n")
    with pytest.raises(files.InputError, match="is read and would be written"):
        files.write(files.tree_sources(source / "plain.h"), engine, source)
    assert (source / "fill.cu").read_text() == CUDA


def test_two_inputs_with_one_output_are_refused_before_anything_is_written(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("first.h", "cuda/a.cu", "musa/a.mu", "cuda/b.cuh", "musa/b.muh"):
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text("int x;\n")
    output = tmp_path / "result"
    assert main([str(source), "-o", str(output)]) == 2
    told = capsys.readouterr().err
    assert f"musa/a.mu: {source / 'cuda/a.cu'}, {source / 'musa/a.mu'}" in told
    assert f"musa/b.muh: {source / 'cuda/b.cuh'}, {source / 'musa/b.muh'}" in told
    assert "2 results would each be written by more than one input" in told and "Fix:" in told
    assert not output.exists()
    assert main([str(source), "--dry-run"]) == 2, "a dry run reports what a run would"
    with pytest.raises(files.InputError, match="more than one input"):
        porting.port_folder(source, output)
    assert not output.exists()


def test_files_of_one_name_given_by_hand_are_refused_too(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.cu").write_text(CUDA)
    inputs = [str(tmp_path / "one" / "x.cu"), str(tmp_path / "two" / "x.cu")]
    assert main([*inputs, "-o", str(tmp_path / "result")]) == 2
    assert main([inputs[0], inputs[0], "-o", str(tmp_path / "result"), "--quiet"]) == 0, "one file, twice"


@pytest.mark.parametrize(
    ("cuda", "musa"),
    [
        ("#if CUDA_VERSION >= 12080", "#if 11040 >= 12080"),
        ("#if defined(CUDA_VERSION) && CUDA_VERSION < 11000", "#if defined(MUSA_VERSION) && 11040 < 11000"),
        ("#ifndef CUDART_VERSION", "#ifndef MUSA_VERSION"),
        ("  printf(format, CUDART_VERSION);", "  printf(format, 11040);"),
        ("#define CUDA_VERSION 0", "#define PORTED_MUSA_VERSION 0"),
        ("int x; // CUDA_VERSION", "int x; // CUDA_VERSION"),
        ("#if __CUDA_ARCH__ >= 800", "#if __MUSA_ARCH__ >= 220"),
        ("#if __CUDA_ARCH__ < 1000", "#if __MUSA_ARCH__ < 1000"),
        ("#if __CUDA_ARCH__ == 800", "#if __MUSA_ARCH__ == 800"),
        ("#if __CUDA_ARCH__ != 900", "#if __MUSA_ARCH__ != 900"),
    ],
)
def test_versions_switch_on_nothing_that_musa_does_not_have(engine: Engine, cuda: str, musa: str) -> None:
    """MUSA_VERSION is 40301 or 50200, so in place of CUDA_VERSION it would be later than any CUDA."""
    ported = engine.port(cuda + "\n")
    assert ported.text == musa + "\n"
    assert not engine.port(ported.text).changes


@pytest.mark.parametrize(
    ("cuda", "musa"),
    [
        ("TORCH_LIBRARY_IMPL(ours, CUDA, m) {", "TORCH_LIBRARY_IMPL(ours, PrivateUse1, m) {"),
        ("STABLE_TORCH_LIBRARY_IMPL( _, CUDA , m)", "STABLE_TORCH_LIBRARY_IMPL( _, PrivateUse1 , m)"),
        ("TORCH_LIBRARY_IMPL(ours, AutogradCUDA, m)", "TORCH_LIBRARY_IMPL(ours, AutogradPrivateUse1, m)"),
        ("TORCH_LIBRARY_IMPL(ours, AutocastCUDA, m)", "TORCH_LIBRARY_IMPL(ours, AutocastPrivateUse1, m)"),
        ("TORCH_LIBRARY_IMPL(ours, CPU, m)", "TORCH_LIBRARY_IMPL(ours, CPU, m)"),
        ("DispatchKey::SparseCUDA", "DispatchKey::SparsePrivateUse1"),
        ("at::cuda::CUDAGuard guard(0);", "at::musa::MUSAGuard guard(0);"),
        ("c10::cuda::MaybeSetDevice(0);", "c10::musa::MaybeSetDevice(0);"),
        ("#include <cub/block/block_load.cuh>", "#include <cub/block/block_load.cuh>"),
        ('#include "cuda/vec.cuh"', '#include "musa/vec.muh"'),
    ],
)
def test_names_of_extensions(engine: Engine, cuda: str, musa: str) -> None:
    ported = engine.port(cuda + "\n")
    assert ported.text == musa + "\n"
    assert not engine.port(ported.text).changes


def test_macros_of_the_command_line_have_the_names_that_the_sources_test(engine: Engine) -> None:
    flags = ["-DWITH_CUDA", "-DUSE_CUDA=1", "-UHAVE_CUDA", "-DCPU_ONLY", "-O2", "-Icuda", "-DNAME=cuda"]
    assert porting.port_macros(flags) == [
        *("-DWITH_MUSA", "-DUSE_MUSA=1", "-UHAVE_MUSA", "-DCPU_ONLY", "-O2", "-Icuda", "-DNAME=cuda")
    ]
    assert "#ifdef WITH_MUSA" in engine.port("#ifdef WITH_CUDA\n#endif\n").text


def test_folders_keep_their_places_to_each_other(tmp_path: Path) -> None:
    texts = {
        "csrc/cuda/scatter.cu": '#include "scatter.cuh"\n#include "../extensions.h"\n',
        "csrc/cuda/scatter.cuh": '#include "../../shared/types.h"\n',
        "csrc/cpu/scatter.cpp": '#include "../extensions.h"\n',
        "csrc/extensions.h": "#include <ATen/cuda/CUDAContext.h>\n",
        "shared/types.h": "using T = cudaStream_t;\n",
        "shared/unrelated.h": "",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    sources = [tmp_path / "csrc/cuda/scatter.cu", tmp_path / "csrc/cpu/scatter.cpp"]
    out = tmp_path / "csrc" / "build"
    ported = porting.port_sources(sources, out)
    assert ported == [out / "csrc/musa/scatter.mu", out / "csrc/cpu/scatter.cpp"]
    found = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    beside = {"csrc/musa/scatter.muh", "csrc/extensions.h", "shared/types.h"}
    assert found == {"csrc/musa/scatter.mu", "csrc/cpu/scatter.cpp", *beside}
    assert "musaStream_t" in (out / "shared/types.h").read_text()
    assert all((tmp_path / name).read_text() == text for name, text in texts.items())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('asm("mov.u32 %0, %%laneid;" : "=r"(lane));', "assembly"),
        ("cub::DeviceRadixSort::SortKeys(a, b, c, d, n);", "CUB"),
    ],
)
def test_code_without_a_counterpart_is_reported_as_doubtful(engine: Engine, text: str, why: str) -> None:
    doubts = engine.port(f"\n{text}\n").doubts
    assert [doubt.line for doubt in doubts] == [2] and why.lower() in doubts[0].why.lower()


def test_command_dry_run(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(source), "--dry-run", "--colour", "always"]) == 0
    out, err = capsys.readouterr()
    assert "\033[31m-  cudaStream_t stream" in out and "\033[32m+  musaStream_t stream" in out
    assert "2 files" in err and not list(source.parent.glob("**/*.mu"))


def test_command_refuses_what_it_cannot_do(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "nothing"), "-o", str(tmp_path / "out")]) == 2
    assert "there is nothing at" in capsys.readouterr().err
    assert main([str(source)]) == 2
    assert "--dry-run" in capsys.readouterr().err
    (source / "fill.cu").write_text('asm("trap;");\n')
    assert main([str(source), "-o", str(tmp_path / "out"), "--fail-on-doubt"]) == 3


def test_a_source_tree_of_pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tmp_path / "pytorch/aten/src/ATen/native/cuda/Fill.cu"
    kernel.parent.mkdir(parents=True)
    kernel.write_text(CUDA)
    monkeypatch.setenv("PYTORCH_REPO_PATH", str(tmp_path / "pytorch"))
    assert main(["-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out/ATen/native/musa/Fill.mu").is_file()
    monkeypatch.setenv("PYTORCH_REPO_PATH", str(tmp_path))
    assert main(["-o", str(tmp_path / "out")]) == 2


def test_it_is_a_command(source: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "musa_port", "--list-rules"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert {line.split()[0] for line in done.stdout.splitlines()} >= {"cuda", "torch"}


def test_sources_of_one_name_keep_apart(tmp_path: Path) -> None:
    sources = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        sources.append(tmp_path / folder / "kernel.cu")
        sources[-1].write_text(f"// {folder}\n")
    ported = porting.port_sources(sources, tmp_path / "out")
    assert [path.read_text() for path in ported] == ["// a\n", "// b\n"]


def test_the_wheel_holds_the_rules_and_the_headers(tmp_path: Path) -> None:
    source = shutil.copytree(ROOT / "packages" / "musa-port", tmp_path / "musa-port")
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps"]
    done = subprocess.run([*command, "-w", tmp_path, source], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    [wheel] = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    parts = ("rules/torch.toml", "rules/cuda.toml", "rules/overlay.toml", "include/prelude.h")
    parts += ("cpp_extension.py",)
    assert {f"musa_port/{part}" for part in parts} <= names


def test_the_order_of_a_dense_matrix_has_the_name_of_the_sdk(engine: Engine) -> None:
    assert engine.port("f(CUSPARSE_ORDER_COL, CUSPARSE_ORDER_ROW);\n").text == (
        "f(MUSPARSE_ORDER_COLUMN, MUSPARSE_ORDER_ROW);\n"
    )


def test_names_that_python_sees_are_kept(engine: Engine) -> None:
    text = (
        "PyMODINIT_FUNC PyInit__scatter_cuda() { return nullptr; }\n"
        'PYBIND11_MODULE(conv_cuda, m) { m.def("run_cuda", &run_cuda); }\n'
        "TORCH_LIBRARY(ops_cuda, m) {}\n"
        "TORCH_LIBRARY_FRAGMENT(ops_cuda, m) {}\n"
        "STABLE_TORCH_LIBRARY_IMPL(ops_cuda, CUDA, m) {}\n"
    )
    ported = engine.port(text).text
    kept = ["PyInit__scatter_cuda(", "PYBIND11_MODULE(conv_cuda,", "TORCH_LIBRARY(ops_cuda,"]
    kept += ["TORCH_LIBRARY_FRAGMENT(ops_cuda,", "STABLE_TORCH_LIBRARY_IMPL(ops_cuda, PrivateUse1,"]
    kept += ['"run_cuda"']
    assert all(piece in ported for piece in kept) and "&run_musa" in ported
    assert engine.port(ported).text == ported
    assert engine.port("void f() { conv_cuda(); }\n").text == "void f() { conv_musa(); }\n"


def test_the_default_generator_has_one_name(engine: Engine) -> None:
    for name in ("curandState", "curandState_t", "curandStateXORWOW", "curandStateXORWOW_t"):
        assert engine.port(f"{name} state;\n").text == "murandState_t state;\n"
    ported = engine.port("curandStatePhilox4_32_10_t state;\n").text
    assert ported == "murand_state_philox4x32_10 state;\n"


@pytest.mark.parametrize(
    ("cuda", "musa"),
    [
        ("if (prop.major < 7) waive();", "if (prop.major < 1) waive();"),
        ("p.major >= 4", "p.major >= 1"),
        ("p.major > 3", "p.major > 0"),
        ("p.major <= 6", "p.major <= 0"),
        ("p.major >= 8", "p.major >= 8"),  # bfloat16, TF32: not every architecture has them
        ("p.major == 7", "p.major == 7"),
        ("p.major < 75", "p.major < 75"),
        ("(p.major << 4) + p.minor < 0x35", "(p.major << 4) + p.minor < 0x10"),
        ("CUresult r = cuInit(0); CUdeviceptr x;", "MUresult r = muInit(0); MUdeviceptr x;"),
        ("CU_DEVICE_ATTRIBUTE_WARP_SIZE", "MU_DEVICE_ATTRIBUTE_WARP_SIZE"),
        ("cudaMallocArray(&a, &d, w, h, cudaArrayLayered);", "musaMallocArray(&a, &d, w, h, 1);"),
        ("surf2Dwrite(x, s, 0, 0, cudaBoundaryModeTrap);", "surf2Dwrite(x, s, 0, 0, 2);"),
        ("curandState state;", "murandState_t state;"),
        ("CUDA_VERSION < 12000", "11040 < 12000"),  # the rules of cuda.toml hold too
        ("x = umin(a, umax (b, c));", "x = min(a, max (b, c));"),
        ("s.umin(a); std::umin(a); my_umin(a); umin;", "s.umin(a); std::umin(a); my_umin(a); umin;"),
        ("uint umin(uint a, uint b); x = umin(a, b);", "uint umin(uint a, uint b); x = umin(a, b);"),
        ("#ifdef CUBLAS_API_H_", "#ifdef MUBLAS_H__"),
        (
            'case CUBLAS_STATUS_ALLOC_FAILED:\n  return "A";\n\ncase CUBLAS_STATUS_SUCCESS:\n  return "S";\n',
            '\ncase MUBLAS_STATUS_SUCCESS:\n  return "S";\n',
        ),
        ("case CUBLAS_STATUS_NOT_SUPPORTED:", "case MUBLAS_STATUS_NOT_IMPLEMENTED:"),
        ("case CUBLAS_STATUS_ALLOC_FAILED: stop();", "case MUBLAS_STATUS_ALLOC_FAILED: stop();"),
        ('asm("mov.u32 %0, %%laneid;" : "=r"(lane));', "lane = __get_laneid();"),
        ('asm volatile ("mov.u32 %0, %%lanemask_lt;" : "=r" (m));', "m = __get_lanemask_lt();"),
        ('asm("bfind.u32 %0, %1;" : "=r"(top) : "r"(word));', "top = 31 - __clz(word);"),
    ],
)
def test_programs_that_are_no_extensions(cuda: str, musa: str) -> None:
    engine = Engine(rules.load("programs"))
    assert engine.port(cuda).text == musa
    assert engine.port(musa).text == musa


@pytest.mark.parametrize(
    "cuda",
    [
        'asm("mov.u32 %0, %%lanemask_gt;" : "=r"(mask));',
        'asm("bfind.shiftamt.u32 %0, %1;" : "=r"(top) : "r"(word));',
        'asm("bfind.u32 %0, %1;" : "=r"(top) : "r"(word + 1));',
    ],
)
def test_other_assembly_of_a_program_is_kept_and_reported(cuda: str) -> None:
    ported = Engine(rules.load("programs")).port(cuda)
    assert ported.text == cuda
    assert [doubt.why for doubt in ported.doubts] == ["inline assembly for NVIDIA GPUs"]


def test_extensions_keep_their_comparisons_of_compute_capability(engine: Engine) -> None:
    assert engine.port("prop->major < 7").text == "prop->major < 7"
