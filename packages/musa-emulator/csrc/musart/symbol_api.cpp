// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Device variables. mcc turns them into ordinary variables; the first call that uses one registers it with its size.
#include "api_support.h"
#include "engine/memory.h"
#include "engine/transfer.h"
#include "musa_emulator.h"

using namespace musa_emulator;

namespace {

// Calls `body(address)` with the variable's address plus the offset.
template <class Body>
musaError_t with_symbol(const void* symbol, size_t bytes, size_t offset, Body&& body) {
  const size_t size = symbol_size(symbol);
  if (size == 0) {
    return musaErrorInvalidSymbol;
  }
  if (offset > size || bytes > size - offset) {
    return musaErrorInvalidValue;
  }
  return body(static_cast<char*>(const_cast<void*>(symbol)) + offset);
}

musaError_t to_symbol(
    const void* symbol, const void* src, size_t bytes, size_t offset, musaMemcpyKind kind, musaStream_t stream,
    Host host) {
  return with_symbol(symbol, bytes, offset, [&](char* address) {
    if (kind != musaMemcpyHostToDevice && kind != musaMemcpyDeviceToDevice && kind != musaMemcpyDefault) {
      return musaErrorInvalidMemcpyDirection;
    }
    return with_stream(
        stream, [&](Stream& found) { return submit_copy(found, linear_copy(address, src, bytes, kind), host); });
  });
}

musaError_t from_symbol(
    void* dst, const void* symbol, size_t bytes, size_t offset, musaMemcpyKind kind, musaStream_t stream, Host host) {
  return with_symbol(symbol, bytes, offset, [&](char* address) {
    if (kind != musaMemcpyDeviceToHost && kind != musaMemcpyDeviceToDevice && kind != musaMemcpyDefault) {
      return musaErrorInvalidMemcpyDirection;
    }
    return with_stream(
        stream, [&](Stream& found) { return submit_copy(found, linear_copy(dst, address, bytes, kind), host); });
  });
}

} // namespace

musaError_t musaEmulatorRegisterSymbol(const void* symbol, size_t bytes) {
  return api<"musaEmulatorRegisterSymbol", kNeedsNoDevice>([&] {
    if (symbol == nullptr || bytes == 0) {
      return musaErrorInvalidValue;
    }
    register_symbol(symbol, bytes);
    return musaSuccess;
  });
}

musaError_t musaMemcpyToSymbol(const void* symbol, const void* src, size_t bytes, size_t offset, musaMemcpyKind kind) {
  return api<"musaMemcpyToSymbol">([&] { return to_symbol(symbol, src, bytes, offset, kind, nullptr, Host::Waits); });
}

musaError_t musaMemcpyFromSymbol(void* dst, const void* symbol, size_t bytes, size_t offset, musaMemcpyKind kind) {
  return api<"musaMemcpyFromSymbol">(
      [&] { return from_symbol(dst, symbol, bytes, offset, kind, nullptr, Host::Waits); });
}

musaError_t musaMemcpyToSymbolAsync(
    const void* symbol, const void* src, size_t bytes, size_t offset, musaMemcpyKind kind, musaStream_t stream) {
  return api<"musaMemcpyToSymbolAsync">(
      [&] { return to_symbol(symbol, src, bytes, offset, kind, stream, Host::Continues); });
}

musaError_t musaMemcpyFromSymbolAsync(
    void* dst, const void* symbol, size_t bytes, size_t offset, musaMemcpyKind kind, musaStream_t stream) {
  return api<"musaMemcpyFromSymbolAsync">(
      [&] { return from_symbol(dst, symbol, bytes, offset, kind, stream, Host::Continues); });
}

musaError_t musaGetSymbolAddress(void** address, const void* symbol) {
  return api<"musaGetSymbolAddress">([&] {
    return with_symbol(symbol, 0, 0, [&](char* found) {
      if (address == nullptr) {
        return musaErrorInvalidValue;
      }
      *address = found;
      return musaSuccess;
    });
  });
}
