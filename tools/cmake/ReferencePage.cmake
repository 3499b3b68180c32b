# _llmc_reference_page(<stem> <td> <tablegen argument>...)
# Adds docs/reference/<stem>.md to the target llmc-docs, which writes into the
# source tree: the pages are kept in git so that they can be read there.
add_custom_target(llmc-docs)

function(_llmc_reference_page stem td)
  set(TABLEGEN_OUTPUT)
  set(LLVM_TARGET_DEFINITIONS ${td})
  mlir_tablegen(${stem}.md ${ARGN})
  set(page ${PROJECT_SOURCE_DIR}/docs/reference/${stem}.md)
  add_custom_target(
    llmc_${stem}_docs
    DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/${stem}.md
    COMMAND ${CMAKE_COMMAND} -E copy_if_different ${CMAKE_CURRENT_BINARY_DIR}/${stem}.md ${page}
  )
  add_dependencies(llmc-docs llmc_${stem}_docs)
endfunction()
