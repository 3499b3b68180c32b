# Libraries of IR code (dialects, passes): static, with MLIR's symbols left
# undefined, because each is linked twice: into llmc-opt on libMLIR.so and into
# the Python extension on libMLIRPythonCAPI.so.

# Every generated header; IR code may include the headers of any dialect or phase.
add_custom_target(llmc-headers)

include(ReferencePage)

# Flags that must agree with how MLIR was built. -O1 builds much faster than
# -O3, and compile time of a model is spent inside MLIR, not in our passes.
# NDEBUG stays off: the wheels are built with assertions.
add_library(llmc_ir_flags INTERFACE)
separate_arguments(llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
list(REMOVE_ITEM llvm_definitions -D_DEBUG)
target_compile_options(
  llmc_ir_flags
  INTERFACE
    ${llvm_definitions}
    -UNDEBUG
    $<$<NOT:$<CONFIG:Debug>>:-O1>
    -fno-rtti
    -fno-exceptions
    -fvisibility=hidden
    -fvisibility-inlines-hidden
    -Wall
    -Wextra
    -Wno-unused-parameter
    "$<$<CXX_COMPILER_ID:GNU>:-Wno-comment;-Wno-maybe-uninitialized>"
)
target_include_directories(llmc_ir_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
target_include_directories(llmc_ir_flags SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})

# mlir_tablegen takes its include path from the directory property.
include_directories(${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
include_directories(SYSTEM ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})

# One precompiled header for all IR code: MLIR's headers are most of the time
# that a small pass takes to compile.
file(WRITE ${CMAKE_BINARY_DIR}/ir_pch.cpp.tmp "// Compiled only for its precompiled header.\n")
configure_file(${CMAKE_BINARY_DIR}/ir_pch.cpp.tmp ${CMAKE_BINARY_DIR}/ir_pch.cpp COPYONLY)
add_library(llmc_ir_pch OBJECT ${CMAKE_BINARY_DIR}/ir_pch.cpp)
target_link_libraries(llmc_ir_pch PRIVATE llmc_ir_flags)
target_precompile_headers(llmc_ir_pch PRIVATE ${PROJECT_SOURCE_DIR}/tools/cmake/ir_pch.h)

# llmc_ir_library(name source...)
# The flags are private: the Python binding file, which needs RTTI, links these.
function(llmc_ir_library name)
  add_library(${name} STATIC ${ARGN})
  target_link_libraries(${name} PRIVATE llmc_ir_flags)
  target_precompile_headers(${name} REUSE_FROM llmc_ir_pch)
  add_dependencies(${name} llmc-headers)
endfunction()
