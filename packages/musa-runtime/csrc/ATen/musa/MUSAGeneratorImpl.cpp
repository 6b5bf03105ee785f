// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/musa/MUSAGeneratorImpl.h>

#include <ATen/EmptyTensor.h>
#include <ATen/core/TensorBase.h>
#include <c10/musa/MUSAFunctions.h>
#include <c10/musa/MUSAStream.h>

#include <array>
#include <cstring>
#include <mutex>

namespace at {
namespace {

constexpr size_t kSeedBytes = sizeof(uint64_t);
constexpr size_t kOffsetBytes = sizeof(int64_t);
constexpr size_t kStateBytes = kSeedBytes + kOffsetBytes;
constexpr uint64_t kPhiloxWidth = 4; // numbers per Philox round

uint64_t round_to_philox(uint64_t increment) { return (increment + kPhiloxWidth - 1) / kPhiloxWidth * kPhiloxWidth; }

c10::Device musa_device(DeviceIndex device) {
  return c10::Device(c10::DeviceType::PrivateUse1, c10::musa::resolve_device_index(device));
}

} // namespace

MUSAGeneratorImpl::MUSAGeneratorImpl(DeviceIndex device)
    : MUSAGeneratorImpl(device, c10::make_intrusive<MUSAGeneratorState>()) {}

MUSAGeneratorImpl::MUSAGeneratorImpl(DeviceIndex device, c10::intrusive_ptr<MUSAGeneratorState> state)
    // Without a dispatch key: operators are dispatched by their tensors, and host kernels report a generator of another
    // device.
    : c10::GeneratorImpl(musa_device(device), c10::DispatchKeySet()), state_(std::move(state)) {
  no_reset_rnn_state_.clear();
}

c10::DeviceType MUSAGeneratorImpl::device_type() { return c10::DeviceType::PrivateUse1; }

void MUSAGeneratorImpl::check_not_capturing(const char* action) const {
  TORCH_CHECK(
      !state_->capturing(), "Cannot ", action, " while a graph that uses the generator is captured.\n",
      "Fix: move the call out of the capture; replays advance the offset by themselves.");
}

void MUSAGeneratorImpl::set_current_seed(uint64_t seed) {
  check_not_capturing("seed a generator");
  state_->seed = seed;
  state_->philox_offset_per_thread = 0;
  no_reset_rnn_state_.clear();
}

uint64_t MUSAGeneratorImpl::current_seed() const { return state_->seed; }

uint64_t MUSAGeneratorImpl::seed() {
  const uint64_t random = c10::detail::getNonDeterministicRandom();
  set_current_seed(random);
  return random;
}

void MUSAGeneratorImpl::set_offset(uint64_t offset) {
  check_not_capturing("set the offset of a generator");
  set_philox_offset_per_thread(offset);
  no_reset_rnn_state_.clear();
}

uint64_t MUSAGeneratorImpl::get_offset() const {
  check_not_capturing("read the offset of a generator");
  return state_->philox_offset_per_thread;
}

void MUSAGeneratorImpl::set_philox_offset_per_thread(uint64_t offset) {
  TORCH_CHECK_VALUE(
      offset % kPhiloxWidth == 0, "The offset of a musa generator must be a multiple of 4, got ", offset,
      ": Philox makes four numbers at a time.");
  state_->philox_offset_per_thread = offset;
}

uint64_t MUSAGeneratorImpl::philox_offset_per_thread() const { return state_->philox_offset_per_thread; }

void MUSAGeneratorImpl::set_state(const c10::TensorImpl& new_state) {
  at::detail::check_rng_state(new_state);
  check_not_capturing("set the state of a generator");
  const auto bytes = static_cast<size_t>(new_state.numel());
  TORCH_CHECK(
      bytes == kStateBytes, "The state of a musa generator has 16 bytes (seed, offset), got ", bytes, ".\n",
      "Likely cause: the state was taken from a generator of another device type.");
  const auto* data = static_cast<const char*>(new_state.data());
  uint64_t seed = 0;
  int64_t offset = 0;
  std::memcpy(&seed, data, kSeedBytes);
  std::memcpy(&offset, data + kSeedBytes, kOffsetBytes);
  set_philox_offset_per_thread(static_cast<uint64_t>(offset));
  state_->seed = seed;
  no_reset_rnn_state_.clear();
}

c10::intrusive_ptr<c10::TensorImpl> MUSAGeneratorImpl::get_state() const {
  check_not_capturing("read the state of a generator");
  const at::TensorBase state = at::detail::empty_cpu(
      {static_cast<int64_t>(kStateBytes)}, at::kByte, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
  auto* data = static_cast<char*>(state.mutable_data_ptr());
  const auto offset = static_cast<int64_t>(state_->philox_offset_per_thread);
  std::memcpy(data, &state_->seed, kSeedBytes);
  std::memcpy(data + kSeedBytes, &offset, kOffsetBytes);
  return state.getIntrusivePtr();
}

void MUSAGeneratorImpl::graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& state) {
  check_not_capturing("replace the state of a generator");
  const auto* other = dynamic_cast<const MUSAGeneratorImpl*>(state.get());
  TORCH_CHECK_TYPE(other != nullptr, "graphsafe_set_state needs a generator of a musa device.");
  state_ = other->state_;
}

c10::intrusive_ptr<c10::GeneratorImpl> MUSAGeneratorImpl::graphsafe_get_state() const {
  return c10::make_intrusive<MUSAGeneratorImpl>(device_.index(), state_);
}

// Whether the next numbers are for the graph that the current stream is captured into.
bool MUSAGeneratorImpl::draws_into_graph() const {
  const c10::musa::MUSAStream stream = c10::musa::getCurrentMUSAStream(device_.index());
  musaStreamCaptureStatus status = musaStreamCaptureStatusNone;
  unsigned long long id = 0;
  if (stream.id() != 0) { // the default stream cannot be captured, and querying it may disturb a capture
    C10_MUSA_CHECK(musaStreamGetCaptureInfo_v2(stream.stream(), &status, &id, nullptr, nullptr, nullptr));
  }
  const bool captured = status != musaStreamCaptureStatusNone;
  // A capture that has failed need not have an id; its graph is discarded.
  const bool registered =
      state_->capturing() && (id == state_->capture_id || status == musaStreamCaptureStatusInvalidated);
  // A kernel whose offset was fixed at capture would draw the same numbers in every replay.
  TORCH_CHECK(
      !captured || registered,
      "A random operator was called while a graph is captured, with a generator that is not registered with the graph.\n",
      "Fix: register it before the capture, graph.register_generator_state(generator), or use the default generator.");
  // The replays fill the seed and offset, so a kernel that runs outside of them would read numbers of no replay.
  TORCH_CHECK(
      captured || !state_->capturing(),
      "A random operator was called on a stream that is not captured, while a graph that uses its generator is captured.\n",
      "Likely cause: another thread or stream draws random numbers during the capture.\n",
      "Fix: give it a generator of its own, torch.Generator('musa'), or wait until the capture has ended.");
  return captured;
}

PhiloxMusaState MUSAGeneratorImpl::philox_musa_state(uint64_t increment) {
  const uint64_t step = round_to_philox(increment);
  if (draws_into_graph()) {
    const uint64_t offset = state_->offset_intragraph;
    state_->offset_intragraph += step;
    return PhiloxMusaState(state_->seed_extragraph, state_->offset_extragraph, offset);
  }
  const uint64_t offset = state_->philox_offset_per_thread;
  state_->philox_offset_per_thread += step;
  return PhiloxMusaState(state_->seed, offset);
}

std::pair<uint64_t, uint64_t> MUSAGeneratorImpl::philox_engine_inputs(uint64_t increment) {
  TORCH_CHECK(
      !draws_into_graph(),
      "Cannot draw random numbers on the host while a graph that uses the generator is captured.\n",
      "Fix: move the call out of the capture; replays advance the offset by themselves.");
  const uint64_t offset = state_->philox_offset_per_thread;
  state_->philox_offset_per_thread += round_to_philox(increment);
  return {state_->seed, offset};
}

void MUSAGeneratorImpl::capture_prologue(unsigned long long capture_id, int64_t* seed, int64_t* offset) {
  TORCH_CHECK(
      !state_->capturing(), "Two graphs that use one generator cannot be captured at a time; every graph of ", device_,
      " uses its default generator.\nFix: capture one graph after the other.");
  TORCH_INTERNAL_ASSERT(capture_id != 0 && seed != nullptr && offset != nullptr);
  state_->capture_id = capture_id;
  state_->seed_extragraph = seed;
  state_->offset_extragraph = offset;
  state_->offset_intragraph = 0;
}

uint64_t MUSAGeneratorImpl::capture_epilogue() {
  state_->capture_id = 0;
  state_->seed_extragraph = nullptr;
  state_->offset_extragraph = nullptr;
  return state_->offset_intragraph;
}

std::pair<uint64_t, uint64_t> MUSAGeneratorImpl::replay_prologue(uint64_t wholegraph_increment) {
  return philox_engine_inputs(wholegraph_increment);
}

MUSAGeneratorImpl* MUSAGeneratorImpl::clone_impl() const {
  check_not_capturing("clone a generator");
  auto state = c10::make_intrusive<MUSAGeneratorState>();
  state->seed = state_->seed;
  state->philox_offset_per_thread = state_->philox_offset_per_thread;
  return new MUSAGeneratorImpl(device_.index(), std::move(state));
}

namespace musa::detail {

const Generator& getDefaultMUSAGenerator(DeviceIndex device) {
  struct Entry {
    std::once_flag once;
    Generator generator;
  };
  // Leaked: Python objects that hold these generators are destroyed after static destructors.
  static auto& entries = *new std::array<Entry, C10_COMPILE_TIME_MAX_MUSA_DEVICES>();
  const DeviceIndex index = c10::musa::resolve_device_index(device);
  c10::musa::check_device_index(index);
  Entry& entry = entries[index];
  std::call_once(entry.once, [&] {
    entry.generator = make_generator<MUSAGeneratorImpl>(index);
    entry.generator.seed();
  });
  return entry.generator;
}

Generator createMUSAGenerator(DeviceIndex device) {
  const DeviceIndex index = c10::musa::resolve_device_index(device);
  c10::musa::check_device_index(index);
  return make_generator<MUSAGeneratorImpl>(index);
}

} // namespace musa::detail
} // namespace at
