# Lays out the importable package `llmc` under <build>/python, so that
# PYTHONPATH=<build>/python works without an install: source folders are
# symbolic links (new files appear at once), generated and compiled files are
# written beside them.
set(LLMC_PYTHON_DIR ${CMAKE_BINARY_DIR}/python/llmc)
# Folders of the package that hold compiled parts only.
set(LLMC_BIN_DIR ${LLMC_PYTHON_DIR}/bin)
set(LLMC_LIB_DIR ${LLMC_PYTHON_DIR}/lib)
if(IS_SYMLINK ${LLMC_PYTHON_DIR}/runtime)
  file(REMOVE ${LLMC_PYTHON_DIR}/runtime) # build trees from before it held an extension
endif()
file(
  MAKE_DIRECTORY
    ${LLMC_PYTHON_DIR}/dialects
    ${LLMC_PYTHON_DIR}/runtime
    ${LLMC_BIN_DIR}
    ${LLMC_LIB_DIR}
)

function(llmc_link_python source link)
  if(IS_SYMLINK ${LLMC_PYTHON_DIR}/${link} OR NOT EXISTS ${LLMC_PYTHON_DIR}/${link})
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${source} ${LLMC_PYTHON_DIR}/${link} SYMBOLIC)
  endif()
endfunction()

# Whole folders, see [tool.scikit-build.wheel.force-include] in pyproject.toml.
llmc_link_python(frontends frontends)
llmc_link_python(codegen codegen)
llmc_link_python(compiler compiler)
llmc_link_python(runtime/server server)

# Folders that share their package with compiled files: link file by file.
foreach(pair "tools/llmc:." "dialects/python:dialects" "runtime/python:runtime")
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 source)
  list(GET pair 1 package)
  file(
    GLOB files
    CONFIGURE_DEPENDS
    RELATIVE ${PROJECT_SOURCE_DIR}/${source}
    ${PROJECT_SOURCE_DIR}/${source}/*.py
    ${PROJECT_SOURCE_DIR}/${source}/*.pyi
    ${PROJECT_SOURCE_DIR}/${source}/py.typed
  )
  foreach(file ${files})
    llmc_link_python(${source}/${file} ${package}/${file})
  endforeach()
endforeach()
