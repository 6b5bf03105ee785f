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

// Reads an element of a slice, with each component as a float; 32-bit integers are copied. Slice -1 is the border.
template <class T>
inline T texel(const TextureObject& of, long long x, long long y, long long slice = 0) {
  using C = typename Components<T>::type;
  const long long column = address(x, static_cast<long long>(of.width), of.mode[0]);
  const long long row = address(y, static_cast<long long>(of.height), of.mode[1]);
  T result;
  C* parts = reinterpret_cast<C*>(&result);
  if (column < 0 || row < 0 || slice < 0) {
    for (int i = 0; i < Components<T>::count; ++i) {
      parts[i] = static_cast<C>(of.texture.borderColor[i]);
    }
    return result;
  }
  const char* place = of.data + static_cast<size_t>(slice) * of.slice + static_cast<size_t>(row) * of.pitch +
      static_cast<size_t>(column) * of.bytes;
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

// Samples the texture at a point with `dimensions` coordinates, in a layer or cube face if there is one.
template <class T, int dimensions>
inline T sample(const TextureObject& of, float x, float y, float z, long long layer = 0) {
  const float u = coordinate(of, x, of.width), v = dimensions > 1 ? coordinate(of, y, of.height) : 0.5f;
  const float w = dimensions > 2 ? coordinate(of, z, of.depth) : 0.5f;
  const auto slice = [&](long long at) {
    return dimensions > 2 ? address(at, static_cast<long long>(of.depth), of.mode[2]) : layer;
  };
  if (of.texture.filterMode == musaFilterModePoint) {
    return texel<T>(
        of, static_cast<long long>(std::floor(u)), static_cast<long long>(std::floor(v)),
        slice(static_cast<long long>(std::floor(w))));
  }
  using C = typename Components<T>::type;
  const Between along_x(u), along_y(v), along_z(w);
  float sums[Components<T>::count] = {};
  for (int corner = 0; corner < 1 << dimensions; ++corner) {
    const int right = corner & 1, below = corner >> 1 & 1, behind = corner >> 2;
    float weight = right != 0 ? along_x.weight : 1 - along_x.weight;
    if (dimensions > 1) {
      weight *= below != 0 ? along_y.weight : 1 - along_y.weight;
    }
    if (dimensions > 2) {
      weight *= behind != 0 ? along_z.weight : 1 - along_z.weight;
    }
    if (weight == 0) {
      continue; // at the center of an element, its neighbors are not read
    }
    const T value = texel<T>(of, along_x.first + right, along_y.first + below, slice(along_z.first + behind));
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

// Samples the cube face in a direction.
template <class T>
inline T sample_cube(const TextureObject& of, float x, float y, float z, long long first_face) {
  const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  const bool on_x = ax >= ay && ax >= az, on_y = !on_x && ay >= az;
  const float along = on_x ? ax : on_y ? ay : az;
  const bool negative = (on_x ? x : on_y ? y : z) < 0;
  const float s = on_x ? (negative ? z : -z) : on_y ? x : (negative ? -x : x);
  const float t = on_y ? (negative ? -z : z) : -y;
  const float scale = of.texture.normalizedCoords != 0 ? 1.0f : static_cast<float>(of.width);
  return sample<T, 2>(
      of, (s / along + 1) / 2 * scale, (t / along + 1) / 2 * scale, 0,
      first_face + (on_x ? 0 : on_y ? 2 : 4) + (negative ? 1 : 0));
}

inline const TextureObject& texture_of(musaTextureObject_t object) {
  return *reinterpret_cast<const TextureObject*>(object);
}

inline long long layer_of(const TextureObject& of, int layer, int faces = 1) {
  const long long last = static_cast<long long>(of.depth) / faces - 1;
  return (layer < 0 ? 0 : layer > last ? last : layer) * faces;
}

} // namespace musa_simt

// Returns 0 if the index is out of range.
template <class T>
inline T tex1Dfetch(musaTextureObject_t object, int index) {
  const musa_simt::TextureObject& of = musa_simt::texture_of(object);
  return index >= 0 && static_cast<size_t>(index) < of.width ? musa_simt::texel<T>(of, index, 0) : T();
}
template <class T>
inline T tex1D(musaTextureObject_t object, float x) {
  return musa_simt::sample<T, 1>(musa_simt::texture_of(object), x, 0, 0);
}
template <class T>
inline T tex2D(musaTextureObject_t object, float x, float y) {
  return musa_simt::sample<T, 2>(musa_simt::texture_of(object), x, y, 0);
}
template <class T>
inline T tex3D(musaTextureObject_t object, float x, float y, float z) {
  return musa_simt::sample<T, 3>(musa_simt::texture_of(object), x, y, z);
}
template <class T>
inline T tex1DLayered(musaTextureObject_t object, float x, int layer) {
  const musa_simt::TextureObject& of = musa_simt::texture_of(object);
  return musa_simt::sample<T, 1>(of, x, 0, 0, musa_simt::layer_of(of, layer));
}
template <class T>
inline T tex2DLayered(musaTextureObject_t object, float x, float y, int layer) {
  const musa_simt::TextureObject& of = musa_simt::texture_of(object);
  return musa_simt::sample<T, 2>(of, x, y, 0, musa_simt::layer_of(of, layer));
}
template <class T>
inline T texCubemap(musaTextureObject_t object, float x, float y, float z) {
  return musa_simt::sample_cube<T>(musa_simt::texture_of(object), x, y, z, 0);
}
template <class T>
inline T texCubemapLayered(musaTextureObject_t object, float x, float y, float z, int layer) {
  const musa_simt::TextureObject& of = musa_simt::texture_of(object);
  return musa_simt::sample_cube<T>(of, x, y, z, musa_simt::layer_of(of, layer, 6));
}
// Variants that write the result to a pointer.
#define MUSA_SIMT_INTO(name, parameters, arguments)                         \
  template <class T>                                                        \
  inline void name(T* result, musaTextureObject_t object, parameters) {     \
    *result = name<T>(object, arguments);                                   \
  }
#define MUSA_SIMT_LIST(...) __VA_ARGS__
MUSA_SIMT_INTO(tex1Dfetch, int index, index)
MUSA_SIMT_INTO(tex1D, float x, x)
MUSA_SIMT_INTO(tex2D, MUSA_SIMT_LIST(float x, float y), MUSA_SIMT_LIST(x, y))
MUSA_SIMT_INTO(tex3D, MUSA_SIMT_LIST(float x, float y, float z), MUSA_SIMT_LIST(x, y, z))
MUSA_SIMT_INTO(tex1DLayered, MUSA_SIMT_LIST(float x, int layer), MUSA_SIMT_LIST(x, layer))
MUSA_SIMT_INTO(tex2DLayered, MUSA_SIMT_LIST(float x, float y, int layer), MUSA_SIMT_LIST(x, y, layer))
MUSA_SIMT_INTO(texCubemap, MUSA_SIMT_LIST(float x, float y, float z), MUSA_SIMT_LIST(x, y, z))
#undef MUSA_SIMT_INTO
#undef MUSA_SIMT_LIST
