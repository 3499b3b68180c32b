// Passes of the phase `batch`.
#ifndef LLMC_PASSES_BATCH_TD
#define LLMC_PASSES_BATCH_TD

include "mlir/Pass/PassBase.td"

#endif // LLMC_PASSES_BATCH_TD
