# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
#
# Builds the emulator's other libraries, which are separate packages because they need torch. Included by
# find_package(musa_emulator), which sets MUSA_EMULATOR_HOME and MUSA_EMULATOR_ENGINE_HEADERS.
include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/EmulatorSettings.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/TorchWheel.cmake")

# musa_emulator_library(<name> SOURCES <file>... [HEADERS <folder>]): builds lib<name>.so and installs it, with the
# headers in csrc/include, into the emulator's MUSA_HOME; HEADERS names a subfolder of include. The library may use
# torch and the engine, and exports the names in csrc/exports.map.
function(musa_emulator_library name)
  cmake_parse_arguments(PARSE_ARGV 1 library "" "HEADERS" "SOURCES")
  add_library(${name} SHARED ${library_SOURCES})
  # The engine's headers are only for the emulator's own libraries, so they are not installed inside the SDK.
  target_include_directories(${name} PRIVATE csrc csrc/include "${MUSA_EMULATOR_ENGINE_HEADERS}" "${MUSA_EMULATOR_HOME}/include")
  # torch's umbrella headers then include only the operators that they use, instead of all 3,000.
  target_compile_definitions(${name} PRIVATE AT_PER_OPERATOR_HEADERS)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wno-missing-field-initializers)
  target_link_libraries(${name} PRIVATE musa::torch
    "${MUSA_EMULATOR_HOME}/lib/libmusart.so" "${MUSA_EMULATOR_HOME}/lib/libmusa.so")
  musa_emulator_exports(${name} "${CMAKE_CURRENT_SOURCE_DIR}/csrc/exports.map")
  set_target_properties(${name} PROPERTIES
    INSTALL_RPATH "$ORIGIN;$ORIGIN/../../../torch/lib" INSTALL_RPATH_USE_LINK_PATH OFF)
  # Never unloaded: stream threads and callbacks registered with torch may run its code until the process exits.
  target_link_options(${name} PRIVATE LINKER:-z,nodelete)
  if(NOT "${CMAKE_SHARED_LINKER_FLAGS} ${CMAKE_CXX_FLAGS}" MATCHES "-fsanitize")
    target_link_options(${name} PRIVATE LINKER:--no-undefined)
  endif()
  install(TARGETS ${name} LIBRARY DESTINATION sdk/lib)
  install(DIRECTORY csrc/include/ DESTINATION "sdk/include/${library_HEADERS}" COMPONENT headers FILES_MATCHING PATTERN "*.h")
endfunction()
