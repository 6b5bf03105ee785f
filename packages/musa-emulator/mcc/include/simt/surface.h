// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Access through surface objects. x is in bytes. `boundary` is the behavior for out-of-range coordinates. 0: writes
// are ignored and reads return 0; 1: clamps to the nearest element; 2: ends the kernel with musaErrorLaunchFailure.
#pragma once

#include <cstring>

#include "simt/abi.h"
#include "simt/texture_object.h"

#pragma GCC system_header

namespace musa_simt {

// Returns the address of an element, or nullptr if the access is ignored.
inline char* surface_place(musaSurfaceObject_t object, size_t bytes, int x, int y, int slice, int boundary) {
  const TextureObject& of = *reinterpret_cast<const TextureObject*>(object);
  const auto inside = [](long long at, size_t size) { return at >= 0 && static_cast<size_t>(at) < size; };
  const auto nearest = [](long long at, size_t size) {
    return at < 0 ? size_t{0} : static_cast<size_t>(at) < size ? static_cast<size_t>(at) : size - 1;
  };
  const long long column = x / static_cast<long long>(bytes);
  const size_t columns = of.pitch / bytes;
  if (!inside(x, of.pitch - bytes + 1) || !inside(y, of.height) || !inside(slice, of.depth)) {
    if (boundary == 0) {
      return nullptr;
    }
    if (boundary != 1) {
      musa_simt_fail("surface access out of range", __FILE__, __LINE__, /*assertion=*/0);
    }
  }
  return of.data + nearest(slice, of.depth) * of.slice + nearest(y, of.height) * of.pitch + nearest(column, columns) * bytes;
}

template <class T>
inline T surface_read(musaSurfaceObject_t object, int x, int y, int slice, int boundary) {
  T value{};
  if (const char* place = surface_place(object, sizeof(T), x, y, slice, boundary)) {
    std::memcpy(&value, place, sizeof value);
  }
  return value;
}

template <class T>
inline void surface_write(const T& value, musaSurfaceObject_t object, int x, int y, int slice, int boundary) {
  if (char* place = surface_place(object, sizeof(T), x, y, slice, boundary)) {
    std::memcpy(place, &value, sizeof value);
  }
}

} // namespace musa_simt

template <class T>
inline T surf1Dread(musaSurfaceObject_t object, int x, int boundary = 2) {
  return musa_simt::surface_read<T>(object, x, 0, 0, boundary);
}
template <class T>
inline void surf1Dwrite(T value, musaSurfaceObject_t object, int x, int boundary = 2) {
  musa_simt::surface_write(value, object, x, 0, 0, boundary);
}
template <class T>
inline T surf2Dread(musaSurfaceObject_t object, int x, int y, int boundary = 2) {
  return musa_simt::surface_read<T>(object, x, y, 0, boundary);
}
template <class T>
inline void surf2Dread(T* result, musaSurfaceObject_t object, int x, int y, int boundary = 2) {
  *result = surf2Dread<T>(object, x, y, boundary);
}
template <class T>
inline void surf2Dwrite(T value, musaSurfaceObject_t object, int x, int y, int boundary = 2) {
  musa_simt::surface_write(value, object, x, y, 0, boundary);
}
template <class T>
inline T surf3Dread(musaSurfaceObject_t object, int x, int y, int z, int boundary = 2) {
  return musa_simt::surface_read<T>(object, x, y, z, boundary);
}
template <class T>
inline void surf3Dwrite(T value, musaSurfaceObject_t object, int x, int y, int z, int boundary = 2) {
  musa_simt::surface_write(value, object, x, y, z, boundary);
}
template <class T>
inline T surf2DLayeredread(musaSurfaceObject_t object, int x, int y, int layer, int boundary = 2) {
  return musa_simt::surface_read<T>(object, x, y, layer, boundary);
}
template <class T>
inline void surf2DLayeredwrite(T value, musaSurfaceObject_t object, int x, int y, int layer, int boundary = 2) {
  musa_simt::surface_write(value, object, x, y, layer, boundary);
}
