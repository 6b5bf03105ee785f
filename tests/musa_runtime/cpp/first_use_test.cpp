// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Initializations that happen once per process, requested by several threads at the same time. This file is
// the first of the program, so that its uses are the first.
#include <ATen/musa/MUSAGeneratorImpl.h>
#include <c10/core/DeviceType.h>
#include <c10/musa/MUSACapabilities.h>
#include <musa_runtime/init.h>

#include "runtime_test.h"

class FirstUseTest : public RuntimeTest {};

TEST(InitTest, ThreadsNameTheDeviceTogether) {
  EXPECT_FALSE(c10::is_privateuse1_backend_registered());
  on_threads([](int) {
    musa_runtime::init();
    EXPECT_EQ(1, c10::Device("musa:1").index());
  });
  EXPECT_EQ("musa", c10::get_privateuse1_backend());
  EXPECT_TRUE(musa_runtime::is_available());
}

TEST_F(FirstUseTest, PropertiesStreamsAndGeneratorsAreMadeOnce) {
  std::array<const musaDeviceProp*, kThreads> properties{};
  std::array<musaStream_t, kThreads> streams{};
  std::array<const at::Generator*, kThreads> generators{};
  const size_t before = musaEmulatorLiveStreams();
  on_threads([&](int t) {
    properties[t] = &c10::musa::device_properties(1);
    // Id 1 is the pool's first stream of the lowest priority.
    streams[t] = MUSAStream::unpack3(1, 1, c10::DeviceType::PrivateUse1).stream();
    generators[t] = &at::musa::detail::getDefaultMUSAGenerator(1);
    EXPECT_EQ(2, c10::musa::device_count());
    EXPECT_TRUE(c10::musa::host_addressable());
  });
  for (int t = 1; t < kThreads; ++t) {
    EXPECT_EQ(properties[0], properties[t]);
    EXPECT_EQ(streams[0], streams[t]);
    EXPECT_EQ(generators[0], generators[t]);
  }
  EXPECT_EQ(before + 1, musaEmulatorLiveStreams());
}

TEST(InitTest, ProgramOfAnotherBuildIsRefused) {
  try {
    musa_runtime::detail::init(MUSA_RUNTIME_ABI + 1);
    ADD_FAILURE() << "a program with another ABI number was accepted";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string::npos, error.msg().find("come from different builds")) << error.msg();
    EXPECT_NE(std::string::npos, error.msg().find("need: ABI " + std::to_string(MUSA_RUNTIME_ABI + 1)));
  }
}
