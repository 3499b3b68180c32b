// Embedding, linear, norms, activations.
#include "passes/linalg/Patterns.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

using Values = SmallVector<Value>;

// result[i, ...] = table[rows[i], ...]
static Value gatherRows(Emitter &e, Value table, Value rows,
                        RankedTensorType type) {
  SmallVector<OpFoldResult> sizes = e.sizes(table);
  sizes[0] = e.size(rows, 0);
  return e.map(e.empty(type, sizes), {{rows, {0}}},
               [&](OpBuilder &b, Location loc, ValueRange in) {
                 SmallVector<Value> at{arith::IndexCastOp::create(
                     b, loc, b.getIndexType(), in[0])};
                 for (int64_t i = 1; i < type.getRank(); ++i)
                   at.push_back(linalg::IndexOp::create(b, loc, i));
                 Value element = tensor::ExtractOp::create(b, loc, table, at);
                 return convertElement(b, loc, element, type.getElementType());
               });
}

static Values lowerEmbedding(EmbeddingOp op, EmbeddingOp::Adaptor in,
                             Emitter &e) {
  return {gatherRows(e, in.getTable(), in.getIds(),
                     cast<RankedTensorType>(op.getType()))};
}

static Values lowerGatherRows(GatherRowsOp op, GatherRowsOp::Adaptor in,
                              Emitter &e) {
  return {gatherRows(e, in.getInput(), in.getRows(),
                     cast<RankedTensorType>(op.getType()))};
}

static Values lowerLinear(LinearOp op, LinearOp::Adaptor in, Emitter &e) {
  Value result = emitLinear(e, in.getInput(), in.getWeight(), in.getBias());
  return {e.convert(result, op.getType().getElementType())};
}

namespace {
// The loops of a norm: all dimensions of the input, statistics one value a row.
struct Rows {
  int64_t rank;
  SmallVector<int64_t> all, kept;
  SmallVector<OpFoldResult> sizes;
  double length;

  Rows(Emitter &e, Value input) {
    auto type = cast<RankedTensorType>(input.getType());
    rank = type.getRank();
    all = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    kept = llvm::to_vector(llvm::seq<int64_t>(0, rank - 1));
    sizes = e.sizes(input);
    sizes.pop_back();
    length = type.getDimSize(rank - 1);
  }

  // mean over the last dimension of fn(operands...)
  Value mean(Emitter &e, ArrayRef<Emitter::Operand> operands,
             ElementFn fn) const {
    Value sum = e.reduce(
        rank, {e.filled(0.0, sizes), kept}, operands,
        [&](OpBuilder &b, Location loc, ValueRange in) -> Value {
          return arith::AddFOp::create(b, loc, in.back(), fn(b, loc, in));
        });
    Value scale = e.f32(1.0 / length);
    return e.mapSame(sum, sum,
                     [&](OpBuilder &b, Location loc, ValueRange in) -> Value {
                       return arith::MulFOp::create(b, loc, in[0], scale);
                     });
  }
};
} // namespace

static Value reciprocalRoot(OpBuilder &b, Location loc, Value meanSquare,
                            Value eps) {
  return math::RsqrtOp::create(b, loc,
                               arith::AddFOp::create(b, loc, meanSquare, eps));
}

static Value inverseRoot(Emitter &e, Value meanSquare, double epsilon) {
  Value eps = e.f32(epsilon);
  return e.mapSame(meanSquare, meanSquare,
                   [&](OpBuilder &b, Location loc, ValueRange in) {
                     return reciprocalRoot(b, loc, in[0], eps);
                   });
}

static Values lowerRmsNorm(RmsNormOp op, RmsNormOp::Adaptor in, Emitter &e) {
  Value input = in.getInput();
  Rows rows(e, input);
  Value meanSquare =
      rows.mean(e, {{input, rows.all}},
                [](OpBuilder &b, Location loc, ValueRange v) -> Value {
                  return arith::MulFOp::create(b, loc, v[0], v[0]);
                });
  Value scale = inverseRoot(e, meanSquare, op.getEps().convertToDouble());
  SmallVector<Emitter::Operand> operands{{input, rows.all}, {scale, rows.kept}};
  if (in.getGamma())
    operands.push_back({in.getGamma(), {rows.rank - 1}});
  Value init = e.empty(cast<RankedTensorType>(op.getType()), e.sizes(input));
  return {e.map(
      init, operands, [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
        Value y = arith::MulFOp::create(b, loc, v[0], v[1]);
        return in.getGamma()
                   ? arith::MulFOp::create(b, loc, y, v[2]).getResult()
                   : y;
      })};
}

static Values lowerLayerNorm(LayerNormOp op, LayerNormOp::Adaptor in,
                             Emitter &e) {
  Value input = in.getInput();
  Rows rows(e, input);
  Value mean =
      rows.mean(e, {{input, rows.all}},
                [](OpBuilder &, Location, ValueRange v) { return v[0]; });
  Value variance =
      rows.mean(e, {{input, rows.all}, {mean, rows.kept}},
                [](OpBuilder &b, Location loc, ValueRange v) -> Value {
                  Value d = arith::SubFOp::create(b, loc, v[0], v[1]);
                  return arith::MulFOp::create(b, loc, d, d);
                });
  Value scale = inverseRoot(e, variance, op.getEps().convertToDouble());
  SmallVector<Emitter::Operand> operands{
      {input, rows.all}, {mean, rows.kept}, {scale, rows.kept}};
  if (in.getGamma())
    operands.push_back({in.getGamma(), {rows.rank - 1}});
  if (in.getBeta())
    operands.push_back({in.getBeta(), {rows.rank - 1}});
  Value init = e.empty(cast<RankedTensorType>(op.getType()), e.sizes(input));
  return {e.map(
      init, operands, [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
        Value y = arith::SubFOp::create(b, loc, v[0], v[1]);
        y = arith::MulFOp::create(b, loc, y, v[2]);
        if (in.getGamma())
          y = arith::MulFOp::create(b, loc, y, v[3]);
        if (in.getBeta())
          y = arith::AddFOp::create(b, loc, y, v[in.getGamma() ? 4 : 3]);
        return y;
      })};
}

static Values lowerActivation(ActivationOp op, ActivationOp::Adaptor in,
                              Emitter &e) {
  Value init =
      e.empty(cast<RankedTensorType>(op.getType()), e.sizes(in.getInput()));
  return {e.mapSame(init, in.getInput(),
                    [&](OpBuilder &b, Location loc, ValueRange v) {
                      return emitActivation(b, loc, op.getKind(), v[0]);
                    })};
}

static Values lowerGlu(GluOp op, GluOp::Adaptor in, Emitter &e) {
  Value init =
      e.empty(cast<RankedTensorType>(op.getType()), e.sizes(in.getGate()));
  return {emitGlu(e, op.getKind(), in.getGate(), in.getUp(), init)};
}

static Values lowerPackedGlu(PackedGluOp op, PackedGluOp::Adaptor in,
                             Emitter &e) {
  auto [gate, up] = unpackGlu(e, in.getInput(), op.getLayout(), op.getBlock());
  Value init = e.empty(cast<RankedTensorType>(op.getType()), e.sizes(gate));
  return {emitGlu(e, op.getKind(), gate, up, init)};
}

void llmc::populateDecoderLowerings(RewritePatternSet &patterns) {
  addLowering<EmbeddingOp, lowerEmbedding>(patterns);
  addLowering<GatherRowsOp, lowerGatherRows>(patterns);
  addLowering<LinearOp, lowerLinear>(patterns);
  addLowering<RmsNormOp, lowerRmsNorm>(patterns);
  addLowering<LayerNormOp, lowerLayerNorm>(patterns);
  addLowering<ActivationOp, lowerActivation>(patterns);
  addLowering<GluOp, lowerGlu>(patterns);
  addLowering<PackedGluOp, lowerPackedGlu>(patterns);
}
