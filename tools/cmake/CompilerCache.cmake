# Uses ccache when it is there. The sloppiness is what ccache needs to cache
# files that are compiled with a precompiled header.
find_program(LLMC_CCACHE ccache)
if(LLMC_CCACHE)
  foreach(lang C CXX)
    if(NOT CMAKE_${lang}_COMPILER_LAUNCHER)
      set(
        CMAKE_${lang}_COMPILER_LAUNCHER
        ${CMAKE_COMMAND}
        -E
        env
        CCACHE_SLOPPINESS=pch_defines,time_macros
        ${LLMC_CCACHE}
      )
    endif()
  endforeach()
endif()
