// Passes of the phase `optimize`.
#ifndef LLMC_PASSES_OPTIMIZE_TD
#define LLMC_PASSES_OPTIMIZE_TD

include "mlir/Pass/PassBase.td"

#endif // LLMC_PASSES_OPTIMIZE_TD
