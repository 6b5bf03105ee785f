// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Arrays: copies, textures of one to three dimensions, layers and cubes, and surfaces.
#include <cmath>

#include "check.h"

constexpr unsigned kLayered = 1, kForSurfaces = 2, kCubemap = 4;

__global__ void sample_1d(musaTextureObject_t texture, const float* x, float* out) {
  out[threadIdx.x] = tex1D<float>(texture, x[threadIdx.x]);
}
__global__ void sample_2d(musaTextureObject_t texture, float* out) {
  out[threadIdx.y * blockDim.x + threadIdx.x] = tex2D<float>(texture, threadIdx.x + 0.5f, threadIdx.y + 0.5f);
}
__global__ void sample_3d(musaTextureObject_t texture, float x, float y, float z, float* out) {
  *out = tex3D<float>(texture, x, y, z);
}
__global__ void sample_layers(musaTextureObject_t texture, int layer, float* out) {
  out[threadIdx.x] = tex2DLayered<float>(texture, threadIdx.x % 4 + 0.5f, threadIdx.x / 4 + 0.5f, layer);
}
__global__ void sample_cube(musaTextureObject_t texture, const float3* directions, float* out) {
  const float3 d = directions[threadIdx.x];
  out[threadIdx.x] = texCubemap<float>(texture, d.x, d.y, d.z);
}
__global__ void transpose(musaSurfaceObject_t from, musaSurfaceObject_t to) {
  const int x = threadIdx.x, y = threadIdx.y;
  surf2Dwrite(surf2Dread<float>(from, x * 4, y), to, y * 4, x);
}
__global__ void write_outside(musaSurfaceObject_t surface) {
  surf2Dwrite(1.0f, surface, 4000, 0, 0);        // ignored
  surf2Dwrite(2.0f, surface, 4000, 4000, 1);     // the last element
}

musaTextureObject_t over(musaArray_t array, musaTextureDesc description) {
  musaResourceDesc resource{};
  resource.resType = musaResourceTypeArray;
  resource.res.array.array = array;
  musaTextureObject_t object = 0;
  EXPECT_EQ(musaCreateTextureObject(&object, &resource, &description, nullptr), musaSuccess);
  return object;
}

musaError_t surface_over(musaArray_t array, musaSurfaceObject_t* object) {
  musaResourceDesc resource{};
  resource.resType = musaResourceTypeArray;
  resource.res.array.array = array;
  const musaError_t status = musaCreateSurfaceObject(object, &resource);
  musaGetLastError();
  return status;
}

std::vector<float> numbers(int count) {
  std::vector<float> values(count);
  for (int i = 0; i < count; ++i) {
    values[i] = static_cast<float>(i * i);
  }
  return values;
}

void two_dimensions() {
  const musaChannelFormatDesc desc = musaCreateChannelDesc<float>();
  const int width = 4, height = 3;
  musaArray_t array = nullptr, other = nullptr;
  EXPECT_EQ(musaMallocArray(&array, &desc, width, height), musaSuccess);
  const std::vector<float> values = numbers(width * height);
  EXPECT_EQ(
      musaMemcpy2DToArray(array, 0, 0, values.data(), width * 4, width * 4, height, musaMemcpyHostToDevice), musaSuccess);
  EXPECT_EQ(
      musaMemcpy2DToArray(array, 4, 0, values.data(), width * 4, width * 4, height, musaMemcpyHostToDevice),
      musaErrorInvalidValue); // past the end of the rows
  musaGetLastError();
  Array<float> out(width * height);
  const musaTextureObject_t texture = over(array, {});
  sample_2d<<<1, dim3(width, height)>>>(texture, (float*)out);
  EXPECT(out.host() == values);
  musaDestroyTextureObject(texture);

  EXPECT_EQ(musaMallocArray(&other, &desc, width, height), musaSuccess);
  EXPECT_EQ(musaMemcpyToArray(other, 0, 0, values.data(), values.size() * 4, musaMemcpyHostToDevice), musaSuccess);
  EXPECT_EQ(musaMemcpy2DArrayToArray(array, 4, 1, other, 0, 0, 8, 2), musaSuccess);
  std::vector<float> back(width * height), expected = values;
  for (int y = 0; y < 2; ++y) {
    for (int x = 0; x < 2; ++x) {
      expected[(y + 1) * width + x + 1] = values[y * width + x];
    }
  }
  EXPECT_EQ(
      musaMemcpy2DFromArray(back.data(), width * 4, array, 0, 0, width * 4, height, musaMemcpyDeviceToHost), musaSuccess);
  EXPECT(back == expected);
  EXPECT_EQ(musaMemcpyFromArray(back.data(), other, 8, 1, 16, musaMemcpyDeviceToHost), musaSuccess);
  EXPECT(std::vector<float>(back.begin(), back.begin() + 4) == std::vector<float>(values.begin() + 6, values.begin() + 10));

  musaExtent extent{};
  unsigned flags = 99;
  musaChannelFormatDesc found{};
  EXPECT_EQ(musaArrayGetInfo(&found, &extent, &flags, array), musaSuccess);
  EXPECT(found.x == 32 && found.f == musaChannelFormatKindFloat && extent.width == 4 && extent.depth == 0 && flags == 0);
  EXPECT_EQ(musaFreeArray(other), musaSuccess);
  EXPECT_EQ(musaFreeArray(array), musaSuccess);
  EXPECT_EQ(musaFreeArray(array), musaErrorInvalidResourceHandle);
  EXPECT_EQ(musaGetChannelDesc(&found, array), musaErrorInvalidResourceHandle);
  musaGetLastError();
}

void one_dimension() {
  const musaChannelFormatDesc desc = musaCreateChannelDesc<float>();
  musaArray_t array = nullptr;
  EXPECT_EQ(musaMallocArray(&array, &desc, 4), musaSuccess);
  const std::vector<float> values{1, 2, 4, 8};
  musaMemcpyToArray(array, 0, 0, values.data(), 16, musaMemcpyHostToDevice);
  musaTextureDesc description{};
  description.filterMode = musaFilterModeLinear;
  description.addressMode[0] = musaAddressModeClamp;
  Array<float> x(4), out(4);
  x = std::vector<float>{0.5f, 1.0f, 3.0f, 7.0f};
  const musaTextureObject_t texture = over(array, description);
  sample_1d<<<1, 4>>>(texture, (const float*)(float*)x, (float*)out);
  EXPECT(out.host() == (std::vector<float>{1.0f, 1.5f, 6.0f, 8.0f}));
  musaDestroyTextureObject(texture);
  // Wrapping needs normalized coordinates; without them, coordinates are clamped.
  description.addressMode[0] = musaAddressModeWrap;
  const musaTextureObject_t unwrapped = over(array, description);
  sample_1d<<<1, 4>>>(unwrapped, (const float*)(float*)x, (float*)out);
  EXPECT_EQ(out[3], 8.0f);
  musaDestroyTextureObject(unwrapped);
  description.normalizedCoords = 1;
  description.filterMode = musaFilterModePoint;
  x = std::vector<float>{1.125f, -0.125f, 2.4f, 0.9f};
  const musaTextureObject_t wrapped = over(array, description);
  sample_1d<<<1, 4>>>(wrapped, (const float*)(float*)x, (float*)out);
  EXPECT(out.host() == (std::vector<float>{1.0f, 8.0f, 2.0f, 8.0f}));
  musaDestroyTextureObject(wrapped);
  musaFreeArray(array);
}

musaArray_t box(musaExtent extent, unsigned flags, const std::vector<float>& values) {
  const musaChannelFormatDesc desc = musaCreateChannelDesc<float>();
  musaArray_t array = nullptr;
  EXPECT_EQ(musaMalloc3DArray(&array, &desc, extent, flags), musaSuccess);
  musaMemcpy3DParms copy{};
  copy.srcPtr = make_musaPitchedPtr(const_cast<float*>(values.data()), extent.width * 4, extent.width, extent.height);
  copy.dstArray = array;
  copy.extent = extent; // in elements
  copy.kind = musaMemcpyHostToDevice;
  EXPECT_EQ(musaMemcpy3D(&copy), musaSuccess);
  copy.dstPos.z = 1;
  EXPECT_EQ(musaMemcpy3D(&copy), musaErrorInvalidValue); // one slice more than the array has
  musaGetLastError();
  return array;
}

void three_dimensions() {
  const std::vector<float> values = numbers(4 * 3 * 2);
  const musaArray_t array = box({4, 3, 2}, 0, values);
  musaTextureDesc description{};
  description.addressMode[0] = description.addressMode[1] = description.addressMode[2] = musaAddressModeClamp;
  Array<float> out(1);
  musaTextureObject_t texture = over(array, description);
  sample_3d<<<1, 1>>>(texture, 2.5f, 1.5f, 1.5f, (float*)out);
  EXPECT_EQ(out[0], values[12 + 4 + 2]);
  musaDestroyTextureObject(texture);
  description.filterMode = musaFilterModeLinear;
  texture = over(array, description);
  sample_3d<<<1, 1>>>(texture, 1.5f, 0.5f, 1.0f, (float*)out); // half way between the slices
  EXPECT_EQ(out[0], (values[1] + values[13]) / 2);
  musaDestroyTextureObject(texture);
  description.addressMode[2] = musaAddressModeBorder;
  description.filterMode = musaFilterModePoint;
  texture = over(array, description);
  sample_3d<<<1, 1>>>(texture, 1.5f, 0.5f, 5.0f, (float*)out);
  EXPECT_EQ(out[0], 0.0f);
  musaDestroyTextureObject(texture);
  std::vector<float> back(8);
  musaMemcpy3DParms copy{};
  copy.srcArray = array;
  copy.srcPos = make_musaPos(1, 1, 0);
  copy.dstPtr = make_musaPitchedPtr(back.data(), 8, 2, 2);
  copy.extent = make_musaExtent(2, 2, 2);
  copy.kind = musaMemcpyDeviceToHost;
  EXPECT_EQ(musaMemcpy3D(&copy), musaSuccess);
  EXPECT(back == (std::vector<float>{values[5], values[6], values[9], values[10], values[17], values[18], values[21], values[22]}));
  musaFreeArray(array);
}

void layers_and_cubes() {
  const std::vector<float> values = numbers(4 * 4 * 6);
  musaArray_t array = box({4, 4, 6}, kLayered, values);
  Array<float> out(16);
  musaTextureObject_t texture = over(array, {});
  sample_layers<<<1, 16>>>(texture, 3, (float*)out);
  EXPECT(out.host() == std::vector<float>(values.begin() + 48, values.begin() + 64));
  sample_layers<<<1, 16>>>(texture, 77, (float*)out); // the last layer
  EXPECT_EQ(out[0], values[80]);
  musaDestroyTextureObject(texture);
  musaFreeArray(array);

  std::vector<float> faces(2 * 2 * 6);
  for (int i = 0; i < 24; ++i) {
    faces[i] = static_cast<float>(i / 4 * 10 + i % 4);
  }
  array = box({2, 2, 6}, kCubemap, faces);
  musaTextureDesc description{};
  description.normalizedCoords = 1;
  texture = over(array, description);
  const std::vector<float3> directions{{1, 0.5f, 0.5f}, {-1, 0.5f, 0.5f}, {0.5f, 1, 0.5f}, {0.5f, -1, 0.5f}, {0.5f, 0.5f, 1}, {0.5f, 0.5f, -1}};
  Array<float3> given(6);
  given = directions;
  sample_cube<<<1, 6>>>(texture, (const float3*)(float3*)given, (float*)out);
  // The face and element of each direction, computed by hand: s and t of the six faces.
  const float expected[] = {0 + 0, 10 + 1, 20 + 3, 30 + 1, 40 + 1, 50 + 0};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(out[i], expected[i]);
  }
  musaDestroyTextureObject(texture);
  musaFreeArray(array);
}

void surfaces() {
  const musaChannelFormatDesc desc = musaCreateChannelDesc<float>();
  musaArray_t from = nullptr, to = nullptr, plain = nullptr;
  musaMallocArray(&from, &desc, 4, 3, kForSurfaces);
  musaMallocArray(&to, &desc, 3, 4, kForSurfaces);
  musaMallocArray(&plain, &desc, 4, 3);
  const std::vector<float> values = numbers(12);
  musaMemcpyToArray(from, 0, 0, values.data(), 48, musaMemcpyHostToDevice);
  musaSurfaceObject_t a = 0, b = 0, refused = 0;
  EXPECT_EQ(surface_over(from, &a), musaSuccess);
  EXPECT_EQ(surface_over(to, &b), musaSuccess);
  EXPECT_EQ(surface_over(plain, &refused), musaErrorInvalidValue); // not allocated for surfaces
  transpose<<<1, dim3(4, 3)>>>(a, b);
  std::vector<float> back(12);
  musaMemcpyFromArray(back.data(), to, 0, 0, 48, musaMemcpyDeviceToHost);
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(back[i % 4 * 3 + i / 4], values[i]);
  }
  write_outside<<<1, 1>>>(a);
  musaMemcpyFromArray(back.data(), from, 0, 0, 48, musaMemcpyDeviceToHost);
  EXPECT_EQ(back[11], 2.0f);
  back[11] = values[11];
  EXPECT(back == values);
  EXPECT_EQ(musaDestroySurfaceObject(a), musaSuccess);
  EXPECT_EQ(musaDestroySurfaceObject(a), musaErrorInvalidValue);
  musaGetLastError();
  musaDestroySurfaceObject(b);
  musaFreeArray(from);
  musaFreeArray(to);
  musaFreeArray(plain);
}

int main() {
  one_dimension();
  two_dimensions();
  three_dimensions();
  layers_and_cubes();
  surfaces();
  const musaChannelFormatDesc odd{32, 16, 0, 0, musaChannelFormatKindFloat};
  musaArray_t array = nullptr;
  EXPECT_EQ(musaMallocArray(&array, &odd, 4, 4), musaErrorInvalidChannelDescriptor);
  const musaChannelFormatDesc desc = musaCreateChannelDesc<float>();
  EXPECT_EQ(musaMalloc3DArray(&array, &desc, make_musaExtent(4, 3, 6), kCubemap), musaErrorInvalidValue);
  musaGetLastError();
  return finish();
}
