// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Kernels that are passed to the runtime by address. None of the first ones is launched with <<<>>> here.
#include "check.h"

__global__ void plain(int* out) { out[threadIdx.x] += 1; }
static __global__ void declared_first(int*);
static __global__ void declared_first(int* out) { out[threadIdx.x] += 2; }
extern "C" __global__ void with_c_linkage(int* out) { out[threadIdx.x] += 3; }
namespace {
__global__ void named_as_its_parameter(int* named_as_its_parameter) { named_as_its_parameter[threadIdx.x] += 4; }
} // namespace
namespace place {
template <class T, int amount = 5, class = void>
__global__ void generic(T* out) {
  out[threadIdx.x] += amount;
}
} // namespace place
template <class... More>
__global__ void pack(int* out, More...) {
  out[threadIdx.x] += sizeof...(More);
}
__global__ void overloaded(int* out) { out[threadIdx.x] += 6; }
__global__ void overloaded(float* out) { out[threadIdx.x] += 0.5f; }
void __global__ void_first(int* out) { out[threadIdx.x] += 7; }

template <class T>
__global__ void special(T* out, const int value) {
  out[threadIdx.x] = static_cast<T>(value);
}
template <>
__global__ void special<double>(double* out, const int value) {
  out[threadIdx.x] = value + 0.25;
}
template __global__ void special<float>(float*, const int);
template <class T, int n>
__global__ void special_by_number(T* out) {
  out[threadIdx.x] = n;
}
template <>
__global__ void special_by_number<int, (sizeof(int) > 2 ? 8 : 4)>(int* out) {
  out[threadIdx.x] = 80;
}

// A pointer has the kernel's parameter types, although threads need no copy of a constant parameter.
struct Wide {
  int amounts[20];
};
template <class T>
__global__ void with_constant(T* out, const Wide wide, const int which) {
  out[threadIdx.x] += wide.amounts[which];
}
using WithConstant = void (*)(int*, Wide, int);

struct Table {
  void (*kernels[2])(int*);
};

template <class Kernel>
void launch_all_ways(Kernel kernel, int amount) {
  Array<int> out(4);
  int* pointer = out;
  void* arguments[] = {&pointer};
  const void* symbol = reinterpret_cast<const void*>(kernel);
  EXPECT_EQ(musaLaunchKernel(symbol, dim3(1), dim3(4), arguments, 0, nullptr), musaSuccess);
  EXPECT_EQ(musaLaunchCooperativeKernel(symbol, dim3(1), dim3(4), arguments, 0, nullptr), musaSuccess);
  musaLaunchConfig_t configuration{};
  configuration.gridDim = dim3(1);
  configuration.blockDim = dim3(4);
  EXPECT_EQ(musaLaunchKernelExC(&configuration, symbol, arguments), musaSuccess);
  musaFuncAttributes attributes{};
  EXPECT_EQ(musaFuncGetAttributes(&attributes, symbol), musaSuccess);
  EXPECT_EQ(attributes.maxThreadsPerBlock, 1024);
  musaGraph_t graph;
  musaGraphExec_t executable;
  musaGraphNode_t node;
  musaKernelNodeParams parameters{};
  parameters.func = const_cast<void*>(symbol);
  parameters.gridDim = dim3(1);
  parameters.blockDim = dim3(4);
  parameters.kernelParams = arguments;
  EXPECT_EQ(musaGraphCreate(&graph, 0), musaSuccess);
  EXPECT_EQ(musaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters), musaSuccess);
  EXPECT_EQ(musaGraphInstantiate(&executable, graph), musaSuccess);
  EXPECT_EQ(musaGraphLaunch(executable, nullptr), musaSuccess);
  EXPECT_EQ(musaDeviceSynchronize(), musaSuccess);
  EXPECT_EQ(out[3], 4 * amount);
  musaGraphExecDestroy(executable);
  musaGraphDestroy(graph);
}

int main() {
  launch_all_ways(plain, 1);
  launch_all_ways(declared_first, 2);
  launch_all_ways(with_c_linkage, 3);
  launch_all_ways(named_as_its_parameter, 4);
  launch_all_ways(&place::generic<int>, 5);
  launch_all_ways(pack<>, 0);
  launch_all_ways(static_cast<void (*)(int*)>(overloaded), 6);
  launch_all_ways(void_first, 7);
  {
    Array<double> doubles(1);
    Array<float> floats(1);
    Array<int> ints(1);
    special<double><<<1, 1>>>((double*)doubles, 3);
    special<float><<<1, 1>>>((float*)floats, 3);
    special<<<1, 1>>>((int*)ints, 3);
    EXPECT_EQ(doubles[0], 3.25);
    EXPECT_EQ(floats[0], 3.0f);
    EXPECT_EQ(ints[0], 3);
    special_by_number<int, 8><<<1, 1>>>((int*)ints);
    EXPECT_EQ(ints[0], 80);
    special_by_number<int, 9><<<1, 1>>>((int*)ints);
    EXPECT_EQ(ints[0], 9);
  }
  { // expressions that are not names
    Array<int> out(1);
    int* p = out;
    void (*pointers[])(int*) = {plain, declared_first};
    Table table{{plain, declared_first}};
    Table* const tables = &table;
    const auto find = [&](int i) { return pointers[i]; };
    pointers[0]<<<1, 1>>>(p);
    pointers[1 - 0]<<<1, 1>>>(p);
    table.kernels[0]<<<1, 1>>>(p);
    tables->kernels[1]<<<1, 1>>>(p);
    find(0)<<<1, 1>>>(p);
    if (p != nullptr) (plain)<<<1, 1>>>(p);
    EXPECT_EQ(out[0], 1 + 2 + 1 + 2 + 1 + 1);
  }
  {
    Array<int> out(1);
    Wide wide{};
    wide.amounts[19] = 6;
    const WithConstant pointer = with_constant<int>;
    pointer<<<1, 1>>>((int*)out, wide, 19);
    with_constant<int><<<1, 1>>>((int*)out, wide, 19);
    EXPECT_EQ(out[0], 12);
  }
  { // an address that belongs to no kernel
    void* arguments[] = {nullptr};
    static int variable;
    EXPECT_EQ(
        musaLaunchKernel((const void*)&variable, dim3(1), dim3(1), arguments, 0, nullptr),
        musaErrorInvalidDeviceFunction);
    musaGetLastError();
  }
  return finish();
}
