// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "signature.h"

#include <array>

namespace musa_emulator::mccl {
namespace {

struct Type {
  const char* name;
  size_t size;
};
constexpr std::array<Type, 12> types{{
    {"int8", 1},
    {"uint8", 1},
    {"int32", 4},
    {"uint32", 4},
    {"int64", 8},
    {"uint64", 8},
    {"float16", 2},
    {"float32", 4},
    {"float64", 8},
    {"bfloat16", 2},
    {"float8_e4m3", 1},
    {"float8_e5m2", 1},
}};

const Type* find(mcclDataType_t datatype) {
  const auto index = static_cast<size_t>(datatype);
  return index < types.size() ? &types[index] : nullptr;
}

} // namespace

const char* name_of(mcclDataType_t datatype) {
  const Type* type = find(datatype);
  return type != nullptr ? type->name : "?";
}

size_t size_of(mcclDataType_t datatype) {
  const Type* type = find(datatype);
  return type != nullptr ? type->size : 0;
}

Signature::Amounts Signature::amounts(int rank, int ranks) const {
  const size_t of_all = count * static_cast<size_t>(ranks);
  const size_t of_root = rank == root ? count : 0;
  switch (kind) {
    case Kind::AllReduce: return {count, count};
    case Kind::Reduce: return {count, of_root};
    case Kind::Broadcast: return {of_root, count};
    case Kind::AllGather: return {count, of_all};
    case Kind::ReduceScatter: return {of_all, count};
    case Kind::Send: return {count, 0};
    case Kind::Recv: return {0, count};
  }
  return {0, 0};
}

const char* Signature::call() const {
  switch (kind) {
    case Kind::AllReduce: return "mcclAllReduce";
    case Kind::Reduce: return "mcclReduce";
    case Kind::Broadcast: return "mcclBroadcast";
    case Kind::AllGather: return "mcclAllGather";
    case Kind::ReduceScatter: return "mcclReduceScatter";
    case Kind::Send: return "mcclSend";
    case Kind::Recv: return "mcclRecv";
  }
  return "?";
}

std::string Signature::describe() const {
  std::string text = std::string(call()) + " of " + std::to_string(count) + ' ' + name_of(datatype);
  switch (kind) {
    case Kind::AllReduce:
    case Kind::ReduceScatter: return text + ", op " + std::to_string(op);
    case Kind::Reduce: return text + ", op " + std::to_string(op) + ", root " + std::to_string(root);
    case Kind::Broadcast: return text + ", root " + std::to_string(root);
    case Kind::AllGather: return text;
    case Kind::Send: return text + " to rank " + std::to_string(root);
    case Kind::Recv: return text + " from rank " + std::to_string(root);
  }
  return text;
}

} // namespace musa_emulator::mccl
