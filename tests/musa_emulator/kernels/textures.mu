// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Texture objects over linear and pitched memory.
#include <cmath>

#include "check.h"

__global__ void fetch(musaTextureObject_t texture, float4* out, int first) {
  out[threadIdx.x] = tex1Dfetch<float4>(texture, first + static_cast<int>(threadIdx.x));
}
__global__ void fetch_words(musaTextureObject_t texture, int* out) {
  out[threadIdx.x] = tex1Dfetch<int>(texture, threadIdx.x);
}
__global__ void sample(musaTextureObject_t texture, const float* x, const float* y, float* out) {
  out[threadIdx.x] = tex2D<float>(texture, x[threadIdx.x], y[threadIdx.x]);
}

texture<int> reference = 0;
__global__ void fetch_reference(int* out) {
  out[threadIdx.x] = tex1Dfetch(reference, static_cast<int>(threadIdx.x) - 1);
}

musaTextureObject_t made(const musaResourceDesc& resource, const musaTextureDesc& description, musaError_t expected) {
  musaTextureObject_t object = 0;
  EXPECT_EQ(musaCreateTextureObject(&object, &resource, &description, nullptr), expected);
  musaGetLastError();
  return object;
}

int main() {
  {
    const int count = 6;
    Array<int> first(4), second(4), out(count), again(count);
    first = std::vector<int>{1, 2, 3, 4};
    second = std::vector<int>{5, 6, 7, 8};
    size_t offset = 1;
    EXPECT_EQ(musaBindTexture(&offset, reference, (int*)nullptr), musaErrorInvalidValue);
    EXPECT_EQ(musaBindTexture(&offset, reference, (int*)first, 16), musaSuccess);
    EXPECT_EQ(offset, size_t(0));
    fetch_reference<<<1, count>>>(out);
    // The first kernel reads the memory that was bound at its launch.
    EXPECT_EQ(musaBindTexture(nullptr, reference, (int*)second, 16), musaSuccess);
    fetch_reference<<<1, count>>>(again);
    EXPECT_EQ(musaDeviceSynchronize(), musaSuccess);
    const std::vector<int> got = out.host(), then = again.host();
    for (int i = 0; i < count; ++i) {
      const bool inside = i >= 1 && i <= 4;
      EXPECT_EQ(got[i], inside ? i : 0);
      EXPECT_EQ(then[i], inside ? i + 4 : 0);
    }
    EXPECT_EQ(musaUnbindTexture(reference), musaSuccess);
  }
  const int n = 8;
  musaTextureDesc description{};
  {
    std::vector<float4> values(n);
    for (int i = 0; i < n; ++i) {
      values[i] = make_float4(i, i + 0.25f, -i, 1);
    }
    Array<float4> x(n), out(n);
    x = values;
    musaResourceDesc resource{};
    resource.resType = musaResourceTypeLinear;
    resource.res.linear.devPtr = (float4*)x;
    resource.res.linear.desc = musaCreateChannelDesc<float4>();
    resource.res.linear.sizeInBytes = n * sizeof(float4);
    const musaTextureObject_t texture = made(resource, description, musaSuccess);
    fetch<<<1, n>>>(texture, (float4*)out, 2);
    EXPECT_EQ(out[0].y, 2.25f);
    EXPECT_EQ(out[5].z, -7.0f);
    EXPECT_EQ(out[6].w, 0.0f); // outside
    EXPECT_EQ(musaDestroyTextureObject(texture), musaSuccess);
    EXPECT_EQ(musaDestroyTextureObject(texture), musaErrorInvalidValue);
    resource.res.linear.desc.y = 16;
    made(resource, description, musaErrorInvalidChannelDescriptor);
    resource.res.linear.desc = musaCreateChannelDesc<float4>();
    resource.res.linear.sizeInBytes *= 2; // past the end
    made(resource, description, musaErrorInvalidValue);
    resource.resType = musaResourceTypeArray; // without an array
    made(resource, description, musaErrorInvalidValue);
    resource.resType = musaResourceTypeMipmappedArray;
    made(resource, description, musaErrorNotSupported);
  }
  {
    std::vector<int> values{1 << 30, (1 << 30) + 1, -7, 16777217};
    Array<int> x(4), out(4);
    x = values;
    musaResourceDesc resource{};
    resource.resType = musaResourceTypeLinear;
    resource.res.linear.devPtr = (int*)x;
    resource.res.linear.desc = musaCreateChannelDesc<int>();
    resource.res.linear.sizeInBytes = 16;
    const musaTextureObject_t texture = made(resource, description, musaSuccess);
    fetch_words<<<1, 4>>>(texture, (int*)out);
    EXPECT(out.host() == values); // bitwise equal
    musaDestroyTextureObject(texture);
    description.filterMode = musaFilterModeLinear;
    made(resource, description, musaErrorInvalidFilterSetting);
  }
  { // rows of bytes, normalized to [0, 1], sampled between their centres
    const int width = 5, height = 3;
    unsigned char* memory;
    size_t pitch;
    musaMallocPitch(&memory, &pitch, width, height);
    std::vector<unsigned char> pixels(width * height);
    for (int i = 0; i < width * height; ++i) {
      pixels[i] = static_cast<unsigned char>(17 * i);
    }
    musaMemcpy2D(memory, pitch, pixels.data(), width, width, height, musaMemcpyHostToDevice);
    musaResourceDesc resource{};
    resource.resType = musaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = memory;
    resource.res.pitch2D.desc = musaCreateChannelDesc<unsigned char>();
    resource.res.pitch2D.width = width;
    resource.res.pitch2D.height = height;
    resource.res.pitch2D.pitchInBytes = pitch;
    description.readMode = musaReadModeNormalizedFloat;
    const std::vector<float> xs{0.5f, 1.0f, 4.5f, -3.0f, 2.25f, 9.0f}, ys{0.5f, 1.5f, 2.5f, 1.5f, 1.75f, 9.0f};
    Array<float> x(6), y(6), out(6);
    x = xs;
    y = ys;
    const auto pixel = [&](int column, int row) {
      column = column < 0 ? 0 : column >= width ? width - 1 : column;
      row = row < 0 ? 0 : row >= height ? height - 1 : row;
      return pixels[row * width + column] / 255.0f;
    };
    description.addressMode[0] = description.addressMode[1] = musaAddressModeClamp;
    for (const bool linear : {false, true}) {
      description.filterMode = linear ? musaFilterModeLinear : musaFilterModePoint;
      const musaTextureObject_t texture = made(resource, description, musaSuccess);
      sample<<<1, 6>>>(texture, (const float*)(float*)x, (const float*)(float*)y, (float*)out);
      for (int i = 0; i < 6; ++i) {
        float expected = pixel(int(std::floor(xs[i])), int(std::floor(ys[i])));
        if (linear) {
          const float left = std::floor(xs[i] - 0.5f), top = std::floor(ys[i] - 0.5f);
          const float a = xs[i] - 0.5f - left, b = ys[i] - 0.5f - top;
          const int c = int(left), r = int(top);
          expected = (1 - b) * ((1 - a) * pixel(c, r) + a * pixel(c + 1, r)) +
              b * ((1 - a) * pixel(c, r + 1) + a * pixel(c + 1, r + 1));
        }
        EXPECT(std::fabs(out[i] - expected) < 1e-6f);
      }
      musaDestroyTextureObject(texture);
    }
    description.filterMode = musaFilterModePoint;
    description.addressMode[0] = description.addressMode[1] = musaAddressModeWrap;
    description.normalizedCoords = 1;
    const musaTextureObject_t texture = made(resource, description, musaSuccess);
    x = std::vector<float>{0.1f, 1.1f, -0.1f, 0.5f, 0.9f, 2.3f};
    y = std::vector<float>{0.1f, 0.1f, 0.1f, -0.5f, 1.5f, 0.9f};
    sample<<<1, 6>>>(texture, (const float*)(float*)x, (const float*)(float*)y, (float*)out);
    EXPECT(std::fabs(out[0] - pixel(0, 0)) < 1e-6f);
    EXPECT(std::fabs(out[1] - pixel(0, 0)) < 1e-6f);
    EXPECT(std::fabs(out[2] - pixel(4, 0)) < 1e-6f);
    EXPECT(std::fabs(out[3] - pixel(2, 1)) < 1e-6f);
    EXPECT(std::fabs(out[5] - pixel(1, 2)) < 1e-6f);
    musaDestroyTextureObject(texture);
    musaFree(memory);
  }
  return finish();
}
