// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <musa_runtime/stable_abi.h>

#include <registry/op_registry.h>
#include <torch/headeronly/version.h>

#include <exception>
#include <utility>

// The kernels that the current declaration has added so far.
struct MusaStableDeclaration {
  const MusaStablePack& pack;
  std::vector<std::unique_ptr<musa_runtime::Candidate>> candidates;
  std::exception_ptr error; // the first one of musa_stable_impl, which must not throw into a C library
};

namespace musa_runtime {
namespace {

// TORCH_ABI_VERSION has major, minor and patch in its highest bytes.
std::string version(uint64_t number) { return c10::str(number >> 56, ".", (number >> 48) & 0xff); }

void check_build(const MusaStablePack& pack) {
  if (pack.abi != MUSA_STABLE_ABI) {
    throw PackError(
        "",
        c10::str(
            "a pack over torch's stable ABI was compiled with another musa_runtime/stable_abi.h.\n  have: stable ABI ",
            pack.abi, "\n  need: stable ABI ", MUSA_STABLE_ABI, "\n", kRebuildPack));
  }
  // Not compared with the torch that the pack was built with: newer headers only add functions, and torch_needed limits
  // which of them the pack calls.
  if (pack.torch_needed > TORCH_ABI_VERSION) {
    throw PackError(
        "",
        c10::str(
            "the pack '", pack.provider, "' calls functions of a newer torch's stable ABI.\n  have: torch ",
            version(TORCH_ABI_VERSION), "\n  need: torch ", version(pack.torch_needed),
            "\nFix: pip install 'torch>=", version(pack.torch_needed),
            "' with the musa-runtime for it, or build the pack with a smaller TORCH_TARGET_VERSION"));
  }
}

void declare(const MusaStablePack& pack) {
  check_build(pack);
  MusaStableDeclaration declaration{pack, {}, nullptr};
  pack.declare(&declaration);
  if (declaration.error != nullptr) {
    std::rethrow_exception(declaration.error);
  }
  OpRegistry::get().add(pack.provider, std::move(declaration.candidates));
}

} // namespace
} // namespace musa_runtime

extern "C" {

int musa_stable_pack(const MusaStablePack* pack) {
  // For a declaration with another ABI number, only that number is read.
  const char* const provider = pack->abi == MUSA_STABLE_ABI ? pack->provider : "";
  return static_cast<int>(musa_runtime::record_failure(provider, [&] { musa_runtime::declare(*pack); }));
}

void musa_stable_impl(MusaStableDeclaration* declaration, const MusaStableKernel* kernel) {
  try {
    if (kernel->op == nullptr || kernel->signature == nullptr || kernel->kernel == nullptr) {
      const std::string op = kernel->op == nullptr ? "" : kernel->op;
      throw musa_runtime::PackError(
          op,
          c10::str(
              "the pack '", declaration->pack.provider, "' declares a stable kernel ",
              op.empty() ? op : "for " + op + " ",
              "without an operator, a signature or a function.\nFix: fill in all fields of MusaStableKernel but `served`, and "
              "build the pack again."));
    }
    declaration->candidates.push_back(
        std::make_unique<musa_runtime::Candidate>(
            kernel->op, declaration->pack.provider, *kernel, declaration->pack.torch_built));
  } catch (...) {
    if (declaration->error == nullptr) {
      declaration->error = std::current_exception();
    }
  }
}

} // extern "C"
