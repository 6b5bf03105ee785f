// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Arrays of one and two dimensions: copies into them, and textures over them.
#include "check.h"

__global__ void sample(musaTextureObject_t texture, const float* x, const float* y, float* out) {
  out[threadIdx.x] = tex2D<float>(texture, x[threadIdx.x], y[threadIdx.x]);
}
__global__ void sample_all(musaTextureObject_t texture, float* out) {
  out[threadIdx.y * blockDim.x + threadIdx.x] = tex2D<float>(texture, threadIdx.x + 0.5f, threadIdx.y + 0.5f);
}

musaTextureObject_t over(musaArray_t array, musaTextureDesc description) {
  musaResourceDesc resource{};
  resource.resType = musaResourceTypeArray;
  resource.res.array.array = array;
  musaTextureObject_t object = 0;
  EXPECT_EQ(musaCreateTextureObject(&object, &resource, &description, nullptr), musaSuccess);
  return object;
}

const int width = 4, height = 3;

// What a texture reads from all elements of an array.
std::vector<float> contents(musaArray_t array) {
  Array<float> out(width * height);
  const musaTextureObject_t texture = over(array, {});
  sample_all<<<1, dim3(width, height)>>>(texture, (float*)out);
  const std::vector<float> read = out.host();
  EXPECT_EQ(musaDestroyTextureObject(texture), musaSuccess);
  return read;
}

void copies() {
  const musaChannelFormatDesc desc = musaCreateChannelDesc<float>();
  musaArray_t array = nullptr, other = nullptr;
  EXPECT_EQ(musaMallocArray(&array, &desc, width, height), musaSuccess);
  std::vector<float> values(width * height);
  for (int i = 0; i < width * height; ++i) {
    values[i] = static_cast<float>(i * i);
  }
  EXPECT_EQ(
      musaMemcpy2DToArray(array, 0, 0, values.data(), width * 4, width * 4, height, musaMemcpyHostToDevice),
      musaSuccess);
  EXPECT(contents(array) == values);
  EXPECT_EQ(
      musaMemcpy2DToArray(array, 4, 0, values.data(), width * 4, width * 4, height, musaMemcpyHostToDevice),
      musaErrorInvalidValue); // past the end of the rows
  EXPECT_EQ(
      musaMemcpy2DToArray(array, 0, 0, values.data(), 8, width * 4, height, musaMemcpyHostToDevice),
      musaErrorInvalidPitchValue);
  musaGetLastError();
  // A rectangle of two by two elements, from the first rows of the source.
  std::vector<float> expected = values;
  EXPECT_EQ(musaMemcpy2DToArray(array, 4, 1, values.data(), width * 4, 8, 2, musaMemcpyHostToDevice), musaSuccess);
  for (int y = 0; y < 2; ++y) {
    for (int x = 0; x < 2; ++x) {
      expected[(y + 1) * width + x + 1] = values[y * width + x];
    }
  }
  EXPECT(contents(array) == expected);

  EXPECT_EQ(musaMallocArray(&other, &desc, width, height), musaSuccess);
  EXPECT_EQ(musaMemcpyToArray(other, 0, 0, values.data(), values.size() * 4, musaMemcpyHostToDevice), musaSuccess);
  EXPECT(contents(other) == values);
  EXPECT_EQ(musaMemcpyToArray(other, 8, 1, values.data(), 16, musaMemcpyHostToDevice), musaSuccess); // two rows
  expected = values;
  for (int i = 0; i < 4; ++i) {
    expected[6 + i] = values[i];
  }
  EXPECT(contents(other) == expected);
  EXPECT_EQ(musaMemcpyToArray(other, 8, 2, values.data(), 16, musaMemcpyHostToDevice), musaErrorInvalidValue);
  musaGetLastError();
  EXPECT_EQ(musaFreeArray(other), musaSuccess);
  EXPECT_EQ(musaFreeArray(array), musaSuccess);
  EXPECT_EQ(musaFreeArray(array), musaErrorInvalidResourceHandle);
  EXPECT_EQ(musaMemcpyToArray(array, 0, 0, values.data(), 4, musaMemcpyHostToDevice), musaErrorInvalidResourceHandle);
  musaGetLastError();
}

void one_row() {
  const musaChannelFormatDesc desc = musaCreateChannelDesc<float>();
  musaArray_t array = nullptr;
  EXPECT_EQ(musaMallocArray(&array, &desc, 4), musaSuccess);
  const std::vector<float> values{1, 2, 4, 8};
  musaMemcpyToArray(array, 0, 0, values.data(), 16, musaMemcpyHostToDevice);
  musaTextureDesc description{};
  description.filterMode = musaFilterModeLinear;
  description.addressMode[0] = description.addressMode[1] = musaAddressModeClamp;
  Array<float> x(4), y(4), out(4);
  x = std::vector<float>{0.5f, 1.0f, 3.0f, 7.0f};
  y = std::vector<float>(4, 0.5f);
  const auto read = [&](const musaTextureDesc& how) {
    const musaTextureObject_t texture = over(array, how);
    sample<<<1, 4>>>(texture, (const float*)(float*)x, (const float*)(float*)y, (float*)out);
    const std::vector<float> got = out.host();
    musaDestroyTextureObject(texture);
    return got;
  };
  EXPECT(read(description) == (std::vector<float>{1.0f, 1.5f, 6.0f, 8.0f}));
  // Wrapping needs normalized coordinates; without them, coordinates are clamped.
  description.addressMode[0] = musaAddressModeWrap;
  EXPECT_EQ(read(description)[3], 8.0f);
  description.normalizedCoords = 1;
  description.filterMode = musaFilterModePoint;
  x = std::vector<float>{1.125f, -0.125f, 2.4f, 0.9f};
  EXPECT(read(description) == (std::vector<float>{1.0f, 8.0f, 2.0f, 8.0f}));
  description.addressMode[0] = musaAddressModeBorder;
  EXPECT(read(description) == (std::vector<float>{0.0f, 0.0f, 0.0f, 8.0f}));
  musaFreeArray(array);
}

int main() {
  one_row();
  copies();
  const musaChannelFormatDesc odd{32, 16, 0, 0, musaChannelFormatKindFloat};
  musaArray_t array = nullptr;
  EXPECT_EQ(musaMallocArray(&array, &odd, 4, 4), musaErrorInvalidChannelDescriptor);
  const musaChannelFormatDesc desc = musaCreateChannelDesc<float>();
  for (const unsigned flag : {1u, 2u, 4u}) { // layers, surfaces, cubes
    EXPECT_EQ(musaMallocArray(&array, &desc, 4, 4, flag), musaErrorNotSupported);
  }
  EXPECT_EQ(musaMallocArray(&array, &desc, 4, 4, 64), musaErrorInvalidValue);
  musaGetLastError();
  return finish();
}
