// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <musa_runtime/init.h>

#include <c10/core/DeviceType.h>
#include <c10/musa/MUSAFunctions.h>

#include <mutex>

namespace musa_runtime {
namespace {

constexpr char kName[] = "musa";

// Serializes the naming: torch reads the old name and writes the new one in two steps.
std::mutex& naming() {
  static std::mutex mutex;
  return mutex;
}

} // namespace

namespace detail {

void init(int abi) {
  TORCH_CHECK(
      abi == MUSA_RUNTIME_ABI,
      "This program and libmusa_runtime.so come from different builds of musa-runtime.\n  have: ABI ", MUSA_RUNTIME_ABI,
      " in the library that was loaded\n  need: ABI ", abi, ", the headers that the program was compiled with\n",
      "Likely causes: musa-runtime was upgraded after the program was built, or LD_LIBRARY_PATH puts another copy in "
      "front.\nFix: configure and build the program again: cmake --fresh -S . -B build && cmake --build build");
  {
    const std::lock_guard<std::mutex> lock(naming());
    if (c10::is_privateuse1_backend_registered()) {
      const std::string owner = c10::get_privateuse1_backend();
      TORCH_CHECK(
          owner == kName, "The backend '", owner, "' has taken PrivateUse1, which only one backend can have.\n",
          "Fix: link and load only one of the two.");
    } else {
      c10::register_privateuse1_backend(kName);
    }
  }
  c10::musa::device_count_ensure_non_zero();
}

} // namespace detail

bool is_available() noexcept { return c10::musa::device_count() > 0; }

} // namespace musa_runtime
