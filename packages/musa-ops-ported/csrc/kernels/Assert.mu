// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/ops/_assert_async.h>

#include <algorithm>
#include <c10/util/Load.h>

#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "kernels/Assert.h"

namespace musa_ops_ported {
namespace {

// A kernel parameter, because the kernel may fail after the host string is gone.
struct Message {
  char text[256] = {};
  explicit Message(c10::string_view given) {
    std::copy_n(given.data(), std::min(given.size(), sizeof(text) - 1), text);
  }
};

void assert_nonzero(const at::Tensor& self, const Message& message) {
  TORCH_CHECK(self.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
  TORCH_CHECK(self.numel() == 1, "Boolean value of Tensor with more than one value is ambiguous");
  MUSA_DISPATCH(self.scalar_type(), "_assert_async", (MUSA_ALL), {
    const scalar_t* const value = self.const_data_ptr<scalar_t>();
    for_each(1, [=] __device__(int64_t) { CUDA_KERNEL_ASSERT_MSG(c10::load(value) != scalar_t(0), message.text); });
  });
}

} // namespace

void _assert_async(const at::Tensor& self) {
  assert_nonzero(self, Message("Expected Tensor with single nonzero value, but got zero"));
}
void _assert_async_msg(const at::Tensor& self, c10::string_view assert_msg) {
  assert_nonzero(self, Message(assert_msg));
}
at::Tensor _functional_assert_async_msg(
    const at::Tensor& self, c10::string_view assert_msg, const at::Tensor& dep_token) {
  _assert_async_msg(self, assert_msg);
  return dep_token.clone();
}

} // namespace musa_ops_ported
