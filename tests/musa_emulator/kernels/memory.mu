// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Variables of kernels, stream-ordered allocation, information on captures: results of the calls, and their errors.
#include <cstdint>

#include "check.h"

__constant__ float table[8];
__device__ int counter;
__device__ struct Settings {
  int a;
  double b;
} settings = {3, 0.5};

__global__ void read(float* out) {
  out[threadIdx.x] = table[threadIdx.x] * settings.a + static_cast<float>(settings.b);
  if (threadIdx.x < 4) {
    atomicAdd(&counter, 1);
  }
}
__global__ void fill(int* x, int value) { x[threadIdx.x] = value; }

void symbols(musaStream_t stream) {
  float values[8], got[8];
  for (int i = 0; i < 8; ++i) {
    values[i] = i + 1;
  }
  Array<float> out(8);
  EXPECT_EQ(musaMemcpyToSymbol(table, values, sizeof values), musaSuccess);
  read<<<1, 8, 0, stream>>>((float*)out);
  EXPECT_EQ(musaStreamSynchronize(stream), musaSuccess);
  EXPECT_EQ(out[7], 24.5f);
  const Settings other{10, 1.0};
  EXPECT_EQ(musaMemcpyToSymbolAsync(settings, &other, sizeof other, 0, musaMemcpyHostToDevice, stream), musaSuccess);
  EXPECT_EQ(musaMemcpyToSymbol(table, values, 4, 28), musaSuccess); // sets the last element to 1
  read<<<1, 8, 0, stream>>>((float*)out);
  EXPECT_EQ(musaMemcpyFromSymbolAsync(got, table, 16, 16, musaMemcpyDeviceToHost, stream), musaSuccess);
  EXPECT_EQ(musaStreamSynchronize(stream), musaSuccess);
  EXPECT_EQ(out[7], 11.0f);
  EXPECT_EQ(got[0], 5.0f);
  EXPECT_EQ(got[3], 1.0f);
  int count = 0;
  EXPECT_EQ(musaMemcpyFromSymbol(&count, counter, sizeof count), musaSuccess);
  EXPECT_EQ(count, 8);
  void* address = nullptr;
  EXPECT_EQ(musaGetSymbolAddress(&address, counter), musaSuccess);
  EXPECT_EQ(musaMemset(address, 0, sizeof(int)), musaSuccess);
  fill<<<1, 1, 0, stream>>>((int*)address, 42);
  EXPECT_EQ(musaStreamSynchronize(stream), musaSuccess);
  EXPECT_EQ(musaMemcpy(&count, address, sizeof count, musaMemcpyDeviceToHost), musaSuccess);
  EXPECT_EQ(count, 42);
  EXPECT_EQ(musaMemcpyToSymbol(table, values, sizeof values, 4), musaErrorInvalidValue); // past the end
  EXPECT_EQ(musaMemcpyToSymbol(table, values, 4, 0, musaMemcpyDeviceToHost), musaErrorInvalidMemcpyDirection);
  static int unknown;
  EXPECT_EQ(musaMemcpyToSymbol((const void*)&unknown, values, 4, 0, musaMemcpyHostToDevice), musaErrorInvalidSymbol);
  EXPECT_EQ(musaHostUnregister(address), musaErrorHostMemoryNotRegistered);
  musaGetLastError();
}

void pools(musaStream_t stream) {
  int* x = nullptr;
  int got[4];
  musaMemPool_t pool = nullptr, again = nullptr;
  uint64_t used = 99, threshold = 1 << 20;
  EXPECT_EQ(musaDeviceGetDefaultMemPool(&pool, 0), musaSuccess);
  EXPECT_EQ(musaDeviceGetDefaultMemPool(&again, 0), musaSuccess);
  EXPECT(pool == again && pool != nullptr);
  EXPECT_EQ(musaMemPoolSetAttribute(pool, musaMemPoolAttrReleaseThreshold, &threshold), musaSuccess);
  threshold = 0;
  EXPECT_EQ(musaMemPoolGetAttribute(pool, musaMemPoolAttrReleaseThreshold, &threshold), musaSuccess);
  EXPECT_EQ(threshold, uint64_t{1 << 20});
  EXPECT_EQ(musaMallocAsync(&x, sizeof got, stream), musaSuccess);
  fill<<<1, 4, 0, stream>>>(x, 7);
  EXPECT_EQ(musaMemcpyAsync(got, x, sizeof got, musaMemcpyDeviceToHost, stream), musaSuccess);
  EXPECT_EQ(musaMemPoolGetAttribute(pool, musaMemPoolAttrUsedMemCurrent, &used), musaSuccess);
  EXPECT_EQ(used, uint64_t{sizeof got});
  EXPECT_EQ(musaFreeAsync(x, stream), musaSuccess);
  EXPECT_EQ(musaStreamSynchronize(stream), musaSuccess);
  EXPECT_EQ(got[3], 7);
  EXPECT_EQ(musaMemPoolGetAttribute(pool, musaMemPoolAttrUsedMemCurrent, &used), musaSuccess);
  EXPECT_EQ(used, uint64_t{0});
  EXPECT_EQ(musaMemPoolGetAttribute(pool, musaMemPoolAttrUsedMemHigh, &used), musaSuccess);
  EXPECT_EQ(used, uint64_t{sizeof got});
  EXPECT_EQ(musaMemPoolTrimTo(pool, 0), musaSuccess);
  EXPECT_EQ(musaFreeAsync(x, stream), musaErrorInvalidValue); // already freed
  EXPECT_EQ(musaMemPoolTrimTo(reinterpret_cast<musaMemPool_t>(got), 0), musaErrorInvalidValue); // no pool
  musaGetLastError();
  // The free waits for the work before it.
  EXPECT_EQ(musaMallocAsync(&x, 64, stream), musaSuccess);
  for (int i = 0; i < 20; ++i) {
    fill<<<1, 16, 0, stream>>>(x, i);
  }
  EXPECT_EQ(musaFreeAsync(x, stream), musaSuccess);
  EXPECT_EQ(musaStreamSynchronize(stream), musaSuccess);
  // musaFree frees such memory too.
  EXPECT_EQ(musaMallocAsync(&x, 64, stream), musaSuccess);
  EXPECT_EQ(musaFree(x), musaSuccess);
  EXPECT_EQ(musaMemPoolGetAttribute(pool, musaMemPoolAttrUsedMemCurrent, &used), musaSuccess);
  EXPECT_EQ(used, uint64_t{0});
  int* const none = nullptr;
  EXPECT_EQ(musaFreeAsync(none, stream), musaSuccess);
  static int host;
  EXPECT_EQ(musaFreeAsync(&host, stream), musaErrorInvalidValue);
  musaGetLastError();
}

void captures(musaStream_t stream) {
  musaStreamCaptureStatus status;
  unsigned long long id = 0;
  EXPECT_EQ(musaStreamGetCaptureInfo(stream, &status, &id), musaSuccess);
  EXPECT_EQ(status, musaStreamCaptureStatusNone);
  musaStreamCaptureMode mode = musaStreamCaptureModeRelaxed;
  EXPECT_EQ(musaThreadExchangeStreamCaptureMode(&mode), musaSuccess);
  EXPECT_EQ(mode, musaStreamCaptureModeGlobal);
  musaThreadExchangeStreamCaptureMode(&mode);
  musaGraph_t graph = nullptr;
  EXPECT_EQ(musaStreamBeginCapture(stream, musaStreamCaptureModeRelaxed), musaSuccess);
  EXPECT_EQ(musaStreamGetCaptureInfo(stream, &status, &id), musaSuccess);
  EXPECT_EQ(status, musaStreamCaptureStatusActive);
  EXPECT(id != 0);
  int* x = nullptr;
  EXPECT_EQ(musaMallocAsync(&x, 64, stream), musaErrorStreamCaptureUnsupported);
  EXPECT_EQ(musaStreamEndCapture(stream, &graph), musaErrorStreamCaptureInvalidated);
  musaGetLastError();
}

namespace caller { // its functions are preferred
int musaMallocAsync(void**, size_t, musaStream_t) { return 17; }
int call(musaStream_t stream) {
  void* p;
  return musaMallocAsync(&p, 4, stream);
}
} // namespace caller

int main() {
  musaStream_t stream;
  musaStreamCreateWithFlags(&stream, musaStreamNonBlocking);
  symbols(stream);
  pools(stream);
  captures(stream);
  EXPECT_EQ(caller::call(stream), 17);
  return finish();
}
