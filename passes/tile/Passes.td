// Passes of the phase `tile`.
#ifndef LLMC_PASSES_TILE_TD
#define LLMC_PASSES_TILE_TD

include "mlir/Pass/PassBase.td"

#endif // LLMC_PASSES_TILE_TD
