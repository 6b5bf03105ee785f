// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// What torch's loader of AOTInductor's packages calls for musa where libmusa_aoti.so, the library of musa-compile that runs such
// models, is not loaded. That library registers its own function in place of this one: it depends on this library, so it is
// initialised later.

#include <c10/util/Exception.h>
#include <torch/csrc/inductor/aoti_runner/model_container_runner.h>

namespace torch::inductor {
namespace {

std::unique_ptr<AOTIModelContainerRunner> refuse(
    const std::string& library, size_t, const std::string&, const std::string&, const bool) {
  TORCH_CHECK(
      false, "The package holds a model that is compiled for musa (", library,
      "), and libmusa_aoti.so, which runs such models, is not loaded.\n"
      "Likely causes: musa-compile is not installed, or its pack is switched off or failed to load; a C++ program is not linked "
      "with the library.\n"
      "Fix: install musa-compile, the extra torch-musa[compile]; if it is installed, python -m torch_musa doctor names the cause; in "
      "the CMake project of a program find_package(musa_compile) and target_link_libraries(<program> PRIVATE musa::musa_aoti)");
}

RegisterAOTIModelRunner registration("musa", &refuse);

} // namespace
} // namespace torch::inductor
