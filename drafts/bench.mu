#include <chrono>
#include <cstdio>
#include <vector>
__global__ void axpy(float* y, const float* x, float a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] += a * x[i]; }
struct alignas(16) F4 { float v[4]; };
__global__ void axpy4(float* y, const float* x, float a, int n) {
  int base = blockIdx.x * 512; 
  #pragma unroll
  for (int k = 0; k < 1; k++) { int i = base + 4 * (threadIdx.x + k * 128); if (i + 3 < n) { F4 p = *(F4*)(y + i), q = *(const F4*)(x + i); for (int j = 0; j < 4; j++) p.v[j] += a * q.v[j]; *(F4*)(y + i) = p; } } }
__global__ void barriers(int* p) { for (int k = 0; k < 100; k++) __syncthreads(); if (threadIdx.x == 0) p[0] = 1; }
__global__ void shuffles(float* p) { float v = threadIdx.x; for (int k = 0; k < 100; k++) v += __shfl_down_sync(~0u, v, 1); p[threadIdx.x] = v; }
template <class F> double timed(F f) { f(); double best = 1e9; for (int r = 0; r < 7; r++) { auto b = std::chrono::steady_clock::now(); f(); musaDeviceSynchronize(); double t = std::chrono::duration<double>(std::chrono::steady_clock::now() - b).count(); if (t < best) best = t; } return best; }
int main() {
  int n = 1 << 20; float *x, *y; int* p; musaMalloc((void**)&x, n * 4); musaMalloc((void**)&y, n * 4); musaMalloc((void**)&p, 4096);
  musaMemset(x, 0, n * 4); musaMemset(y, 0, n * 4);
  printf("axpy  %.3f ns/element\n", timed([&] { axpy<<<n / 256, 256>>>(y, x, 2.f, n); }) * 1e9 / n);
  printf("axpy4 %.3f ns/element\n", timed([&] { axpy4<<<n / 512, 128>>>(y, x, 2.f, n); }) * 1e9 / n);
  printf("barrier 256 %.2f ns/thread\n", timed([&] { barriers<<<1, 256>>>(p); }) * 1e9 / 25600);
  printf("barrier 512 %.2f ns/thread\n", timed([&] { barriers<<<1, 512>>>(p); }) * 1e9 / 51200);
  printf("shuffle 32 %.2f ns/thread\n", timed([&] { shuffles<<<1, 32>>>((float*)p); }) * 1e9 / 3200);
  printf("shuffle 512 %.2f ns/thread\n", timed([&] { shuffles<<<1, 512>>>((float*)p); }) * 1e9 / 51200);
  printf("launch %.0f ns\n", timed([&] { for (int i = 0; i < 1000; i++) axpy<<<1, 1>>>(y, x, 2.f, 1); }) * 1e9 / 1000);
}
