// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Makes torch functions without an out= overload write to the caller's memory, because a copy would take up to a fifth
// of the time of a convolution. One allocation of the function is replaced by the caller's memory: the one that became
// the result when the same call ran before on this thread. If the function uses it for something else, the result is
// copied.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <utility>
#include <vector>

namespace musa_emulator::dnn {

struct Loan {
  void* data;
  size_t bytes;
  int wanted; // index of the allocation of this size to replace; negative: none
  std::vector<void*> made{}; // allocations of this size
};
inline thread_local Loan* current_loan = nullptr;

class LendingAllocator final : public c10::Allocator {
 public:
  static void install() {
    static const bool installed = [] {
      c10::SetCPUAllocator(new LendingAllocator(c10::GetCPUAllocator()), /*priority=*/1);
      return true;
    }();
    (void)installed;
  }
  c10::DataPtr allocate(size_t bytes) override {
    if (current_loan == nullptr || current_loan->bytes != bytes) [[likely]] {
      return base_->allocate(bytes);
    }
    Loan& loan = *current_loan;
    const bool lend = static_cast<int>(loan.made.size()) == loan.wanted;
    // Raw allocations (oneDNN's) need the address as the context.
    c10::DataPtr result =
        lend ? c10::DataPtr(loan.data, loan.data, &c10::detail::deleteNothing, c10::kCPU) : base_->allocate(bytes);
    loan.made.push_back(result.get());
    return result;
  }
  c10::DeleterFnPtr raw_deleter() const override {
    base_deleter_ = base_->raw_deleter();
    return &delete_own;
  }
  void copy_data(void* to, const void* from, size_t count) const override { base_->copy_data(to, from, count); }

 private:
  explicit LendingAllocator(c10::Allocator* base) : base_(base) {}
  static void delete_own(void* data) {
    if (current_loan == nullptr || current_loan->data != data) {
      base_deleter_(data);
    }
  }
  c10::Allocator* base_;
  static inline std::atomic<c10::DeleterFnPtr> base_deleter_ = nullptr;
};

inline bool same_order(const at::Tensor& a, const at::Tensor& b) {
  for (int64_t i = 0; i < a.dim(); ++i) {
    if (a.size(i) > 1 && a.stride(i) != b.stride(i)) {
      return false;
    }
  }
  return true;
}

// Returns the result of make(): `place` itself if the result was written there. make() must not read `place`. The key
// must be unique to the function and its arguments.
template <class Make>
at::Tensor make_in(const at::Tensor& place, size_t key, Make&& make) {
  constexpr int unknown = -1;
  constexpr int never = -2;
  constexpr size_t most = 4096;
  if (!place.is_non_overlapping_and_dense()) {
    return make();
  }
  LendingAllocator::install();
  thread_local std::unordered_map<size_t, int> learned;
  if (learned.size() > most) {
    learned.clear();
  }
  int& wanted = learned.try_emplace(key, unknown).first->second;
  Loan loan{place.data_ptr(), place.nbytes(), wanted};
  struct Scope {
    Loan* before;
    ~Scope() { current_loan = before; }
  } const scope{std::exchange(current_loan, &loan)};
  at::Tensor value = make();
  if (value.data_ptr() == place.data_ptr()) {
    if (same_order(value, place)) {
      return place;
    }
    wanted = never;
    return value.clone();
  }
  const auto found = std::find(loan.made.rbegin(), loan.made.rend(), value.data_ptr());
  if (wanted != never && found != loan.made.rend()) {
    wanted = static_cast<int>(loan.made.rend() - found) - 1;
  }
  return value;
}

// For operations that this backend does not implement: the caller uses torch's operators.
struct Declines {
  template <class... Arguments>
  bool operator()(const Arguments&...) const {
    return false;
  }
};
// Other backends have kernels that write to the caller's memory; here make_in() does that.
inline constexpr Declines convolve_into, input_gradient_into, filter_gradient_into, batch_norm_into,
    batch_norm_gradients;

} // namespace musa_emulator::dnn
