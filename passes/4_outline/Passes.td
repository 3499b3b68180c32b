// Passes of the phase `outline`.
#ifndef LLMC_PASSES_OUTLINE_TD
#define LLMC_PASSES_OUTLINE_TD

include "mlir/Pass/PassBase.td"

#endif // LLMC_PASSES_OUTLINE_TD
