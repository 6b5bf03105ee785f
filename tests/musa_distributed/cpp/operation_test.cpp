// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "operation.h"

#include <gtest/gtest.h>

namespace c10d::mccl {
namespace {

// Makes a tensor without calling operators, which these tests do not link.
at::Tensor tensor(at::IntArrayRef sizes, caffe2::TypeMeta dtype = caffe2::TypeMeta::Make<float>()) {
  c10::Storage storage(c10::Storage::use_byte_size_t(), 0, at::DataPtr(nullptr, c10::kCPU), nullptr, false);
  auto made = at::Tensor(
      c10::make_intrusive<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), dtype));
  made.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return made;
}

TEST(Operands, KeepDtypesAndSizesAndNotTheTensors) {
  const std::vector<at::Tensor> tensors{tensor({4, 2}), tensor({}), tensor({3}, caffe2::TypeMeta::Make<int64_t>())};
  const Operands operands(tensors);
  EXPECT_EQ(tensors.front().use_count(), 1);
  ASSERT_EQ(operands.count(), 3U);
  EXPECT_EQ(operands.sizes(0), at::IntArrayRef({4, 2}));
  EXPECT_EQ(operands.sizes(1), at::IntArrayRef());
  EXPECT_EQ(operands.sizes(2), at::IntArrayRef({3}));
  EXPECT_EQ(operands.dtype(0), at::kFloat);
  EXPECT_EQ(operands.dtype(2), at::kLong);
  EXPECT_EQ(operands.text(), "Float[4, 2], Float[], Long[3]");
}

TEST(Operands, MoreThanFourAreCounted) {
  EXPECT_EQ(Operands().text(), "nothing");
  EXPECT_EQ(Operands(std::vector<at::Tensor>(4, tensor({1}))).text(), "Float[1], Float[1], Float[1], Float[1]");
  EXPECT_EQ(
      Operands(std::vector<at::Tensor>(6, tensor({1}))).text(), "Float[1], Float[1], Float[1], Float[1] and 2 more");
}

TEST(Operation, TransfersNameTheOtherRank) {
  const Operands some(std::vector<at::Tensor>{tensor({2})});
  const Operation sent{OpType::SEND, "mccl:send", 0, 1, some, {}}, received{OpType::RECV, "mccl:recv", 0, 1, {}, some};
  EXPECT_EQ(sent.name(), "mccl:send 0->1");
  EXPECT_EQ(received.name(), "mccl:recv 0<-1");
  EXPECT_EQ(sent.text(3), "mccl:send to rank 1 #3 (in: Float[2]; out: nothing)");
  EXPECT_EQ(received.text(4), "mccl:recv from rank 1 #4 (in: nothing; out: Float[2])");
}

TEST(Operations, ThoseThatStartTogetherAreNamedTogether) {
  const Operation one{OpType::ALLREDUCE, "mccl:all_reduce"}, other{OpType::BROADCAST, "mccl:broadcast"};
  EXPECT_EQ(std::string(one.title.name()), "all_reduce");
  EXPECT_EQ((Operations{7, one.title, {one}}).text(), "mccl:all_reduce #7 (in: nothing; out: nothing)");
  EXPECT_EQ(
      (Operations{8, "mccl:coalesced", {one, other}}).text(),
      "mccl:all_reduce #8 (in: nothing; out: nothing) with mccl:broadcast #8 (in: nothing; out: nothing)");
}

} // namespace
} // namespace c10d::mccl
