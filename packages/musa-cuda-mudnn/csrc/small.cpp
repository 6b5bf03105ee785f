// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Host loops over operands: none, because the host cannot access device memory.
#include "support/small.h"

#include <stdexcept>

namespace musa_emulator::dnn {
namespace {

[[noreturn]] void unreachable() { throw std::logic_error("the host cannot access operands in GPU memory"); }

} // namespace

bool is_small(musa::dnn::Unary::Mode, const Tensor&, const Tensor&) { return false; }
bool is_small(musa::dnn::Binary::Mode, const Tensor&, const Tensor&, const Tensor&) { return false; }
bool is_small(const c10::Scalar&, const Tensor&) { return false; }
bool is_small_extreme(const Tensor&, const Tensor&, int64_t) { return false; }
bool is_small_pick(int64_t, int64_t, int64_t) { return false; }
bool repeat_small(const Tensor&, const Tensor&) { return false; }
void fill_small(const c10::Scalar&, const Tensor&) { unreachable(); }
void find_small(bool, const Tensor&, const Tensor&) { unreachable(); }
bool pick_small(const Tensor&, const Tensor&, const Tensor&, int64_t, int64_t, int64_t) { unreachable(); }
void run_small(musa::dnn::Unary::Mode, const c10::Scalar&, const Tensor&, const Tensor&) { unreachable(); }
void run_small(musa::dnn::Binary::Mode, const c10::Scalar&, const Tensor&, const Tensor&, const Tensor&) {
  unreachable();
}

} // namespace musa_emulator::dnn
