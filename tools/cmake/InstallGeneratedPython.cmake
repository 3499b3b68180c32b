# cmake -DIN=... -DOUT=... -P: copies a module that mlir-tblgen generated into
# the package. Enum modules expect `ir` one level up, as in the `mlir` package.
file(READ ${IN} text)
string(REPLACE "from ..ir import" "from mlir.ir import" text "${text}")
file(WRITE ${OUT} "${text}")
