#include "passes/linalg/Patterns.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

using Values = SmallVector<Value>;

static Values lowerRopeTable(RopeTableOp op, RopeTableOp::Adaptor in,
                             Emitter &e) {
  double scale = op.getAttentionScaling().convertToDouble();
  SmallVector<OpFoldResult> sizes{e.size(in.getPositions(), 0),
                                  e.size(in.getInvFreq(), 0)};
  auto table = [&](Type type, auto function) {
    return e.map(e.empty(cast<RankedTensorType>(type), sizes),
                 {{in.getPositions(), {0}}, {in.getInvFreq(), {1}}},
                 [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
                   Value position =
                       arith::SIToFPOp::create(b, loc, b.getF32Type(), v[0]);
                   Value angle = arith::MulFOp::create(b, loc, position, v[1]);
                   Value wave = function(b, loc, angle);
                   if (scale == 1.0)
                     return wave;
                   return arith::MulFOp::create(
                       b, loc, wave,
                       floatConstant(b, loc, b.getF32Type(), scale));
                 });
  };
  Value cos = table(op.getCos().getType(),
                    [](OpBuilder &b, Location loc, Value angle) -> Value {
                      return math::CosOp::create(b, loc, angle);
                    });
  Value sin = table(op.getSin().getType(),
                    [](OpBuilder &b, Location loc, Value angle) -> Value {
                      return math::SinOp::create(b, loc, angle);
                    });
  return {cos, sin};
}

// The rotated elements are two slices of the last dimension; the rest of the
// input passes through.
static Values lowerRope(RopeOp op, RopeOp::Adaptor in, Emitter &e) {
  auto type = cast<RankedTensorType>(op.getType());
  Value input = e.convert(in.getInput(), type.getElementType());
  int64_t pairs = cast<RankedTensorType>(op.getCos().getType()).getDimSize(1);
  bool half = op.getStyle() == RopeStyle::Half;
  int64_t stride = half ? 1 : 2, secondOffset = half ? pairs : 1;
  Value first = e.slice(input, 2, 0, pairs, stride);
  Value second = e.slice(input, 2, secondOffset, pairs, stride);

  auto rotate = [&](bool upper) {
    Value init = e.empty(type.getElementType(), e.sizes(first));
    SmallVector<Emitter::Operand> operands{{first, {0, 1, 2}},
                                           {second, {0, 1, 2}},
                                           {in.getCos(), {0, 2}},
                                           {in.getSin(), {0, 2}}};
    return e.map(init, operands,
                 [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
                   if (upper)
                     return arith::AddFOp::create(
                         b, loc, arith::MulFOp::create(b, loc, v[1], v[2]),
                         arith::MulFOp::create(b, loc, v[0], v[3]));
                   return arith::SubFOp::create(
                       b, loc, arith::MulFOp::create(b, loc, v[0], v[2]),
                       arith::MulFOp::create(b, loc, v[1], v[3]));
                 });
  };
  Value lower = rotate(false), upper = rotate(true);
  Value result = e.insertSlice(lower, input, 2, 0, stride);
  return {e.insertSlice(upper, result, 2, secondOffset, stride)};
}

void llmc::populateRopeLowerings(RewritePatternSet &patterns) {
  addLowering<RopeTableOp, lowerRopeTable>(patterns);
  addLowering<RopeOp, lowerRope>(patterns);
}
