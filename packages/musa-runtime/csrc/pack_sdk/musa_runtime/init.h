// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAMacros.h>
#include <musa_runtime/compat.h>

#include <string>

// The musa device in a C++ program without Python:
//
//   #include <musa_runtime/init.h>
//   #include <torch/script.h>
//
//   int main() {
//     musa_runtime::init();
//     auto model = torch::jit::load("model.pt", torch::Device("musa"));
//   }
//
// In a Python process `import torch` does all of this; init() then has no effect.

namespace musa_runtime {

namespace detail {
C10_MUSA_API void init(int abi);
} // namespace detail

// Names torch's device type PrivateUse1 "musa" and checks that a device can be used. Loads no op packs: torch's CPU
// kernels serve all operators until load_pack() adds others. May be called repeatedly, and from several threads; must be
// called before "musa" is used as a device name. Raises c10::Error with cause and fix if the program was compiled against
// another build of the runtime, another backend has taken PrivateUse1, or there is no device.
inline void init() {
  // From the header: the number that this program was compiled with.
  detail::init(MUSA_RUNTIME_ABI);
}

// Whether init() would find a device. Never raises.
C10_MUSA_API bool is_available() noexcept;

// Loads the library of an op pack, whose kernels the op registry then ranks among the others. A policy in TORCH_MUSA_OPS
// that names the pack needs it loaded before the first tensor on the device. rank: the pack's position in the default order
// of providers, lower ranks first (see musa_runtime/hookspecs.py); it must be set before that tensor, too. Raises
// c10::Error with the loader's reason, or with the registry's reason for refusing the pack's kernels.
C10_MUSA_API void load_pack(const std::string& path, int rank = 150);

} // namespace musa_runtime
