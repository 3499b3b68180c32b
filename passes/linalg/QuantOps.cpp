#include "passes/linalg/Float8.h"
#include "passes/linalg/Patterns.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

using Values = SmallVector<Value>;

// How a scale is indexed by the element (row, column) it belongs to: each of
// its dimensions covers a block of the operand's.
static AffineMap scaleMap(Emitter &e, int64_t loops, Value scale,
                          RankedTensorType operand,
                          ArrayRef<int64_t> operandDims) {
  auto type = cast<RankedTensorType>(scale.getType());
  SmallVector<AffineExpr> results;
  for (int64_t i = 0; i < type.getRank(); ++i) {
    AffineExpr loop = e.builder.getAffineDimExpr(operandDims[i]);
    int64_t size = operand.getDimSize(i), count = type.getDimSize(i);
    if (count == 1)
      results.push_back(e.builder.getAffineConstantExpr(0));
    else if (count == size)
      results.push_back(loop);
    else
      results.push_back(loop.floorDiv(llvm::divideCeil(size, count)));
  }
  return AffineMap::get(loops, 0, results, e.builder.getContext());
}

// The finite range of a narrow type.
static std::pair<double, double> rangeOf(Type type) {
  if (auto floating = dyn_cast<FloatType>(type)) {
    double limit =
        APFloat::getLargest(floating.getFloatSemantics()).convertToDouble();
    return {-limit, limit};
  }
  double limit = double(int64_t(1) << (type.getIntOrFloatBitWidth() - 1));
  return {-limit, limit - 1};
}

static Values lowerQuantize(QuantizeOp op, QuantizeOp::Adaptor in, Emitter &e) {
  auto type = cast<RankedTensorType>(op.getType());
  auto [low, high] = rangeOf(type.getElementType());
  SmallVector<AffineMap> maps{e.mapOf(2, {0, 1}),
                              scaleMap(e, 2, in.getScale(), type, {0, 1})};
  bool toInteger = !isa<FloatType>(type.getElementType());
  Value init = e.empty(type, e.sizes(in.getInput()));
  return {
      e.reduce(2, {init, {0, 1}}, ValueRange{in.getInput(), in.getScale()},
               maps, [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
                 Type f32 = b.getF32Type();
                 Value y = arith::DivFOp::create(b, loc, v[0], v[1]);
                 if (toInteger)
                   y = math::RoundEvenOp::create(b, loc, y);
                 y = arith::MaximumFOp::create(b, loc, y,
                                               floatConstant(b, loc, f32, low));
                 return arith::MinimumFOp::create(
                     b, loc, y, floatConstant(b, loc, f32, high));
               })};
}

static Values lowerDynamicScale(DynamicScaleOp op, DynamicScaleOp::Adaptor in,
                                Emitter &e) {
  auto type = cast<RankedTensorType>(op.getInput().getType());
  int64_t columns = type.getDimSize(1);
  int64_t group = op.getGroup() ? op.getGroup() : columns;
  SmallVector<OpFoldResult> sizes{e.size(in.getInput(), 0),
                                  e.builder.getIndexAttr(columns / group)};
  AffineExpr t = e.builder.getAffineDimExpr(0),
             j = e.builder.getAffineDimExpr(1),
             k = e.builder.getAffineDimExpr(2);
  AffineMap inputMap =
      AffineMap::get(3, 0, {t, j * group + k}, e.builder.getContext());
  // The third loop runs inside a group: an operand without elements to say so.
  Value extent = tensor::EmptyOp::create(
      e.builder, e.loc, ArrayRef<int64_t>{group}, e.builder.getF32Type());
  Value limit = e.f32(op.getLimit().convertToDouble());
  Value maxima =
      e.reduce(3, {e.filled(0.0, sizes), {0, 1}},
               ValueRange{in.getInput(), extent}, {inputMap, e.mapOf(3, {2})},
               [](OpBuilder &b, Location loc, ValueRange v) -> Value {
                 Value magnitude = math::AbsFOp::create(b, loc, v[0]);
                 return arith::MaximumFOp::create(b, loc, magnitude, v[2]);
               });
  // A row of zeros must not divide by zero later on.
  Value least = e.f32(0x1p-126);
  return {e.mapSame(maxima, maxima,
                    [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
                      Value scale = arith::DivFOp::create(b, loc, v[0], limit);
                      return arith::MaximumFOp::create(b, loc, scale, least);
                    })};
}

static Values lowerScaledLinear(ScaledLinearOp op, ScaledLinearOp::Adaptor in,
                                Emitter &e) {
  auto inputType = cast<RankedTensorType>(op.getInput().getType());
  auto weightType = cast<RankedTensorType>(op.getWeight().getType());
  SmallVector<OpFoldResult> sizes{e.size(in.getInput(), 0),
                                  e.size(in.getWeight(), 0)};
  Value init = e.filled(0.0, sizes);
  if (in.getBias())
    init = e.map(init, {{in.getBias(), {1}}},
                 [](OpBuilder &, Location, ValueRange v) { return v[0]; });

  // Loops (t, n, k).
  Values operands{in.getInput(), in.getWeight(), in.getWeightScale()};
  SmallVector<AffineMap> maps{
      e.mapOf(3, {0, 2}), e.mapOf(3, {1, 2}),
      scaleMap(e, 3, in.getWeightScale(), weightType, {1, 2})};
  if (in.getWeightZero()) {
    operands.push_back(in.getWeightZero());
    maps.push_back(scaleMap(e, 3, in.getWeightZero(), weightType, {1, 2}));
  }
  if (in.getInputScale()) {
    operands.push_back(in.getInputScale());
    maps.push_back(scaleMap(e, 3, in.getInputScale(), inputType, {0, 2}));
  }
  Value result =
      e.reduce(3, {init, {0, 1}}, operands, maps,
               [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
                 Type f32 = b.getF32Type();
                 Value x = convertElement(b, loc, v[0], f32),
                       w = convertElement(b, loc, v[1], f32);
                 unsigned next = 3;
                 if (in.getWeightZero())
                   w = arith::SubFOp::create(
                       b, loc, w, convertElement(b, loc, v[next++], f32));
                 w = arith::MulFOp::create(b, loc, w, v[2]);
                 if (in.getInputScale())
                   x = arith::MulFOp::create(b, loc, x, v[next]);
                 return arith::AddFOp::create(
                     b, loc, v.back(), arith::MulFOp::create(b, loc, x, w));
               });
  return {e.convert(result, op.getType().getElementType())};
}

void llmc::populateQuantLowerings(RewritePatternSet &patterns) {
  addLowering<QuantizeOp, lowerQuantize>(patterns);
  addLowering<DynamicScaleOp, lowerDynamicScale>(patterns);
  addLowering<ScaledLinearOp, lowerScaledLinear>(patterns);
}
