//===- ConvertToPaged.cpp - from one sequence to a ragged batch -----------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Everything in a decoder but attention works on rows by themselves. So the
// dense graph of one sequence becomes the graph of a batch of many by changing
// attention alone: its keys and values go to the cache, and its queries read
// them from there.
//
//===----------------------------------------------------------------------===//

#include "passes/2_batch/Passes.h"
#include "passes/Describe.h"

#include "dialects/llm/LlmDialect.h"

namespace llmc {
#define GEN_PASS_DEF_LLMCONVERTTOPAGED
#include "passes/2_batch/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

struct ConvertToPagedPass
    : llmc::impl::LlmConvertToPagedBase<ConvertToPagedPass> {
  using LlmConvertToPagedBase::LlmConvertToPagedBase;

  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<func::FuncOp>("step");
    if (failed(verify(step)))
      return signalPassFailure();

    SmallVector<llm::AttentionOp> attentions(
        step.getBody().front().getOps<llm::AttentionOp>());
    SmallVector<llm::KvType> layers;
    SmallVector<unsigned> layerOf;
    DenseMap<std::pair<Value, Value>, unsigned> layerOfKeys;
    for (llm::AttentionOp attention : attentions) {
      FailureOr<llm::KvType> type = cacheOf(attention);
      if (failed(type))
        return signalPassFailure();
      // Attentions over the same keys and values share their cache.
      auto [it, isNew] = layerOfKeys.try_emplace(
          {attention.getKey(), attention.getValue()}, layers.size());
      if (isNew)
        layers.push_back(*type);
      layerOf.push_back(it->second);
    }

    addArguments(step, llm::KvCacheType::get(&getContext(), layers));
    llvm::BitVector appended(layers.size());
    for (auto [attention, layer] : llvm::zip_equal(attentions, layerOf)) {
      convert(attention, step, layer, layers[layer], !appended[layer]);
      appended.set(layer);
    }
  }

  LogicalResult verify(func::FuncOp step) {
    if (!step)
      return getOperation().emitError()
             << "expected a function @step, found none; this pass takes the "
                "module of a frontend";
    if (step.getNumArguments() != 2)
      return step.emitError()
             << "expected the dense @step(tokens, positions), found "
             << step.getNumArguments()
             << " arguments; llm-convert-to-paged runs once, on a dense module";
    if (blockSize <= 0 || (blockSize & (blockSize - 1)))
      return getOperation().emitError()
             << "expected block-size to be a power of two, found "
             << int64_t(blockSize) << "; 16, 32, 64 and 128 are usual";
    if (step.getBody().front().getOps<llm::AttentionOp>().empty())
      return step.emitError()
             << "expected a decoder, found no llm.attention; run the raise "
                "passes "
                "first, or register the model's attention with the frontend";
    return success();
  }

  FailureOr<llm::KvType> cacheOf(llm::AttentionOp op) {
    auto key = cast<RankedTensorType>(op.getKey().getType());
    auto value = cast<RankedTensorType>(op.getValue().getType());
    if (!op.getCausal())
      return op.emitError()
             << "expected causal attention, found attention to later tokens "
                "in "
             << describe(op.getLoc())
             << "; a KV cache holds earlier tokens only, so encoders cannot "
                "be compiled";
    for (RankedTensorType type : {key, value})
      if (ShapedType::isDynamic(type.getDimSize(1)) ||
          ShapedType::isDynamic(type.getDimSize(2)))
        return op.emitError()
               << "expected static numbers of heads and head dimensions, found "
               << type << " in " << describe(op.getLoc())
               << "; the cache's layout depends on them";
    return llm::KvType::get(&getContext(), key.getDimSize(1), key.getDimSize(2),
                            value.getDimSize(2), blockSize,
                            key.getElementType());
  }

  void addArguments(func::FuncOp step, llm::KvCacheType cache) {
    Type rows = RankedTensorType::get({ShapedType::kDynamic},
                                      IntegerType::get(&getContext(), 32));
    for (Type type :
         {rows, Type(llm::BatchType::get(&getContext())), Type(cache)})
      (void)step.insertArgument(step.getNumArguments(), type, {},
                                step.getLoc());
  }

  void convert(llm::AttentionOp op, func::FuncOp step, unsigned layer,
               llm::KvType type, bool append) {
    OpBuilder builder(op);
    Location loc = op.getLoc();
    Value batch = step.getArgument(3), cache = step.getArgument(4);
    Value kv = llm::KvLayerOp::create(builder, loc, type, cache, layer);
    if (append)
      llm::KvAppendOp::create(builder, loc, op.getKey(), op.getValue(), kv,
                              batch);
    Value result = llm::PagedAttentionOp::create(
        builder, loc, op.getType(), op.getQuery(), kv, batch, op.getSinks(),
        op.getAlibiSlopes(), op.getScaleAttr(), op.getCausalAttr(),
        op.getWindowAttr(), op.getSoftcapAttr());
    op.replaceAllUsesWith(result);
    op.erase();
  }
};

} // namespace
