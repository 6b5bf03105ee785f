// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The declaration of the pack, and a C interface for its Python modules. The library does not link to Python, so one
// wheel serves every version.
#include <musa_runtime/mudnn.h>

#include <string>

#include "families.h"
#include "support/settings.h"

namespace musa_ops_mudnn {
namespace {

// Lines "pointwise aten::abs\n..." in the order of declaration.
std::string& family_list() {
  static std::string list;
  return list;
}

} // namespace
} // namespace musa_ops_mudnn

MUSA_OP_PACK(mudnn, pack) {
  for (const auto& [name, declare] : musa_ops_mudnn::families) {
    const size_t before = pack.declared().size();
    declare(pack);
    for (size_t i = before; i < pack.declared().size(); ++i) {
      musa_ops_mudnn::family_list() += std::string(name) + ' ' + pack.declared()[i] + '\n';
    }
  }
}

extern "C" {

__attribute__((visibility("default"))) const char* musa_ops_mudnn_families() {
  return musa_ops_mudnn::family_list().c_str();
}

__attribute__((visibility("default"))) int64_t musa_ops_mudnn_version() { return musa::dnn::GetVersion(); }

__attribute__((visibility("default"))) bool* musa_ops_mudnn_setting(const char* name) {
  auto& settings = musa_ops_mudnn::settings();
  const std::string wanted = name;
  return wanted == "enabled"      ? &settings.enabled
      : wanted == "allow_tf32"    ? &settings.allow_tf32
      : wanted == "deterministic" ? &settings.deterministic
                                  : nullptr;
}

} // extern "C"
