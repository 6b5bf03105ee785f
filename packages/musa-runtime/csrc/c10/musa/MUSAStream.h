// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/DeviceGuard.h>
#include <c10/core/Stream.h>
#include <c10/musa/MUSAFunctions.h>

#include <functional>

namespace c10::musa {

// A c10::Stream that is known to be on a musa device. A StreamId is 0 for the device's default stream, odd for a stream of
// the pool (device table index and priority), and otherwise the address of a musaStream_t created elsewhere.
class C10_MUSA_API MUSAStream {
 public:
  enum Unchecked { UNCHECKED };

  explicit MUSAStream(Stream stream) : stream_(stream) {
    TORCH_CHECK(stream.device_type() == DeviceType::PrivateUse1, "Not a stream of a musa device: ", stream);
  }
  MUSAStream(Unchecked, Stream stream) : stream_(stream) {}

  bool operator==(const MUSAStream& other) const noexcept { return stream_ == other.stream_; }
  bool operator!=(const MUSAStream& other) const noexcept { return stream_ != other.stream_; }

  operator musaStream_t() const { return stream(); }
  operator Stream() const { return stream_; }

  // The SDK's handle; creates a pool stream at its first use. Null for the default stream.
  musaStream_t stream() const;

  DeviceType device_type() const { return DeviceType::PrivateUse1; }
  DeviceIndex device_index() const { return stream_.device_index(); }
  Device device() const { return stream_.device(); }
  StreamId id() const { return stream_.id(); }
  Stream unwrap() const { return stream_; }
  StreamData3 pack3() const { return stream_.pack3(); }
  static MUSAStream unpack3(StreamId id, DeviceIndex device, DeviceType type) {
    return MUSAStream(Stream::unpack3(id, device, type));
  }

  // Whether all work submitted so far has finished.
  bool query() const;
  void synchronize() const;
  int priority() const;

  // (least, greatest); a lower number is a higher priority, as in the SDK.
  static std::tuple<int, int> priority_range();

 private:
  Stream stream_;
};

// Device -1 means the current device in all of these.
C10_MUSA_API MUSAStream getDefaultMUSAStream(DeviceIndex device = -1);
C10_MUSA_API MUSAStream getCurrentMUSAStream(DeviceIndex device = -1);
// The SDK's handle of the current stream, for a device that is known to exist.
C10_MUSA_API musaStream_t current_stream_handle(DeviceIndex device);
C10_MUSA_API void setCurrentMUSAStream(MUSAStream stream);
// Waits until the work on a stream of the current device has finished, so that the host may access memory of that work. Not
// reported in sync debug mode. Does not disturb captures of other threads.
C10_MUSA_API void wait_for_host_access(musaStream_t stream);
// Selects from a fixed pool per device and priority, round robin, as torch.cuda does. Streams are never destroyed, so a raw
// handle stays valid.
C10_MUSA_API MUSAStream getStreamFromPool(bool is_high_priority = false, DeviceIndex device = -1);
C10_MUSA_API MUSAStream getStreamFromPool(int priority, DeviceIndex device = -1);
// Whether a stream other than the default one was ever created on the device, or wrapped by getStreamFromExternal.
C10_MUSA_API bool side_streams_exist(DeviceIndex device);
// Wraps a handle that the caller owns and keeps alive.
C10_MUSA_API MUSAStream getStreamFromExternal(musaStream_t stream, DeviceIndex device);

C10_MUSA_API std::ostream& operator<<(std::ostream& out, const MUSAStream& stream);

} // namespace c10::musa

template <>
struct std::hash<c10::musa::MUSAStream> {
  size_t operator()(const c10::musa::MUSAStream& stream) const noexcept {
    return std::hash<c10::Stream>{}(stream.unwrap());
  }
};
