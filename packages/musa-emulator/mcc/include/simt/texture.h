// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Reading through texture objects over linear and pitched memory.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "simt/texture_object.h"

#pragma GCC system_header

namespace musa_simt {

// The type of a component, and how many there are.
template <class T>
struct Components {
  using type = T;
  static constexpr int count = 1;
};
#define MUSA_SIMT_COMPONENTS(name, T)     \
  template <>                             \
  struct Components<name##2> {            \
    using type = T;                       \
    static constexpr int count = 2;       \
  };                                      \
  template <>                             \
  struct Components<name##4> {            \
    using type = T;                       \
    static constexpr int count = 4;       \
  };
MUSA_SIMT_COMPONENTS(char, signed char)
MUSA_SIMT_COMPONENTS(uchar, unsigned char)
MUSA_SIMT_COMPONENTS(short, short)
MUSA_SIMT_COMPONENTS(ushort, unsigned short)
MUSA_SIMT_COMPONENTS(int, int)
MUSA_SIMT_COMPONENTS(uint, unsigned)
MUSA_SIMT_COMPONENTS(float, float)
#undef MUSA_SIMT_COMPONENTS

// A component of memory as a number: integers of a normalized texture as parts of 1.
inline float component(const TextureObject& of, const char* place, int index) {
  const musaChannelFormatDesc& desc =
      of.resource.resType == musaResourceTypeLinear ? of.resource.res.linear.desc : of.resource.res.pitch2D.desc;
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

// Where a coordinate outside leads: -1 for the border.
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

// The element at a place, each component as a float; integers of 32 bits are read by texel_of().
template <class T>
inline T texel(const TextureObject& of, long long x, long long y) {
  using C = typename Components<T>::type;
  const long long column = address(x, static_cast<long long>(of.width), of.texture.addressMode[0]);
  const long long row = address(y, static_cast<long long>(of.height), of.texture.addressMode[1]);
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
    std::memcpy(&result, place, sizeof result); // also where a float has fewer digits than the integer
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

template <class T>
inline T sample(const TextureObject& of, float x, float y) {
  const float u = coordinate(of, x, of.width), v = coordinate(of, y, of.height);
  if (of.texture.filterMode == musaFilterModePoint) {
    return texel<T>(of, static_cast<long long>(std::floor(u)), static_cast<long long>(std::floor(v)));
  }
  // Between the centres of four elements; the weights have 8 bits of fraction, as on a GPU.
  const float left = std::floor(u - 0.5f), top = std::floor(v - 0.5f);
  const float a = std::nearbyint((u - 0.5f - left) * 256) / 256, b = std::nearbyint((v - 0.5f - top) * 256) / 256;
  const auto column = static_cast<long long>(left), row = static_cast<long long>(top);
  const T corners[] = {texel<T>(of, column, row), texel<T>(of, column + 1, row), texel<T>(of, column, row + 1),
                       texel<T>(of, column + 1, row + 1)};
  const float weights[] = {(1 - a) * (1 - b), a * (1 - b), (1 - a) * b, a * b};
  using C = typename Components<T>::type;
  T result;
  for (int i = 0; i < Components<T>::count; ++i) {
    float sum = 0;
    for (int k = 0; k < 4; ++k) {
      sum += weights[k] * static_cast<float>(reinterpret_cast<const C*>(&corners[k])[i]);
    }
    reinterpret_cast<C*>(&result)[i] = static_cast<C>(sum);
  }
  return result;
}

inline const TextureObject& texture_of(musaTextureObject_t object) {
  return *reinterpret_cast<const TextureObject*>(object);
}

} // namespace musa_simt

// Outside of the memory it gives 0.
template <class T>
inline T tex1Dfetch(musaTextureObject_t object, int index) {
  const musa_simt::TextureObject& of = musa_simt::texture_of(object);
  return index >= 0 && static_cast<size_t>(index) < of.width ? musa_simt::texel<T>(of, index, 0) : T();
}
template <class T>
inline void tex1Dfetch(T* result, musaTextureObject_t object, int index) {
  *result = tex1Dfetch<T>(object, index);
}
template <class T>
inline T tex2D(musaTextureObject_t object, float x, float y) {
  return musa_simt::sample<T>(musa_simt::texture_of(object), x, y);
}
template <class T>
inline void tex2D(T* result, musaTextureObject_t object, float x, float y) {
  *result = tex2D<T>(object, x, y);
}
