// Passes of the phase `plan`.
#ifndef LLMC_PASSES_PLAN_TD
#define LLMC_PASSES_PLAN_TD

include "mlir/Pass/PassBase.td"

#endif // LLMC_PASSES_PLAN_TD
