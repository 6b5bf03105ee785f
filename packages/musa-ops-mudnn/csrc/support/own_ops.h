// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Operators torch.ops.torch_musa.*: a schema, a muDNN kernel, and a composition of torch's operators. The composition
// runs on other devices, and on musa if muDNN does not support the operands. Gradients and fake kernels are registered
// in src/musa_ops_mudnn/fused.py.
#pragma once

#include <musa_runtime/op_pack.h>
#include <torch/library.h>

#include <string>

namespace musa_ops_mudnn {

// Does not use TORCH_LIBRARY, because the operators must exist before the pack registers kernels for them.
inline torch::Library& own_library() {
  // Never destroyed, because installed kernels are used after static objects are destroyed.
  static auto& library = *new torch::Library(torch::Library::FRAGMENT, "torch_musa", std::nullopt, __FILE__, __LINE__);
  return library;
}

template <typename Kernel, typename Predicate, typename Composed>
void define(
    musa_runtime::OpPack& pack, const char* name, const char* signature, Kernel kernel, Predicate served,
    Composed composed) {
  own_library().def((std::string(name) + signature).c_str(), {at::Tag::pt2_compliant_tag});
  own_library().impl(name, torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, composed));
  const std::string qualified = std::string("torch_musa::") + name;
  pack.impl(qualified.c_str(), kernel, served);
  // The registry's provider for compositions, used if muDNN declines, with memory of any kind.
  pack.of_provider("runtime").impl(qualified.c_str(), composed);
}

} // namespace musa_ops_mudnn
