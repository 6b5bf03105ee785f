# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
#
# The installed torch as imported targets:
#   musa::torch          headers, libtorch_cpu.so and libc10.so
#   musa::torch_python   musa::torch and libtorch_python.so, for extension modules
# and MUSA_TORCH_HOME, the folder of the torch package; set it beforehand to choose a torch, otherwise Python finds it.
#
# Not find_package(Torch): beside a CUDA build of torch, which is what the package index serves, it requires the CUDA
# toolkit and ends in an error without one. Nothing here is compiled for CUDA.
include_guard(DIRECTORY)

if(NOT TARGET musa::torch)
  if(NOT MUSA_TORCH_HOME)
    if(NOT Python_EXECUTABLE)
      find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
    endif()
    # Found without importing torch: an import would autoload the very packages that are being rebuilt.
    execute_process(
      COMMAND "${Python_EXECUTABLE}" -c
        "import importlib.util as u, pathlib; print(pathlib.Path(u.find_spec('torch').origin).parent)"
      OUTPUT_VARIABLE MUSA_TORCH_HOME OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _musa_torch_missing ERROR_QUIET)
    if(_musa_torch_missing)
      message(FATAL_ERROR
        "torch is not installed for ${Python_EXECUTABLE}, and these libraries are compiled against the torch they run with.\n"
        "Fix: pip install torch==2.13.0, then build with pip install --no-build-isolation --no-deps (or: python3 tools/dev.py setup)")
    endif()
    unset(_musa_torch_missing)
  endif()
  foreach(_musa_needed include/torch/library.h lib/libtorch_cpu.so lib/libc10.so lib/libtorch_python.so)
    if(NOT EXISTS "${MUSA_TORCH_HOME}/${_musa_needed}")
      message(FATAL_ERROR
        "The torch at ${MUSA_TORCH_HOME} has no ${_musa_needed}.\n"
        "Likely causes: MUSA_TORCH_HOME names another folder than that of the torch package; the installation is incomplete.\n"
        "Fix: pip install --force-reinstall torch==2.13.0")
    endif()
  endforeach()
  unset(_musa_needed)
  message(STATUS "torch: ${MUSA_TORCH_HOME}")

  add_library(musa::c10 SHARED IMPORTED)
  set_target_properties(musa::c10 PROPERTIES IMPORTED_LOCATION "${MUSA_TORCH_HOME}/lib/libc10.so")

  add_library(musa::torch SHARED IMPORTED)
  set_target_properties(musa::torch PROPERTIES
    IMPORTED_LOCATION "${MUSA_TORCH_HOME}/lib/libtorch_cpu.so"
    INTERFACE_INCLUDE_DIRECTORIES "${MUSA_TORCH_HOME}/include;${MUSA_TORCH_HOME}/include/torch/csrc/api/include"
    # What torch's wheels are built with; without them its headers hide the classes of torch.distributed.
    INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO;USE_RPC;USE_TENSORPIPE"
    INTERFACE_LINK_LIBRARIES musa::c10
    # The CUDA libraries that a CUDA build of libtorch_cpu.so needs are in wheels of their own, off the linker's path.
    INTERFACE_LINK_OPTIONS "LINKER:--allow-shlib-undefined")

  add_library(musa::torch_python SHARED IMPORTED)
  set_target_properties(musa::torch_python PROPERTIES
    IMPORTED_LOCATION "${MUSA_TORCH_HOME}/lib/libtorch_python.so"
    INTERFACE_LINK_LIBRARIES musa::torch)
endif()
