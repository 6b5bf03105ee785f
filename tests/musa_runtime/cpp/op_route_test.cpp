// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Replacement of chains of kernels while other threads call the operator.
#include <registry/op_route.h>
#include <torch/library.h>

#include "runtime_test.h"

namespace {

using musa_runtime::Chain;
using musa_runtime::ChainMember;
using musa_runtime::OpRoute;
using musa_runtime::detail::kernel_type;
using Signature = int64_t(int64_t);

TORCH_LIBRARY(musa_route_test, library) {
  library.def("tag(int value) -> int");
  library.def("boxed(int value) -> int");
}

// Each kernel returns its tag, which shows the kernel that handled a call.
template <int64_t tag>
int64_t kernel(int64_t /*value*/) {
  return tag;
}
bool is_even(int64_t value) { return value % 2 == 0; }
template <int64_t tag>
void boxed_kernel(const c10::OperatorHandle& /*op*/, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  torch::jit::drop(*stack, 1);
  torch::jit::push(*stack, tag);
}

std::array<std::atomic<uint64_t>, 8> counters{};

template <int64_t tag>
ChainMember conditional() {
  return {
      &kernel_type<Signature, true>(), reinterpret_cast<void (*)()>(&kernel<tag>),
      reinterpret_cast<void (*)()>(&is_even), &counters[tag], "test"};
}
template <int64_t tag>
ChainMember unconditional() {
  return {
      &kernel_type<Signature, false>(), reinterpret_cast<void (*)()>(&kernel<tag>), nullptr, &counters[tag], "test"};
}
template <int64_t tag>
Chain ending_boxed(std::vector<ChainMember> members) {
  return {
      std::move(members), "boxed" + std::to_string(tag),
      c10::KernelFunction::makeFromBoxedFunction<&boxed_kernel<tag>>()};
}

c10::OperatorHandle find(const char* op) { return c10::Dispatcher::singleton().findSchemaOrThrow(op, ""); }

int64_t call(const c10::OperatorHandle& op, int64_t value) {
  return op.typed<Signature>().redispatch(c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), value);
}

uint64_t counted() {
  uint64_t sum = 0;
  for (const std::atomic<uint64_t>& counter : counters) {
    sum += counter.load();
  }
  return sum;
}

TEST(OpRouteTest, CallsFollowTheChainThatWasSetLast) {
  OpRoute route(find("musa_route_test::tag"), &kernel_type<Signature, true>());
  const c10::OperatorHandle op = find("musa_route_test::tag");
  const uint64_t before = counted();
  for (int round = 0; round < 2; ++round) { // the second round uses the chains of the first
    route.set({{conditional<1>(), unconditional<2>()}, "", {}});
    EXPECT_EQ(1, call(op, 0));
    EXPECT_EQ(2, call(op, 1));
    route.set({{unconditional<3>()}, "", {}}); // the first kernel has another type than the registered one
    EXPECT_EQ(3, call(op, 0));
    route.set(ending_boxed<7>({conditional<4>()}));
    EXPECT_EQ(4, call(op, 0));
    EXPECT_EQ(7, call(op, 1));
    route.set(ending_boxed<7>({}));
    EXPECT_EQ(7, call(op, 0));
  }
  EXPECT_EQ(before + 8, counted()) << "boxed kernels count by themselves";
}

TEST(OpRouteTest, EveryCallEndsOnOneChainWhileAnotherThreadReplacesIt) {
  OpRoute route(find("musa_route_test::tag"), &kernel_type<Signature, true>());
  const c10::OperatorHandle op = find("musa_route_test::tag");
  const std::array<Chain, 3> chains{
      Chain{{conditional<1>(), unconditional<2>()}, "", {}},
      Chain{{conditional<3>(), conditional<4>(), unconditional<5>()}, "", {}}, Chain{{unconditional<6>()}, "", {}}};
  route.set(chains[0]);
  const uint64_t before = counted();
  std::atomic<uint64_t> calls{0};
  std::atomic<bool> done{false};
  on_threads([&](int thread) {
    if (thread == 0) {
      for (size_t i = 0; i < 2000 || calls.load() < 2000; ++i) {
        route.set(chains[i % chains.size()]);
      }
      done = true;
      return;
    }
    while (!done) {
      const int64_t even = call(op, 0), odd = call(op, 1);
      EXPECT_TRUE(even == 1 || even == 3 || even == 6) << even;
      EXPECT_TRUE(odd == 2 || odd == 5 || odd == 6) << odd;
      calls += 2;
    }
  });
  EXPECT_EQ(before + calls, counted());
}

TEST(OpRouteTest, BoxedKernelsAreReplacedWhileOtherThreadsCallThem) {
  OpRoute route(find("musa_route_test::boxed"), nullptr);
  const c10::OperatorHandle op = find("musa_route_test::boxed");
  route.set(ending_boxed<1>({}));
  std::atomic<uint64_t> calls{0};
  std::atomic<bool> done{false};
  on_threads([&](int thread) {
    if (thread == 0) {
      for (size_t i = 0; i < 1000 || calls.load() < 1000; ++i) {
        i % 2 == 0 ? route.set(ending_boxed<2>({})) : route.set(ending_boxed<1>({}));
      }
      done = true;
      return;
    }
    while (!done) {
      const int64_t tag = call(op, 0);
      EXPECT_TRUE(tag == 1 || tag == 2) << tag;
      ++calls;
    }
  });
}

} // namespace
