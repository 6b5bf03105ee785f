# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
#
# Defines the imported targets of the MUSA SDK, found by musa_runtime/sdk.py, as at load time:
#   musa::sdk      headers only
#   musa::musart   headers and libmusart.so
#   musa::musa     headers and the driver's libmusa.so
#   musa::mupti    headers and libmupti.so, only if the SDK has them
#   musa::mudnn    headers and library of muDNN's C++ interface, if the SDK has them: mudnncxx/mudnn.h and libmudnncxx.so (SDK 5)
#                  or mudnn.h and libmudnn.so (SDK 4)
# MUSA_HOME, and MUSA_SDK_KIND: the kind of SDK that kernels are compiled for, such as emulator or musa4. Included by the runtime's own build and by its installed CMake package.
include_guard(DIRECTORY)

if(NOT TARGET musa::sdk)
  if(NOT Python_EXECUTABLE)
    find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
  endif()

  # The script is installed next to this file; in the source tree it is among the Python sources.
  set(_musa_sdk_script "${CMAKE_CURRENT_LIST_DIR}/sdk.py")
  if(NOT EXISTS "${_musa_sdk_script}")
    set(_musa_sdk_script "${CMAKE_CURRENT_LIST_DIR}/../src/musa_runtime/sdk.py")
  endif()

  # Run at each configure: a cached result would survive a change of $MUSA_HOME.
  execute_process(
    COMMAND "${Python_EXECUTABLE}" "${_musa_sdk_script}"
    OUTPUT_VARIABLE MUSA_HOME
    ERROR_VARIABLE _musa_sdk_reason
    RESULT_VARIABLE _musa_sdk_result
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT _musa_sdk_result EQUAL 0)
    message(FATAL_ERROR "${_musa_sdk_reason}")
  endif()
  if(NOT EXISTS "${MUSA_HOME}/include/musa_runtime.h")
    message(FATAL_ERROR
      "The MUSA SDK at ${MUSA_HOME} has no include/musa_runtime.h.\n"
      "Likely cause: only its libraries are installed.\n"
      "Fix: install the SDK's development files, or set MUSA_HOME to a complete SDK.")
  endif()
  execute_process(
    COMMAND "${Python_EXECUTABLE}" "${_musa_sdk_script}" --kind
    OUTPUT_VARIABLE MUSA_SDK_KIND
    OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  message(STATUS "MUSA SDK: ${MUSA_HOME} (${MUSA_SDK_KIND})")

  add_library(musa::sdk INTERFACE IMPORTED)
  set_target_properties(musa::sdk PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${MUSA_HOME}/include")

  add_library(musa::musart SHARED IMPORTED)
  set_target_properties(musa::musart PROPERTIES
    IMPORTED_LOCATION "${MUSA_HOME}/lib/libmusart.so"
    IMPORTED_NO_SONAME OFF
    INTERFACE_LINK_LIBRARIES musa::sdk)

  # The driver's library comes with the SDK (emulator) or with the kernel driver, in the system's folders.
  find_library(MUSA_DRIVER_LIBRARY musa HINTS "${MUSA_HOME}/lib" NO_CACHE)
  if(NOT MUSA_DRIVER_LIBRARY)
    message(FATAL_ERROR
      "The driver's library libmusa.so is neither in ${MUSA_HOME}/lib nor in the system's folders.\n"
      "Likely causes: the driver is not installed; a container was started without the runtime that gives it the driver.\n"
      "Fix: install the driver, or start the container with its libraries: docs/guide/gpu.md, \"In a container\".")
  endif()
  add_library(musa::musa SHARED IMPORTED)
  set_target_properties(musa::musa PROPERTIES
    IMPORTED_LOCATION "${MUSA_DRIVER_LIBRARY}"
    INTERFACE_LINK_LIBRARIES musa::sdk)

  # The profiling interface: in the SDK's own folders, or with its tools.
  find_path(MUPTI_INCLUDE_DIR mupti.h
    PATHS "${MUSA_HOME}/include" "${MUSA_HOME}/extras/MUPTI/include" NO_DEFAULT_PATH)
  find_library(MUPTI_LIBRARY mupti
    PATHS "${MUSA_HOME}/lib" "${MUSA_HOME}/extras/MUPTI/lib64" "${MUSA_HOME}/extras/MUPTI/lib" NO_DEFAULT_PATH)
  mark_as_advanced(MUPTI_INCLUDE_DIR MUPTI_LIBRARY)
  if(MUPTI_INCLUDE_DIR AND MUPTI_LIBRARY)
    add_library(musa::mupti SHARED IMPORTED)
    set_target_properties(musa::mupti PROPERTIES
      IMPORTED_LOCATION "${MUPTI_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${MUPTI_INCLUDE_DIR}"
      INTERFACE_LINK_LIBRARIES "musa::sdk;musa::musa")
  endif()

  # muDNN, a separate package of the SDK.
  set(_musa_mudnn "")
  if(EXISTS "${MUSA_HOME}/include/mudnncxx/mudnn.h" AND EXISTS "${MUSA_HOME}/lib/libmudnncxx.so")
    set(_musa_mudnn "${MUSA_HOME}/lib/libmudnncxx.so")
  elseif(EXISTS "${MUSA_HOME}/include/mudnn.h" AND EXISTS "${MUSA_HOME}/lib/libmudnn.so"
      AND NOT EXISTS "${MUSA_HOME}/include/mudnncxx")
    set(_musa_mudnn "${MUSA_HOME}/lib/libmudnn.so")
  endif()
  if(_musa_mudnn)
    message(STATUS "muDNN: ${_musa_mudnn}")
    add_library(musa::mudnn SHARED IMPORTED)
    set_target_properties(musa::mudnn PROPERTIES
      IMPORTED_LOCATION "${_musa_mudnn}"
      IMPORTED_NO_SONAME OFF
      INTERFACE_LINK_LIBRARIES "musa::sdk;musa::musart")
  endif()

  unset(_musa_mudnn)
  unset(_musa_sdk_script)
  unset(_musa_sdk_reason)
  unset(_musa_sdk_result)
endif()
