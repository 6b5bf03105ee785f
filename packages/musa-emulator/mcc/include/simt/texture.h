// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Access through texture objects.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "simt/texture_object.h"

#pragma GCC system_header

namespace musa_simt {

// The component type of T, and the number of components.
template <class T>
struct Components {
  using type = T;
  static constexpr int count = 1;
};
#define MUSA_SIMT_COMPONENTS(name, T) \
  template <> \
  struct Components<name##2> { \
    using type = T; \
    static constexpr int count = 2; \
  }; \
  template <> \
  struct Components<name##4> { \
    using type = T; \
    static constexpr int count = 4; \
  };
MUSA_SIMT_COMPONENTS(char, signed char)
MUSA_SIMT_COMPONENTS(uchar, unsigned char)
MUSA_SIMT_COMPONENTS(short, short)
MUSA_SIMT_COMPONENTS(ushort, unsigned short)
MUSA_SIMT_COMPONENTS(int, int)
MUSA_SIMT_COMPONENTS(uint, unsigned)
MUSA_SIMT_COMPONENTS(float, float)
#undef MUSA_SIMT_COMPONENTS

// Reads a component as a float. Integers of a normalized texture are divided by the largest value of their type.
inline float component(const TextureObject& of, const char* place, int index) {
  const musaChannelFormatDesc& desc = of.desc;
  const bool normalized = of.texture.readMode == musaReadModeNormalizedFloat;
  const size_t bytes = static_cast<size_t>(desc.x) / 8;
  const char* at = place + bytes * static_cast<size_t>(index);
  const auto read = [&](auto value, float scale) {
    std::memcpy(&value, at, sizeof value);
    return normalized ? std::fmax(static_cast<float>(value) / scale, -1.0f) : static_cast<float>(value);
  };
  if (desc.f == musaChannelFormatKindFloat) {
    return bytes == 4 ? read(0.0f, 1.0f) : read(__half(), 1.0f);
  }
  if (desc.f == musaChannelFormatKindSigned) {
    return bytes == 1 ? read(int8_t{}, 127.0f) : bytes == 2 ? read(int16_t{}, 32767.0f) : read(int32_t{}, 1.0f);
  }
  return bytes == 1 ? read(uint8_t{}, 255.0f) : bytes == 2 ? read(uint16_t{}, 65535.0f) : read(uint32_t{}, 1.0f);
}

// Maps a coordinate to the array by the address mode; returns -1 for the border.
inline long long address(long long i, long long size, musaTextureAddressMode mode) {
  if (i >= 0 && i < size) {
    return i;
  }
  switch (mode) {
    case musaAddressModeWrap: return (i % size + size) % size;
    case musaAddressModeMirror: {
      const long long period = (i % (2 * size) + 2 * size) % (2 * size);
      return period < size ? period : 2 * size - 1 - period;
    }
    case musaAddressModeBorder: return -1;
    default: return i < 0 ? 0 : size - 1;
  }
}

// Reads an element, with each component as a float; 32-bit integers are copied.
template <class T>
inline T texel(const TextureObject& of, long long x, long long y) {
  using C = typename Components<T>::type;
  const long long column = address(x, static_cast<long long>(of.width), of.mode[0]);
  const long long row = address(y, static_cast<long long>(of.height), of.mode[1]);
  T result;
  C* parts = reinterpret_cast<C*>(&result);
  if (column < 0 || row < 0) {
    for (int i = 0; i < Components<T>::count; ++i) {
      parts[i] = static_cast<C>(of.texture.borderColor[i]);
    }
    return result;
  }
  const char* place = of.data + static_cast<size_t>(row) * of.pitch + static_cast<size_t>(column) * of.bytes;
  if (of.texture.readMode == musaReadModeElementType && of.bytes == sizeof(T)) {
    std::memcpy(&result, place, sizeof result); // exact also for integers that a float cannot represent
    return result;
  }
  for (int i = 0; i < Components<T>::count; ++i) {
    parts[i] = static_cast<C>(component(of, place, i));
  }
  return result;
}

inline float coordinate(const TextureObject& of, float value, size_t size) {
  return of.texture.normalizedCoords != 0 ? value * static_cast<float>(size) : value;
}

// The two elements around a coordinate, by their centers, and the weight of the second. Weights have 8 fraction bits,
// as on a GPU.
struct Between {
  long long first;
  float weight;

  explicit Between(float at) {
    const float left = std::floor(at - 0.5f);
    first = static_cast<long long>(left);
    weight = std::nearbyint((at - 0.5f - left) * 256) / 256;
  }
};

template <class T>
inline T sample(const TextureObject& of, float x, float y) {
  const float u = coordinate(of, x, of.width), v = coordinate(of, y, of.height);
  if (of.texture.filterMode == musaFilterModePoint) {
    return texel<T>(of, static_cast<long long>(std::floor(u)), static_cast<long long>(std::floor(v)));
  }
  using C = typename Components<T>::type;
  const Between along_x(u), along_y(v);
  float sums[Components<T>::count] = {};
  for (int corner = 0; corner < 4; ++corner) {
    const int right = corner & 1, below = corner >> 1;
    float weight = right != 0 ? along_x.weight : 1 - along_x.weight;
    weight *= below != 0 ? along_y.weight : 1 - along_y.weight;
    if (weight == 0) {
      continue; // at the center of an element, its neighbors are not read
    }
    const T value = texel<T>(of, along_x.first + right, along_y.first + below);
    for (int i = 0; i < Components<T>::count; ++i) {
      sums[i] += weight * static_cast<float>(reinterpret_cast<const C*>(&value)[i]);
    }
  }
  T result;
  for (int i = 0; i < Components<T>::count; ++i) {
    reinterpret_cast<C*>(&result)[i] = static_cast<C>(sums[i]);
  }
  return result;
}

inline const TextureObject& texture_of(musaTextureObject_t object) {
  return *reinterpret_cast<const TextureObject*>(object);
}

} // namespace musa_simt

// Returns 0 if the index is out of range.
template <class T>
inline T tex1Dfetch(musaTextureObject_t object, int index) {
  const musa_simt::TextureObject& of = musa_simt::texture_of(object);
  return index >= 0 && static_cast<size_t>(index) < of.width ? musa_simt::texel<T>(of, index, 0) : T();
}
template <class T>
inline T tex2D(musaTextureObject_t object, float x, float y) {
  return musa_simt::sample<T>(musa_simt::texture_of(object), x, y);
}
// Variants that write the result to a pointer.
template <class T>
inline void tex1Dfetch(T* result, musaTextureObject_t object, int index) {
  *result = tex1Dfetch<T>(object, index);
}
template <class T>
inline void tex2D(T* result, musaTextureObject_t object, float x, float y) {
  *result = tex2D<T>(object, x, y);
}
