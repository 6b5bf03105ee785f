# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
#
# find_package(TorchMusa) defines the target torch_musa, which links the runtime and provides the headers in
# torch_musa/. The folder of this file is torch_musa.core.cmake_prefix_path. New projects should use
# find_package(musa_runtime) and musa::musa_runtime.
include(CMakeFindDependencyMacro)
if(NOT musa_runtime_DIR)
  find_package(Python COMPONENTS Interpreter REQUIRED QUIET)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -m musa_runtime.config --cmakedir
    OUTPUT_VARIABLE musa_runtime_DIR OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE _torch_musa_status ERROR_VARIABLE _torch_musa_error)
  if(NOT _torch_musa_status EQUAL 0)
    message(FATAL_ERROR
      "TorchMusa: ${Python_EXECUTABLE} has no musa_runtime.\n${_torch_musa_error}\n"
      "Likely cause: CMake found another Python than the one that torch_musa is installed for.\n"
      "Fix: cmake -DPython_EXECUTABLE=\"$(command -v python)\"")
  endif()
endif()
find_dependency(musa_runtime)
if(NOT TARGET torch_musa)
  add_library(torch_musa INTERFACE IMPORTED)
  set_target_properties(torch_musa PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CURRENT_LIST_DIR}/../include"
    INTERFACE_LINK_LIBRARIES musa::musa_runtime)
endif()
