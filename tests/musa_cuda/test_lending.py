# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch functions write results to the caller's memory: lending.cpp of musa-cuda-mudnn, with CPU tensors."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.musa_cuda.conftest import ROOT

pytestmark = pytest.mark.once

DEVICE = """
#pragma once
#include <ATen/ATen.h>
namespace musa_emulator::dnn {
inline constexpr c10::DeviceType kDeviceType = c10::kCPU;
inline constexpr c10::DispatchKey kDispatchKey = c10::DispatchKey::CPU;
inline c10::Device current_device() {
  return c10::Device(c10::kCPU);
}
} // namespace musa_emulator::dnn
"""
PROGRAM = """
#include <mudnn_backend/lending.h>
#include <support/modes.h>
#include <cstdio>
#include <cstdlib>

using namespace musa_emulator::dnn;

void require(bool holds, const char* what) {
  if (!holds) {
    std::puts(what);
    std::exit(1);
  }
}

int main() {
  const auto cpu = at::TensorOptions(at::kFloat).device(at::kCPU);
  size_t key = 0;
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const auto random = [&] { return at::randn({4, 8, 6, 6}, cpu).contiguous(format); };
    const at::Tensor x = random(), gradient = random(), ones = at::ones({8}, cpu), place = at::empty_like(x);
    const auto backward = [&] {
      return std::get<0>(at::native_batch_norm_backward(
          gradient, x, ones, {}, {}, ones, ones, true, 1e-5, {true, true, true}));
    };
    const at::Tensor expected = backward();
    const c10::impl::ExcludeDispatchKeyGuard exclude(above_backends); // as in a call of the library
    ++key;
    for (int call = 0; call < 3; ++call) {
      const at::Tensor result = make_in(place, key, backward);
      require(result.is_same(place) == (call > 0), "the second call writes to the place");
      require(at::equal(result, expected), "the values are those of torch");
    }

    const at::Tensor a = at::empty_like(x), b = at::empty_like(x), other = at::empty({4, 6, 6, 8}, cpu);
    ++key;
    for (int call = 0; call < 3; ++call) {
      const auto three = [&]() -> std::array<at::Tensor, 3> {
        const at::Tensor scratch = at::empty_like(x).fill_(9); // as large, and no result
        return {at::empty_like(x).fill_(1), at::empty_strided({4, 8, 6, 6}, x.strides(), cpu).fill_(2),
                at::empty({4, 6, 6, 8}, cpu).fill_(3).permute({0, 3, 1, 2}).contiguous()};
      };
      const std::array places{b, a, other.permute({0, 3, 1, 2})};
      const auto results = make_all_in(places, key, three);
      require(results[0].is_same(b) == (call > 0), "the first result");
      require(results[1].is_same(a) == (call > 0), "the second result");
      copy_results(places, results);
      for (int i = 0; i < 3; ++i) {
        require(places[i].eq(i + 1).all().item<bool>(), "each place has its own result");
      }
    }

    const at::Tensor gaps = at::empty({4, 8, 6, 12}, cpu).slice(3, 0, 12, 2);
    for (int call = 0; call < 2; ++call) {
      require(!make_in(gaps, 100 + key, backward).is_same(gaps), "a place with gaps is not lent");
    }
  }
  return 0;
}
"""


def test_the_second_call_of_a_function_writes_to_the_given_memory(tmp_path: Path) -> None:
    import torch

    home = Path(torch.__file__).parent
    package = ROOT / "packages" / "musa-cuda-mudnn" / "csrc"
    backend = tmp_path / "mudnn_backend"
    backend.mkdir()
    (backend / "device.h").write_text(DEVICE)
    (backend / "lending.h").symlink_to(package / "mudnn_backend" / "lending.h")
    source, program = tmp_path / "program.cpp", tmp_path / "program"
    source.write_text(PROGRAM)
    command = ["g++", "-std=c++20", "-O0", source, package / "lending.cpp", "-o", program, "-I", tmp_path]
    command += ["-I", ROOT / "packages" / "musa-emulator-mudnn" / "csrc", "-isystem", home / "include"]
    command += ["-isystem", home / "include" / "torch" / "csrc" / "api" / "include"]
    command += ["-L", home / "lib", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{home / 'lib'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
