// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <cstring>
#include <numeric>

#include "emulator_test.h"

class TransferTest : public EmulatorTest {};

TEST_F(TransferTest, RoundTripThroughEveryKind) {
  std::vector<int> host(1000);
  std::iota(host.begin(), host.end(), 0);
  const DeviceArray<int> a(1000);
  const DeviceArray<int> b(1000);
  std::vector<int> back(1000);
  EXPECT_OK(musaMemcpy(a, host.data(), 4000, musaMemcpyHostToDevice));
  EXPECT_OK(musaMemcpy(b, a, 4000, musaMemcpyDeviceToDevice));
  EXPECT_OK(musaMemcpy(back.data(), b, 4000, musaMemcpyDefault));
  EXPECT_EQ(host, back);
  std::vector<int> copy(1000);
  EXPECT_OK(musaMemcpy(copy.data(), back.data(), 4000, musaMemcpyHostToHost));
  EXPECT_EQ(host, copy);
}

TEST_F(TransferTest, WrongDirectionIsRefused) {
  const DeviceArray<char> device(64);
  char host[64];
  EXPECT_STATUS(musaErrorInvalidValue, musaMemcpy(host, device, 64, musaMemcpyHostToDevice));
  EXPECT_STATUS(musaErrorInvalidValue, musaMemcpy(device, host, 64, musaMemcpyDeviceToHost));
  EXPECT_STATUS(musaErrorInvalidValue, musaMemcpy(device, host, 64, musaMemcpyDeviceToDevice));
  EXPECT_STATUS(musaErrorInvalidValue, musaMemcpy(device, host, 64, musaMemcpyHostToHost));
  EXPECT_STATUS(musaErrorInvalidMemcpyDirection, musaMemcpy(device, host, 64, static_cast<musaMemcpyKind>(9)));
  EXPECT_STATUS(musaErrorInvalidValue, musaMemcpy(nullptr, host, 64, musaMemcpyDefault));
  EXPECT_OK(musaMemcpy(nullptr, nullptr, 0, musaMemcpyDefault));
}

TEST_F(TransferTest, RunningPastTheEndIsRefused) {
  const DeviceArray<char> device(100);
  std::vector<char> host(200);
  EXPECT_STATUS(musaErrorInvalidValue, musaMemcpy(device, host.data(), 101, musaMemcpyHostToDevice));
  EXPECT_STATUS(musaErrorInvalidValue, musaMemcpy(device + 50, host.data(), 51, musaMemcpyHostToDevice));
  EXPECT_OK(musaMemcpy(device + 50, host.data(), 50, musaMemcpyHostToDevice));
  EXPECT_STATUS(musaErrorInvalidValue, musaMemset(device, 0, 101));
  EXPECT_STATUS(musaErrorInvalidValue, musaMemset(host.data(), 0, 10)) << "not device memory";
}

TEST_F(TransferTest, FreedMemoryIsRefused) {
  char* device = nullptr;
  char host[64] = {};
  ASSERT_OK(musaMalloc(&device, 64));
  EXPECT_OK(musaMemcpy(device, host, 64, musaMemcpyHostToDevice));
  EXPECT_OK(musaFree(device));
  EXPECT_STATUS(musaErrorInvalidValue, musaMemcpy(device, host, 64, musaMemcpyHostToDevice));
}

TEST_F(TransferTest, PageableSourceMayBeReusedAtOnce) {
  const Stream stream;
  const DeviceArray<char> device(4096);
  std::vector<char> host(4096, 1);
  EXPECT_OK(musaMemcpyAsync(device, host.data(), 4096, musaMemcpyHostToDevice, stream));
  std::fill(host.begin(), host.end(), 2);
  EXPECT_OK(musaStreamSynchronize(stream));
  EXPECT_EQ(1, read_back(device.data, 4096)[4095]);
}

TEST_F(TransferTest, PageableDestinationIsCompleteOnReturn) {
  const Stream stream;
  const DeviceArray<char> device(64);
  std::vector<char> host(64, 0);
  EXPECT_OK(musaMemsetAsync(device, 5, 64, stream));
  EXPECT_OK(musaMemcpyAsync(host.data(), device, 64, musaMemcpyDeviceToHost, stream));
  EXPECT_EQ(5, host[63]);
}

TEST_F(TransferTest, PinnedCopiesAreDeferredUntilTheStreamIsWaitedFor) {
  const Stream stream;
  const DeviceArray<char> device(64);
  char* pinned = nullptr;
  ASSERT_OK(musaMallocHost(&pinned, 64));
  std::memset(pinned, 0, 64);
  EXPECT_OK(musaMemset(device, 6, 64));
  EXPECT_OK(musaDeviceSynchronize());
  {
    Blocker blocker(stream);
    EXPECT_OK(musaMemcpyAsync(pinned, device, 64, musaMemcpyDeviceToHost, stream));
    EXPECT_EQ(0, pinned[0]) << "the copy overtook the work before it";
  }
  EXPECT_OK(musaStreamSynchronize(stream));
  EXPECT_EQ(6, pinned[63]);
  EXPECT_OK(musaFreeHost(pinned));
}

TEST_F(TransferTest, TwoDimensional) {
  const DeviceArray<char> device(100 * 8);
  std::vector<char> host(16 * 8);
  std::iota(host.begin(), host.end(), 0);
  EXPECT_OK(musaMemset(device, 0x7f, 800));
  EXPECT_OK(musaMemcpy2D(device, 100, host.data(), 16, 10, 8, musaMemcpyHostToDevice));
  const std::vector<char> back = read_back(device.data, 800);
  for (int y = 0; y < 8; ++y) {
    for (int x = 0; x < 100; ++x) {
      ASSERT_EQ(x < 10 ? y * 16 + x : 0x7f, back[static_cast<size_t>(y * 100 + x)]) << x << ", " << y;
    }
  }
  EXPECT_STATUS(musaErrorInvalidPitchValue, musaMemcpy2D(device, 5, host.data(), 16, 10, 8, musaMemcpyHostToDevice));
  const Stream stream;
  std::vector<char> rows(80);
  EXPECT_OK(musaMemcpy2DAsync(rows.data(), 10, device, 100, 10, 8, musaMemcpyDeviceToHost, stream));
  EXPECT_EQ(7 * 16 + 9, rows[79]);
}

TEST_F(TransferTest, ThreeDimensionalWithOffsets) {
  musaPitchedPtr volume = {};
  ASSERT_OK(musaMalloc3D(&volume, make_musaExtent(64, 4, 3)));
  EXPECT_OK(musaMemset3D(volume, 0, make_musaExtent(64, 4, 3)));
  std::vector<char> host(8 * 2 * 2, 1);
  musaMemcpy3DParms p = {};
  p.srcPtr = make_musaPitchedPtr(host.data(), 8, 8, 2);
  p.dstPtr = volume;
  p.dstPos = make_musaPos(3, 1, 1);
  p.extent = make_musaExtent(8, 2, 2);
  p.kind = musaMemcpyHostToDevice;
  EXPECT_OK(musaMemcpy3D(&p));
  const std::vector<char> back = read_back(static_cast<char*>(volume.ptr), volume.pitch * 4 * 3);
  int ones = 0;
  for (size_t i = 0; i < back.size(); ++i) {
    const size_t x = i % volume.pitch;
    const size_t y = i / volume.pitch % 4;
    const size_t z = i / volume.pitch / 4;
    const bool inside = x >= 3 && x < 11 && (y == 1 || y == 2) && z >= 1;
    if (x < 64) {
      ASSERT_EQ(inside ? 1 : 0, back[i]) << x << ", " << y << ", " << z;
      ones += back[i];
    }
  }
  EXPECT_EQ(32, ones);
  EXPECT_OK(musaFree(volume.ptr));
}

TEST_F(TransferTest, BetweenDevices) {
  char* first = nullptr;
  char* second = nullptr;
  ASSERT_OK(musaMalloc(&first, 256));
  ASSERT_OK(musaSetDevice(1));
  ASSERT_OK(musaMalloc(&second, 256));
  ASSERT_OK(musaSetDevice(0));
  EXPECT_OK(musaMemset(first, 4, 256));
  EXPECT_OK(musaMemcpyPeer(second, 1, first, 0, 256));
  EXPECT_OK(musaDeviceSynchronize());
  EXPECT_EQ(4, read_back(second, 256)[255]);
  EXPECT_STATUS(musaErrorInvalidDevice, musaMemcpyPeer(second, 5, first, 0, 256));
  EXPECT_STATUS(musaErrorInvalidValue, musaMemcpyPeer(second, 0, first, 0, 256)) << "not device 0's memory";
  const Stream stream;
  EXPECT_OK(musaMemsetAsync(first, 8, 256, stream));
  EXPECT_OK(musaMemcpyPeerAsync(second, 1, first, 0, 256, stream));
  EXPECT_OK(musaStreamSynchronize(stream));
  EXPECT_EQ(8, read_back(second, 256)[0]);
  EXPECT_OK(musaFree(first));
  EXPECT_OK(musaFree(second));
}
