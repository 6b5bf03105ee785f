#include <ATen/core/Tensor.h>
#include <ATen/TensorIterator.h>
#include <ATen/native/musa/Reduce.muh>
namespace at::native {
template <typename scalar_t, typename acc_t>
struct sum_functor {
  void operator()(TensorIterator& iter) {
    gpu_reduce_kernel<scalar_t, scalar_t>(iter, func_wrapper<scalar_t>([] __device__ (acc_t a, acc_t b) -> acc_t { return a + b; }));
  }
};
}
extern "C" void run_sum(at::TensorIterator& iter) { at::native::sum_functor<float, float>()(iter); }
