# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
#
# musa_sdk_device_tools(<source>...): builds libmtml with an implementation of mtml/device.h, and installs it with the
# programs that read it. Used by each package that ships an SDK. Needs MUSA_SDK_VERSION.
set(MTML_FOLDER "${CMAKE_CURRENT_LIST_DIR}")
function(musa_sdk_device_tools)
  add_library(mtml SHARED "${MTML_FOLDER}/api.cpp" "${MTML_FOLDER}/unsupported.cpp" ${ARGN})
  target_include_directories(mtml PRIVATE "${MTML_FOLDER}/.." "${MTML_FOLDER}/../include")
  target_compile_options(mtml PRIVATE -Wall -Wextra)
  musa_emulator_exports(mtml "${MTML_FOLDER}/exports.map")
  set_target_properties(mtml PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS mtml LIBRARY DESTINATION sdk/lib)
  install(PROGRAMS "${MTML_FOLDER}/../../bin/mthreads-gmi" DESTINATION sdk/bin)
  set(version_program "${CMAKE_CURRENT_BINARY_DIR}/musa_toolkits_version")
  configure_file("${MTML_FOLDER}/../../bin/musa_toolkits_version.in" "${version_program}" @ONLY)
  install(PROGRAMS "${version_program}" DESTINATION sdk/bin)
endfunction()
