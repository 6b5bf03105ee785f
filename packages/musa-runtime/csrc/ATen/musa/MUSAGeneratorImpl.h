// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/TensorBase.h>
#include <ATen/musa/PhiloxMusaState.h>
#include <c10/core/GeneratorImpl.h>
#include <c10/musa/MUSAMacros.h>

#include <atomic>

namespace at {

// Seed and offset, shared by the generators that graphsafe_set_state connects. A counter-based generator (Philox 4x32-10,
// Salmon et al. 2011): numbers are a function of (seed, thread, offset), so the state is 16 bytes. Locking: the fields are
// guarded by the mutex_ of the generator that accesses them.
struct MUSAGeneratorState : c10::intrusive_ptr_target {
  uint64_t seed = c10::default_rng_seed_val;
  uint64_t philox_offset_per_thread = 0;

  // Set while a graph is captured; the memory belongs to the graph. capture_id is the SDK's.
  unsigned long long capture_id = 0;
  int64_t* seed_extragraph = nullptr;
  int64_t* offset_extragraph = nullptr;
  uint64_t offset_intragraph = 0;

  bool capturing() const { return seed_extragraph != nullptr; }
};

// The random number generator of a musa device. As for every torch generator, the caller of a method that changes the state
// holds mutex_:  std::lock_guard<std::mutex> lock(generator->mutex_);
struct C10_MUSA_API MUSAGeneratorImpl final : c10::GeneratorImpl {
  // Device -1 means the current device.
  explicit MUSAGeneratorImpl(DeviceIndex device = -1);
  MUSAGeneratorImpl(DeviceIndex device, c10::intrusive_ptr<MUSAGeneratorState> state);
  ~MUSAGeneratorImpl() override = default;

  static c10::DeviceType device_type();

  void set_current_seed(uint64_t seed) override;
  uint64_t current_seed() const override;
  // Draws a seed from the operating system, and returns it.
  uint64_t seed() override;
  // The offset counts numbers drawn per thread. It is a multiple of 4, the width of a Philox round.
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override;
  // A CPU uint8 tensor of 16 bytes: seed (uint64), offset (int64).
  void set_state(const c10::TensorImpl& new_state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;
  // Shares the state object, so that a replayed graph and eager code draw from one sequence.
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& state) override;
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override;

  void set_philox_offset_per_thread(uint64_t offset);
  uint64_t philox_offset_per_thread() const;

  // Reserves increment numbers per thread (rounded up to a multiple of 4) for one kernel on the current stream of the
  // generator's device. Raises if only one of stream and generator takes part in a graph capture.
  PhiloxMusaState philox_musa_state(uint64_t increment);
  // The same as (seed, offset), for code that runs on the host. Raises during graph capture.
  std::pair<uint64_t, uint64_t> philox_engine_inputs(uint64_t increment);

  // Called by the graph after a capture has begun, at its end, and before each replay. seed and offset point to one int64
  // each in device memory; capture_epilogue returns how far one replay advances the offset.
  void capture_prologue(unsigned long long capture_id, int64_t* seed, int64_t* offset);
  uint64_t capture_epilogue();
  std::pair<uint64_t, uint64_t> replay_prologue(uint64_t wholegraph_increment);

  bool shares_state_with(const MUSAGeneratorImpl& other) const { return state_ == other.state_; }

  // True once per seeding: the cached dropout state of RNNs must then be recreated.
  bool reset_rnn_state() { return !no_reset_rnn_state_.test_and_set(); }

 private:
  MUSAGeneratorImpl* clone_impl() const override;
  void check_not_capturing(const char* action) const;
  bool draws_into_graph() const;

  c10::intrusive_ptr<MUSAGeneratorState> state_;
  std::atomic_flag no_reset_rnn_state_{};
};

namespace musa::detail {

// The default generator of a device, used by random ops without a generator argument. It lives until the process ends.
C10_MUSA_API const Generator& getDefaultMUSAGenerator(DeviceIndex device = -1);
// Returns a new generator with the default seed.
C10_MUSA_API Generator createMUSAGenerator(DeviceIndex device = -1);

} // namespace musa::detail
} // namespace at
