# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
#
# find_package(musa_emulator CONFIG REQUIRED), used by the emulator's libraries in other packages, defines
#   musa_emulator_library()        from EmulatorLibrary.cmake
#   MUSA_EMULATOR_HOME             the emulator's MUSA_HOME
#   MUSA_EMULATOR_ENGINE_HEADERS   the folder of the engine's headers, next to MUSA_HOME
get_filename_component(MUSA_EMULATOR_HOME "${CMAKE_CURRENT_LIST_DIR}/../../../sdk" ABSOLUTE)
set(MUSA_EMULATOR_ENGINE_HEADERS "${MUSA_EMULATOR_HOME}/../engine_headers")
include("${MUSA_EMULATOR_ENGINE_HEADERS}/EmulatorLibrary.cmake")
