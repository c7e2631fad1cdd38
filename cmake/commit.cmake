# Writes OUT with the commit the sources are at, when it has changed, so that only
# what prints it is compiled again: cmake -DROOT=... -DOUT=... -P cmake/commit.cmake
cmake_minimum_required(VERSION 3.22)
execute_process(COMMAND git rev-parse --short HEAD WORKING_DIRECTORY ${ROOT}
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit unknown)  # not a clone
endif()
set(text "#define SLUICE_COMMIT \"${commit}\"\n")
set(old "")
if(EXISTS ${OUT})
  file(READ ${OUT} old)
endif()
if(NOT text STREQUAL old)
  file(WRITE ${OUT} "${text}")
endif()
