// The paged KV cache: pools are memrefs that are read and written in place.
#include "passes/linalg/Attention.h"
#include "passes/linalg/Patterns.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

static Value loadIndex(OpBuilder &b, Location loc, Value array, ValueRange at) {
  return arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                    memref::LoadOp::create(b, loc, array, at));
}

namespace {
struct LowerKvLayer : OpConversionPattern<KvLayerOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(KvLayerOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ArrayRef<KvType> layers = op.getCache().getType().getLayers();
    auto pools = [](KvType type) { return type.getVHeadDim() ? 2 : 1; };
    int64_t first = 0;
    for (KvType before : layers.take_front(op.getLayer()))
      first += pools(before);
    ValueRange layer =
        adaptor.getCache().slice(first, pools(layers[op.getLayer()]));
    rewriter.replaceOpWithMultiple(op, {layer});
    return success();
  }
};

struct LowerKvAppend : OpConversionPattern<KvAppendOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(KvAppendOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    BatchArrays batch(adaptor.getBatch());
    store(rewriter, op, adaptor.getKey()[0], adaptor.getKv()[0], batch);
    if (adaptor.getKv().size() == 2)
      store(rewriter, op, adaptor.getValue()[0], adaptor.getKv()[1], batch);
    rewriter.eraseOp(op);
    return success();
  }

private:
  // pool[slots[t] / block, h, slots[t] % block, d] = rows[t, h, d]
  static void store(OpBuilder &builder, KvAppendOp op, Value rows, Value pool,
                    const BatchArrays &batch) {
    Emitter e(builder, op.getLoc());
    auto poolType = cast<MemRefType>(pool.getType());
    Value block = e.index(poolType.getDimSize(2));
    SmallVector<Value> lower(3, e.index(0)), steps(3, e.index(1)), upper;
    for (int64_t i = 0; i < 3; ++i)
      upper.push_back(tensor::DimOp::create(builder, e.loc, rows, i));
    scf::buildLoopNest(
        builder, e.loc, lower, upper, steps,
        [&](OpBuilder &b, Location loc, ValueRange at) {
          Value slot = loadIndex(b, loc, batch.slots, at[0]);
          Value page = arith::DivUIOp::create(b, loc, slot, block);
          Value offset = arith::RemUIOp::create(b, loc, slot, block);
          Value element = tensor::ExtractOp::create(b, loc, rows, at);
          element = convertElement(b, loc, element, poolType.getElementType());
          memref::StoreOp::create(b, loc, element, pool,
                                  ValueRange{page, at[1], offset, at[2]});
        });
  }
};

struct LowerPagedAttention : OpConversionPattern<PagedAttentionOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(PagedAttentionOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    auto type = cast<RankedTensorType>(op.getType());
    auto optional = [](ValueRange values) {
      return values.empty() ? Value() : values[0];
    };
    auto rule = AttentionRule::of(
        op, op.getSinks() ? optional(adaptor.getSinks()[0]) : Value(),
        op.getAlibiSlopes() ? optional(adaptor.getAlibiSlopes()[0]) : Value());
    Value query = adaptor.getQuery()[0];
    BatchArrays batch(adaptor.getBatch());
    Value keys = adaptor.getKv().front(), values = adaptor.getKv().back();

    SmallVector<OpFoldResult> sizes = e.sizes(query);
    sizes[2] = rewriter.getIndexAttr(type.getDimSize(2));
    Value init = e.empty(type, sizes);
    Value sequences = memref::DimOp::create(rewriter, e.loc, batch.kvLen, 0);
    auto loop = scf::ForOp::create(
        rewriter, e.loc, e.index(0), sequences, e.index(1), init,
        [&](OpBuilder &b, Location loc, Value s, ValueRange state) {
          Emitter inner(b, loc);
          Value result = attendSequence(inner, s, query, keys, values, batch,
                                        type, rule, state[0]);
          scf::YieldOp::create(b, loc, result);
        });
    rewriter.replaceOp(op, loop.getResult(0));
    return success();
  }

private:
  static Value attendSequence(Emitter &e, Value s, Value query, Value keys,
                              Value values, const BatchArrays &batch,
                              RankedTensorType type, const AttentionRule &rule,
                              Value into) {
    OpBuilder &b = e.builder;
    Value start = loadIndex(b, e.loc, batch.queryStart, s);
    Value next = arith::AddIOp::create(b, e.loc, s, e.index(1));
    Value end = loadIndex(b, e.loc, batch.queryStart, next);
    Value rows = arith::SubIOp::create(b, e.loc, end, start);
    Value length = loadIndex(b, e.loc, batch.kvLen, s);
    Value offset = arith::SubIOp::create(b, e.loc, length, rows);

    auto queryType = cast<RankedTensorType>(query.getType());
    auto sliceOf = [&](int64_t last) {
      return std::tuple(SmallVector<OpFoldResult>{start, b.getIndexAttr(0),
                                                  b.getIndexAttr(0)},
                        SmallVector<OpFoldResult>{
                            rows, b.getIndexAttr(queryType.getDimSize(1)),
                            b.getIndexAttr(last)},
                        SmallVector<OpFoldResult>(3, b.getIndexAttr(1)));
    };
    auto [offsets, extents, strides] = sliceOf(queryType.getDimSize(2));
    Value part = tensor::ExtractSliceOp::create(b, e.loc, query, offsets,
                                                extents, strides);
    Value k =
        gather(e, s, keys, batch.blockTable, length, queryType.getDimSize(2));
    Value v =
        gather(e, s, values, batch.blockTable, length, type.getDimSize(2));
    Value result = emitAttention(e, part, k, v, offset, rule);
    result = e.convert(result, type.getElementType());
    std::tie(offsets, extents, strides) = sliceOf(type.getDimSize(2));
    return tensor::InsertSliceOp::create(b, e.loc, result, into, offsets,
                                         extents, strides);
  }

  // The first `dim` elements of `length` cached rows of sequence s: [length,
  // heads, dim].
  static Value gather(Emitter &e, Value s, Value pool, Value blockTable,
                      Value length, int64_t dim) {
    auto type = cast<MemRefType>(pool.getType());
    Value block = e.index(type.getDimSize(2));
    SmallVector<OpFoldResult> sizes{length,
                                    e.builder.getIndexAttr(type.getDimSize(1)),
                                    e.builder.getIndexAttr(dim)};
    return e.map(e.empty(type.getElementType(), sizes), {},
                 [&](OpBuilder &b, Location loc, ValueRange) -> Value {
                   Value j = linalg::IndexOp::create(b, loc, 0);
                   Value head = linalg::IndexOp::create(b, loc, 1);
                   Value d = linalg::IndexOp::create(b, loc, 2);
                   Value entry = arith::DivUIOp::create(b, loc, j, block);
                   Value page =
                       loadIndex(b, loc, blockTable, ValueRange{s, entry});
                   Value offset = arith::RemUIOp::create(b, loc, j, block);
                   return memref::LoadOp::create(
                       b, loc, pool, ValueRange{page, head, offset, d});
                 });
  }
};
} // namespace

void llmc::populateCacheLowerings(RewritePatternSet &patterns,
                                  const TypeConverter &converter) {
  patterns.add<LowerKvLayer, LowerKvAppend, LowerPagedAttention>(
      converter, patterns.getContext());
}
