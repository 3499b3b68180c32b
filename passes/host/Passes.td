// Passes of the phase `host`.
#ifndef LLMC_PASSES_HOST_TD
#define LLMC_PASSES_HOST_TD

include "mlir/Pass/PassBase.td"

#endif // LLMC_PASSES_HOST_TD
