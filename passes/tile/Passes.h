// Passes of the phase `tile`.
#pragma once

#include "mlir/Pass/Pass.h"

namespace llmc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/tile/Passes.h.inc"

/// From a tile kernel to the gpu.module that gpu-module-to-binary takes.
/// chip: "sm_80"; shared memory: bytes of a block.
void buildTileToNVVMPipeline(mlir::OpPassManager &pm, llvm::StringRef chip,
                             llvm::StringRef features, int64_t sharedMemory);

/// Registers the pipeline `tile-to-nvvm`.
void registerTilePipelines();
} // namespace llmc
