# llmc_add_passes(<folder> <Name> [source...])
#
# One phase: <folder>/Passes.td becomes "passes/<folder>/Passes.h.inc" with
# register<Name>Passes(), its .cpp files become the library llmc_passes_<name>.
function(llmc_add_passes folder name)
  string(TOLOWER ${name} lower)
  set(LLVM_TARGET_DEFINITIONS Passes.td)
  mlir_tablegen(Passes.h.inc -gen-pass-decls -name=${name})
  add_public_tablegen_target(llmc_passes_${lower}_headers)
  add_dependencies(llmc-headers llmc_passes_${lower}_headers)
  _llmc_reference_page(passes-${folder} Passes.td -gen-pass-doc)

  # A phase may still be empty, and CMake refuses an empty static library.
  if(ARGN)
    llmc_ir_library(llmc_passes_${lower} ${ARGN})
    target_link_libraries(llmc_passes_${lower} PUBLIC llmc_dialects)
    set_property(GLOBAL APPEND PROPERTY LLMC_PASS_LIBRARIES llmc_passes_${lower})
  endif()
endfunction()
