// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engines/random_plan.h"

#include <ATen/Utils.h>
#include <ATen/musa/MUSAGeneratorImpl.h>
#include <c10/musa/MUSAFunctions.h>

#include <algorithm>
#include <mutex>

namespace musa_ops_ported {

at::PhiloxMusaState reserve_numbers(uint64_t increment, const std::optional<at::Generator>& generator) {
  auto* const own = at::get_generator_or_default<at::MUSAGeneratorImpl>(
      generator, at::musa::detail::getDefaultMUSAGenerator(c10::musa::current_device()));
  const std::lock_guard<std::mutex> lock(own->mutex_);
  return own->philox_musa_state(increment);
}

RandomPlan plan_random(int64_t elements, int at_once, const std::optional<at::Generator>& generator) {
  const auto& device = c10::musa::device_properties(c10::musa::current_device());
  const int64_t most = int64_t{device.multiProcessorCount} * (device.maxThreadsPerMultiProcessor / kRandomThreads);
  const int64_t blocks = std::min((elements + kRandomThreads - 1) / kRandomThreads, most);
  const int64_t of_all_threads = kRandomThreads * blocks * at_once;
  constexpr uint64_t per_call = 4; // 32-bit numbers per Philox call
  return {
      static_cast<unsigned>(blocks),
      reserve_numbers(static_cast<uint64_t>((elements - 1) / of_all_threads + 1) * per_call, generator)};
}

} // namespace musa_ops_ported
