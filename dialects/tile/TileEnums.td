// Enumerations of the `tile` dialect.
#ifndef LLMC_TILE_ENUMS_TD
#define LLMC_TILE_ENUMS_TD

include "mlir/IR/EnumAttr.td"
include "dialects/tile/TileDialect.td"

#endif // LLMC_TILE_ENUMS_TD
