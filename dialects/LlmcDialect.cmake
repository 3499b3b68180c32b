# llmc_add_dialect(<name> <Prefix> SOURCES ... [INTERFACES])
#
# Builds one dialect out of its folder: <Prefix>{Dialect,Enums,Attrs,Types,Ops}.td
# become C++ declarations and definitions (#include "dialects/<name>/<Prefix>Ops.h.inc"),
# Python op classes (llmc/dialects/_<name>_ops_gen.py) and a reference page.
# INTERFACES adds <Prefix>Interfaces.td (op interfaces).
function(llmc_add_dialect name prefix)
  cmake_parse_arguments(arg "INTERFACES" "" "SOURCES" ${ARGN})

  set(LLVM_TARGET_DEFINITIONS ${prefix}Dialect.td)
  mlir_tablegen(${prefix}Dialect.h.inc -gen-dialect-decls -dialect=${name})
  mlir_tablegen(${prefix}Dialect.cpp.inc -gen-dialect-defs -dialect=${name})
  set(LLVM_TARGET_DEFINITIONS ${prefix}Enums.td)
  mlir_tablegen(${prefix}Enums.h.inc -gen-enum-decls)
  mlir_tablegen(${prefix}Enums.cpp.inc -gen-enum-defs)
  set(LLVM_TARGET_DEFINITIONS ${prefix}Attrs.td)
  mlir_tablegen(${prefix}Attrs.h.inc -gen-attrdef-decls -attrdefs-dialect=${name})
  mlir_tablegen(${prefix}Attrs.cpp.inc -gen-attrdef-defs -attrdefs-dialect=${name})
  set(LLVM_TARGET_DEFINITIONS ${prefix}Types.td)
  mlir_tablegen(${prefix}Types.h.inc -gen-typedef-decls -typedefs-dialect=${name})
  mlir_tablegen(${prefix}Types.cpp.inc -gen-typedef-defs -typedefs-dialect=${name})
  if(arg_INTERFACES)
    set(LLVM_TARGET_DEFINITIONS ${prefix}Interfaces.td)
    mlir_tablegen(${prefix}Interfaces.h.inc -gen-op-interface-decls)
    mlir_tablegen(${prefix}Interfaces.cpp.inc -gen-op-interface-defs)
  endif()
  set(LLVM_TARGET_DEFINITIONS ${prefix}Ops.td)
  mlir_tablegen(${prefix}Ops.h.inc -gen-op-decls -dialect=${name})
  mlir_tablegen(${prefix}Ops.cpp.inc -gen-op-defs -dialect=${name})
  add_public_tablegen_target(llmc_${name}_headers)
  add_dependencies(llmc-headers llmc_${name}_headers)

  llmc_ir_library(llmc_dialect_${name} ${arg_SOURCES})

  _llmc_dialect_python(${name} ${prefix})
  _llmc_reference_page(${name} ${prefix}Ops.td -gen-dialect-doc -dialect=${name})
endfunction()

function(_llmc_dialect_python name prefix)
  set(TABLEGEN_OUTPUT)
  set(LLVM_TARGET_DEFINITIONS ${prefix}Ops.td)
  mlir_tablegen(_${name}_ops_gen.py -gen-python-op-bindings -bind-dialect=${name})
  set(LLVM_TARGET_DEFINITIONS ${prefix}Enums.td)
  mlir_tablegen(_${name}_enums_gen.py -gen-python-enum-bindings -bind-dialect=${name})
  set(in_package)
  foreach(file _${name}_ops_gen.py _${name}_enums_gen.py)
    set(out ${LLMC_PYTHON_DIR}/dialects/${file})
    set(script ${PROJECT_SOURCE_DIR}/tools/cmake/InstallGeneratedPython.cmake)
    add_custom_command(
      OUTPUT ${out}
      DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/${file} ${script}
      COMMENT "Generating llmc/dialects/${file}"
      COMMAND ${CMAKE_COMMAND} -DIN=${CMAKE_CURRENT_BINARY_DIR}/${file} -DOUT=${out} -P ${script}
    )
    list(APPEND in_package ${out})
  endforeach()
  add_custom_target(llmc_${name}_python ALL DEPENDS ${in_package})
  install(FILES ${in_package} DESTINATION llmc/dialects COMPONENT python)
endfunction()
