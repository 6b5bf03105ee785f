// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <musa_runtime/op_pack.h>

#include <musa_runtime/init.h>
#include <registry/op_policy.h>
#include <registry/op_registry.h>

#include <c10/util/FunctionRef.h>
#include <c10/util/ScopeExit.h>
#include <dlfcn.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <string>

namespace musa_runtime {
namespace {

struct Failures {
  std::mutex mutex; // guards list; a leaf lock
  std::vector<PackFailure> list;
};

Failures& failures() {
  static Failures& instance = *new Failures();
  return instance;
}

void check_build(const PackDeclaration& declaration) {
  if (declaration.abi != MUSA_RUNTIME_ABI) {
    throw PackError(
        "",
        c10::str(
            "the pack '", declaration.provider,
            "' was compiled with the headers of another musa-runtime.\n  have: ABI ", declaration.abi, "\n  need: ABI ",
            MUSA_RUNTIME_ABI, "\n", kRebuildPack));
  }
  if (declaration.torch_major != TORCH_VERSION_MAJOR || declaration.torch_minor != TORCH_VERSION_MINOR) {
    throw PackError(
        "",
        c10::str(
            "the pack '", declaration.provider,
            "' was compiled with another torch, whose C++ ABI differs.\n  have: torch ", declaration.torch_major, ".",
            declaration.torch_minor, "\n  need: torch ", TORCH_VERSION_MAJOR, ".", TORCH_VERSION_MINOR, "\n",
            kRebuildPack));
  }
}

void declare(const PackDeclaration& declaration) {
  check_build(declaration);
  std::vector<std::unique_ptr<Candidate>> candidates;
  std::vector<std::unique_ptr<OpPack::State>> others;
  OpPack::State state{declaration.provider, &candidates, &others};
  declaration.declare(state.pack);
  OpRegistry::get().add(declaration.provider, std::move(candidates));
}

void record(const std::string& provider, const std::string& op, const std::string& message) {
  Failures& all = failures();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.list.push_back({provider, op, message});
}

void record_exception(const std::string& provider, const std::string& what) {
  record(provider, "", "the declaration of the pack '" + provider + "' raised an exception: " + what);
}

} // namespace

OpPack& OpPack::add(const char* op, const detail::KernelType& type, void (*kernel)(), void (*served)()) {
  state_.candidates->push_back(
      std::make_unique<Candidate>(
          op, state_.provider, &type, kernel, served, /*conditional=*/served != nullptr,
          state_.needs_host_addressable));
  state_.declared.emplace_back(op);
  return *this;
}

OpPack& OpPack::generated(const detail::GeneratedKernel& kernel) {
  auto candidate = std::make_unique<Candidate>(
      kernel.op, state_.provider, kernel.type, kernel.kernel, kernel.served, kernel.conditional,
      state_.needs_host_addressable);
  candidate->calls = kernel.calls;
  state_.candidates->push_back(std::move(candidate));
  state_.declared.emplace_back(kernel.op);
  return *this;
}

OpPack& OpPack::of_provider(const char* name) {
  const std::string provider = provider_name(name);
  for (const auto& other : *state_.providers) {
    if (other->provider == provider) {
      return other->pack;
    }
  }
  state_.providers->push_back(std::unique_ptr<State>(new State{provider, state_.candidates, state_.providers}));
  return state_.providers->back()->pack;
}

OpPack& OpPack::needs_host_addressable() {
  state_.needs_host_addressable = true;
  return *this;
}

const std::vector<std::string>& OpPack::declared() const { return state_.declared; }

bool record_failure(const char* provider, c10::function_ref<void()> declare) noexcept {
  try {
    declare();
    return true;
  } catch (const PackError& error) {
    record(provider, error.op, error.what());
  } catch (const c10::Error& error) {
    record_exception(provider, error.what_without_backtrace());
  } catch (const std::exception& error) {
    record_exception(provider, error.what());
  } catch (...) {
    record_exception(provider, "an object that is no std::exception");
  }
  return false;
}

bool declare_pack(const PackDeclaration& declaration) noexcept {
  return record_failure(declaration.provider, [&] { declare(declaration); });
}

std::vector<PackFailure> take_pack_failures() {
  std::vector<PackFailure> taken = OpRegistry::get().check_late_operators();
  Failures& all = failures();
  const std::lock_guard<std::mutex> lock(all.mutex);
  taken.insert(taken.begin(), all.list.begin(), all.list.end());
  all.list.clear();
  return taken;
}

void load_pack(const std::string& path, int rank) {
  const std::vector<std::string> before = OpRegistry::get().providers();
  // The pack's rank is known only when it has loaded, and decides which of its kernels are installed.
  const bool paused = OpRegistry::get().pause();
  const auto resume = c10::make_scope_exit([paused] {
    if (paused) {
      OpRegistry::get().install();
    }
  });
  // Never closed: the registry and torch's dispatcher keep pointers into it.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = dlerror();
    std::string sdk;
    std::getline(std::ifstream(path + ".sdk"), sdk); // empty without the file
    TORCH_CHECK(
        false, "The op pack ", path, " cannot be loaded: ", reason != nullptr ? reason : "the loader gives no reason",
        sdk.empty() ? "" : "\nIts kernels were compiled for the SDK '" + sdk + "'.",
        "\nLikely causes: the path is wrong; the pack was built against another torch or musa-runtime; it needs a "
        "library that is not on its search path.\nFix: check the path with ls, its libraries with: ldd ",
        path, "; then build the pack again.");
  }
  std::string reasons;
  for (const PackFailure& failure : take_pack_failures()) {
    reasons += "\n" + failure.message;
  }
  TORCH_CHECK(reasons.empty(), "The op pack ", path, " is loaded, but its kernels are not used:", reasons);
  for (const std::string& provider : OpRegistry::get().providers()) {
    if (std::find(before.begin(), before.end(), provider) == before.end()) {
      set_provider_rank(provider, rank);
    }
  }
}

} // namespace musa_runtime
