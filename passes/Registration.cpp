#include "passes/Registration.h"

#include "passes/1_raise/Passes.h"
#include "passes/2_batch/Passes.h"
#include "passes/3_optimize/Passes.h"
#include "passes/4_outline/Passes.h"
#include "passes/5_plan/Passes.h"
#include "passes/Pipelines.h"
#include "passes/host/Passes.h"
#include "passes/linalg/Passes.h"
#include "passes/tile/Passes.h"

#include "mlir/IR/DialectRegistry.h"

void llmc::registerAllPasses() {
  registerRaisePasses();
  registerBatchPasses();
  registerOptimizePasses();
  registerOutlinePasses();
  registerPlanPasses();
  registerLinalgPasses();
  registerHostPasses();
  registerTilePasses();
  registerPipelines();
}

void llmc::registerAllExtensions(mlir::DialectRegistry &registry) {}
