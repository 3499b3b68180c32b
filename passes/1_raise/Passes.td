// Passes of the phase `raise`.
#ifndef LLMC_PASSES_RAISE_TD
#define LLMC_PASSES_RAISE_TD

include "mlir/Pass/PassBase.td"

#endif // LLMC_PASSES_RAISE_TD
