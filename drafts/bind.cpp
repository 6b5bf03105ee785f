#include <ATen/core/Tensor.h>
#include <torch/library.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty.h>
#include <ATen/TensorIterator.h>
extern "C" void run_add(const at::Tensor&, const at::Tensor&, const at::Tensor&);
extern "C" void run_sum(at::TensorIterator&);
static at::Tensor& add(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) { run_add(out, a, b); return out; }
static at::Tensor sum(const at::Tensor& a, int64_t dim) { 
  at::Tensor out; std::vector<int64_t> s(a.sizes().begin(), a.sizes().end()); if (dim < 0) std::fill(s.begin(), s.end(), 1); else s[dim] = 1; out = at::empty(s, a.options());
  auto iter = at::TensorIterator::reduce_op(out, a); run_sum(iter); return out; }
TORCH_LIBRARY(trial, m) { m.def("add(Tensor a, Tensor b, Tensor(a!) out) -> Tensor(a!)", &add); m.def("sum(Tensor a, int dim) -> Tensor", &sum); }
