// tile-to-nvvm: from a tile kernel to what gpu-module-to-binary takes.
#include "passes/tile/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace {
struct TileToNVVMOptions : PassPipelineOptions<TileToNVVMOptions> {
  Option<std::string> chip{*this, "chip",
                           llvm::cl::desc("architecture for ptxas"),
                           llvm::cl::init("sm_90a")};
  Option<std::string> features{*this, "features", llvm::cl::desc("PTX version"),
                               llvm::cl::init("+ptx83")};
  Option<int64_t> sharedMemory{*this, "shared-memory",
                               llvm::cl::desc("bytes of a block"),
                               llvm::cl::init(232448)};
};
} // namespace

/// Whether the chip ("sm_90a") has what Hopper brought.
static bool isHopperOrLater(StringRef chip) {
  unsigned number = 0;
  return chip.consume_front("sm_") && !chip.consumeInteger(10, number) &&
         number >= 90;
}

void llmc::buildTileToNVVMPipeline(OpPassManager &pm, StringRef chip,
                                   StringRef features, int64_t sharedMemory) {
  if (!isHopperOrLater(chip))
    pm.addPass(createTileStripHopper());
  pm.addPass(createTilePeelFirstStep());
  pm.addPass(createTileVerifyProtocol());
  pm.addPass(createTileAssignStagePhase());
  pm.addPass(createTileAssignCopyGroups());
  pm.addPass(createTileAllocateSharedMemory({sharedMemory}));
  pm.addPass(createConvertTileToNVVM());

  OpPassManager &kernel = pm.nest<gpu::GPUModuleOp>();
  kernel.addPass(createReconcileUnrealizedCastsPass());
  kernel.addPass(createTileExpandMath());
  kernel.addPass(createCanonicalizerPass());
  kernel.addPass(createCSEPass());
  kernel.addPass(createSCFToControlFlowPass());
  kernel.addPass(createConvertVectorToLLVMPass());
  kernel.addPass(createConvertMathToLLVMPass());
  kernel.addPass(createArithToLLVMConversionPass());
  kernel.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  OpPassManager &lowered = pm.nest<gpu::GPUModuleOp>();
  lowered.addPass(createReconcileUnrealizedCastsPass());
  lowered.addPass(createCanonicalizerPass());
  lowered.addPass(createCSEPass());
  lowered.addPass(createConvertNVVMToLLVMPass());

  GpuNVVMAttachTargetOptions target;
  target.chip = chip.str();
  target.features = features.str();
  // O0 and O1 leave accumulators in memory or serialise wgmma.
  target.optLevel = 3;
  pm.addPass(createGpuNVVMAttachTarget(target));
}

void llmc::registerTilePipelines() {
  PassPipelineRegistration<TileToNVVMOptions>(
      "tile-to-nvvm", "Lowers tile kernels to nvvm, ready for PTX",
      [](OpPassManager &pm, const TileToNVVMOptions &options) {
        buildTileToNVVMPipeline(pm, options.chip, options.features,
                                options.sharedMemory);
      });
}
