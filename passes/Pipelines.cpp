//===- Pipelines.cpp - the passes of a phase, in order --------------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/Pipelines.h"

#include "passes/1_raise/Passes.h"
#include "passes/2_batch/Passes.h"
#include "passes/3_optimize/Passes.h"
#include "passes/4_outline/Passes.h"
#include "passes/5_plan/Passes.h"
#include "passes/tile/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace {

struct BatchOptions : PassPipelineOptions<BatchOptions> {
  Option<int64_t> blockSize{
      *this, "block-size",
      llvm::cl::desc("tokens in one block of the KV cache"),
      llvm::cl::init(64)};
};

struct OptimizeOptions : PassPipelineOptions<OptimizeOptions> {
  Option<std::string> weights{*this, "weights",
                              llvm::cl::desc("storage type of weights"),
                              llvm::cl::init("bf16")};
  Option<std::string> activations{*this, "activations",
                                  llvm::cl::desc("type of GEMM inputs"),
                                  llvm::cl::init("bf16")};
  Option<std::string> kv{*this, "kv", llvm::cl::desc("type of the KV cache"),
                         llvm::cl::init("bf16")};
  Option<int64_t> gluBlock{
      *this, "glu-block",
      llvm::cl::desc("rows of gate and of up interleaved at a time"),
      llvm::cl::init(1)};
};

struct OutlineOptions : PassPipelineOptions<OutlineOptions> {
  Option<bool> sample{*this, "sample",
                      llvm::cl::desc("draw the next tokens in the step"),
                      llvm::cl::init(false)};
};

struct PlanOptions : PassPipelineOptions<PlanOptions> {
  Option<int64_t> maxNumTokens{*this, "max-num-tokens",
                               llvm::cl::desc("most tokens of a step"),
                               llvm::cl::init(2048)};
  Option<int64_t> maxBatchSize{*this, "max-batch-size",
                               llvm::cl::desc("most sequences of a step"),
                               llvm::cl::init(32)};
};

void addCleanup(OpPassManager &manager) {
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

void buildRaise(OpPassManager &manager) {
  manager.addPass(llmc::createLlmVerifyContract());
  addCleanup(manager);
  manager.addPass(llmc::createLlmRaiseNorm());
  manager.addPass(createCSEPass());
  manager.addPass(llmc::createLlmRaiseRopeTable());
  manager.addNestedPass<func::FuncOp>(llmc::createLlmRaiseRope());
  manager.addNestedPass<func::FuncOp>(llmc::createLlmRaiseGlu());
  manager.addNestedPass<func::FuncOp>(llmc::createLlmRaiseAttention());
  addCleanup(manager);
}

void buildBatch(OpPassManager &manager, const BatchOptions &options) {
  manager.addPass(llmc::createLlmConvertToPaged({options.blockSize}));
  manager.addPass(llmc::createLlmSelectLogitRows());
  addCleanup(manager);
}

void buildOptimize(OpPassManager &manager, const OptimizeOptions &options) {
  manager.addPass(llmc::createLlmAssignPrecision(
      {options.weights, options.activations, options.kv}));
  manager.addPass(llmc::createLlmMergeProjections({options.gluBlock}));
  manager.addPass(llmc::createLlmLowerQuantization());
  addCleanup(manager);
}

void buildOutline(OpPassManager &manager, const OutlineOptions &options) {
  if (options.sample)
    manager.addPass(llmc::createLlmAppendSampler());
  manager.addPass(llmc::createLlmFormKernels());
  manager.addPass(llmc::createLlmOutlineKernels());
}

void buildPlan(OpPassManager &manager, const PlanOptions &options) {
  llmc::LlmPlanMemoryOptions limits;
  limits.maxNumTokens = options.maxNumTokens;
  limits.maxBatchSize = options.maxBatchSize;
  manager.addPass(llmc::createLlmPlanMemory(limits));
  manager.addPass(llmc::createLlmCheckMemoryPlan());
}

} // namespace

void llmc::registerPipelines() {
  registerTilePipelines();
  PassPipelineRegistration<>(
      "llm-pipeline-raise",
      "Checks a frontend's module and raises norms, ropes, gated units and "
      "attention",
      buildRaise);
  PassPipelineRegistration<BatchOptions>(
      "llm-pipeline-batch",
      "Turns the graph of one sequence into that of a paged, ragged batch",
      buildBatch);
  PassPipelineRegistration<OptimizeOptions>(
      "llm-pipeline-optimize",
      "Assigns precision, merges projections and lowers quantized linears",
      buildOptimize);
  PassPipelineRegistration<OutlineOptions>(
      "llm-pipeline-outline", "Cuts the step into kernels and launches",
      buildOutline);
  PassPipelineRegistration<PlanOptions>(
      "llm-pipeline-plan", "Plans the arena and proves the plan", buildPlan);
}
