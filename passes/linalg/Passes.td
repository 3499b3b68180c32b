// Passes of the phase `linalg`.
#ifndef LLMC_PASSES_LINALG_TD
#define LLMC_PASSES_LINALG_TD

include "mlir/Pass/PassBase.td"

#endif // LLMC_PASSES_LINALG_TD
