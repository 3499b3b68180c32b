#include "passes/linalg/Emitter.h"

#include "passes/linalg/Float8.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

Value llmc::floatConstant(OpBuilder &builder, Location loc, Type type,
                          double value) {
  auto element = cast<FloatType>(getElementTypeOrSelf(type));
  TypedAttr attr = builder.getFloatAttr(element, value);
  if (auto vector = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vector, attr);
  return arith::ConstantOp::create(builder, loc, attr);
}

Value llmc::convertElement(OpBuilder &builder, Location loc, Value value,
                           Type type) {
  Type from = value.getType();
  if (from == type)
    return value;
  Type fromElement = getElementTypeOrSelf(from),
       toElement = getElementTypeOrSelf(type);
  if (isa<FloatType>(fromElement) && isa<FloatType>(toElement)) {
    if (isFloat8(fromElement))
      return convertElement(builder, loc, extendFloat8(builder, loc, value),
                            type);
    if (isFloat8(toElement))
      return truncateToFloat8(
          builder, loc,
          convertElement(builder, loc, value, builder.getF32Type()), toElement);
    unsigned fromBits = fromElement.getIntOrFloatBitWidth();
    unsigned toBits = toElement.getIntOrFloatBitWidth();
    if (fromBits < toBits)
      return arith::ExtFOp::create(builder, loc, type, value);
    if (fromBits > toBits)
      return arith::TruncFOp::create(builder, loc, type, value);
    // Between f16 and bf16.
    return arith::TruncFOp::create(
        builder, loc, type,
        convertElement(builder, loc, value, builder.getF32Type()));
  }
  if (isa<FloatType>(toElement))
    return arith::SIToFPOp::create(builder, loc, type, value);
  if (isa<FloatType>(fromElement))
    return arith::FPToSIOp::create(builder, loc, type, value);
  return fromElement.getIntOrFloatBitWidth() < toElement.getIntOrFloatBitWidth()
             ? arith::ExtSIOp::create(builder, loc, type, value).getResult()
             : arith::TruncIOp::create(builder, loc, type, value).getResult();
}

// 1 / (1 + exp(-scale * x))
static Value emitSigmoid(OpBuilder &b, Location loc, Value x, double scale) {
  Type type = x.getType();
  Value negated =
      arith::MulFOp::create(b, loc, x, floatConstant(b, loc, type, -scale));
  Value one = floatConstant(b, loc, type, 1.0);
  Value below =
      arith::AddFOp::create(b, loc, one, math::ExpOp::create(b, loc, negated));
  return arith::DivFOp::create(b, loc, one, below);
}

Value llmc::emitActivation(OpBuilder &b, Location loc, ActivationKind kind,
                           Value x) {
  Type type = x.getType();
  auto constant = [&](double value) {
    return floatConstant(b, loc, type, value);
  };
  auto mul = [&](Value l, Value r) -> Value {
    return arith::MulFOp::create(b, loc, l, r);
  };
  auto add = [&](Value l, Value r) -> Value {
    return arith::AddFOp::create(b, loc, l, r);
  };
  switch (kind) {
  case ActivationKind::Identity:
    return x;
  case ActivationKind::Relu:
    return arith::MaximumFOp::create(b, loc, x, constant(0.0));
  case ActivationKind::Relu2: {
    Value relu = arith::MaximumFOp::create(b, loc, x, constant(0.0));
    return mul(relu, relu);
  }
  case ActivationKind::Silu:
    return mul(x, emitSigmoid(b, loc, x, 1.0));
  case ActivationKind::Gelu: {
    Value erf =
        math::ErfOp::create(b, loc, mul(x, constant(0.70710678118654752)));
    return mul(mul(x, constant(0.5)), add(erf, constant(1.0)));
  }
  case ActivationKind::GeluTanh: {
    // sqrt(2/pi) * (x + 0.044715 x^3)
    Value inner = mul(mul(x, constant(0.79788456080286536)),
                      add(mul(mul(x, x), constant(0.044715)), constant(1.0)));
    Value tanh = math::TanhOp::create(b, loc, inner);
    return mul(mul(x, constant(0.5)), add(tanh, constant(1.0)));
  }
  case ActivationKind::GeluQuick:
    return mul(x, emitSigmoid(b, loc, x, 1.702));
  case ActivationKind::Sigmoid:
    return emitSigmoid(b, loc, x, 1.0);
  case ActivationKind::Tanh:
    return math::TanhOp::create(b, loc, x);
  }
  llvm_unreachable("unknown activation");
}

Value Emitter::index(int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

Value Emitter::f32(double value) {
  return floatConstant(builder, loc, builder.getF32Type(), value);
}

OpFoldResult Emitter::size(Value tensor, int64_t dim) {
  return tensor::getMixedSize(builder, loc, tensor, dim);
}

SmallVector<OpFoldResult> Emitter::sizes(Value tensor) {
  return tensor::getMixedSizes(builder, loc, tensor);
}

Value Emitter::empty(RankedTensorType type, ArrayRef<OpFoldResult> sizes) {
  SmallVector<Value> dynamic;
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (type.isDynamicDim(i))
      dynamic.push_back(
          getValueOrCreateConstantIndexOp(builder, loc, sizes[i]));
  return tensor::EmptyOp::create(builder, loc, type, dynamic);
}

Value Emitter::empty(Type element, ArrayRef<OpFoldResult> sizes) {
  return tensor::EmptyOp::create(builder, loc, sizes, element);
}

Value Emitter::filled(double value, ArrayRef<OpFoldResult> sizes) {
  Value init = empty(builder.getF32Type(), sizes);
  return linalg::FillOp::create(builder, loc, f32(value), init).getResult(0);
}

AffineMap Emitter::mapOf(int64_t loops, ArrayRef<int64_t> dims) {
  SmallVector<AffineExpr> results;
  for (int64_t dim : dims)
    results.push_back(dim == kFirst ? builder.getAffineConstantExpr(0)
                                    : builder.getAffineDimExpr(dim));
  return AffineMap::get(loops, 0, results, builder.getContext());
}

Value Emitter::reduce(int64_t loops, Operand init, ValueRange operands,
                      ArrayRef<AffineMap> maps, ElementFn fn) {
  SmallVector<utils::IteratorType> iterators(loops,
                                             utils::IteratorType::reduction);
  for (int64_t dim : init.dims)
    if (dim != kFirst)
      iterators[dim] = utils::IteratorType::parallel;
  SmallVector<AffineMap> all(maps);
  all.push_back(mapOf(loops, init.dims));

  auto body = [&](OpBuilder &b, Location loc, ValueRange elements) {
    SmallVector<Value> wide;
    for (Value element : elements)
      wide.push_back(isa<FloatType>(element.getType())
                         ? convertElement(b, loc, element, b.getF32Type())
                         : element);
    Value result = fn(b, loc, wide);
    result = convertElement(b, loc, result, elements.back().getType());
    linalg::YieldOp::create(b, loc, result);
  };
  return linalg::GenericOp::create(builder, loc, init.tensor.getType(),
                                   operands, init.tensor, all, iterators, body)
      .getResult(0);
}

Value Emitter::reduce(int64_t loops, Operand init, ArrayRef<Operand> operands,
                      ElementFn fn) {
  SmallVector<Value> tensors;
  SmallVector<AffineMap> maps;
  for (const Operand &operand : operands) {
    tensors.push_back(operand.tensor);
    maps.push_back(mapOf(loops, operand.dims));
  }
  return reduce(loops, init, tensors, maps, fn);
}

Value Emitter::map(Value init, ArrayRef<Operand> operands, ElementFn fn) {
  int64_t rank = cast<RankedTensorType>(init.getType()).getRank();
  return reduce(rank, {init, llvm::to_vector(llvm::seq<int64_t>(0, rank))},
                operands, fn);
}

Value Emitter::mapSame(Value init, ValueRange tensors, ElementFn fn) {
  int64_t rank = cast<RankedTensorType>(init.getType()).getRank();
  SmallVector<Operand> operands;
  for (Value tensor : tensors)
    operands.push_back({tensor, llvm::to_vector(llvm::seq<int64_t>(0, rank))});
  return map(init, operands, fn);
}

Value Emitter::slice(Value tensor, int64_t dim, int64_t offset, int64_t size,
                     int64_t stride) {
  SmallVector<OpFoldResult> extents = sizes(tensor);
  SmallVector<OpFoldResult> offsets(extents.size(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(extents.size(), builder.getIndexAttr(1));
  extents[dim] = builder.getIndexAttr(size);
  offsets[dim] = builder.getIndexAttr(offset);
  strides[dim] = builder.getIndexAttr(stride);
  return tensor::ExtractSliceOp::create(builder, loc, tensor, offsets, extents,
                                        strides);
}

Value Emitter::insertSlice(Value source, Value into, int64_t dim,
                           int64_t offset, int64_t stride) {
  SmallVector<OpFoldResult> extents = sizes(source);
  SmallVector<OpFoldResult> offsets(extents.size(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(extents.size(), builder.getIndexAttr(1));
  offsets[dim] = builder.getIndexAttr(offset);
  strides[dim] = builder.getIndexAttr(stride);
  return tensor::InsertSliceOp::create(builder, loc, source, into, offsets,
                                       extents, strides);
}

Value Emitter::subtensor(Value tensor, Value i) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<OpFoldResult> extents = sizes(tensor);
  SmallVector<OpFoldResult> offsets(extents.size(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(extents.size(), builder.getIndexAttr(1));
  extents[0] = builder.getIndexAttr(1);
  offsets[0] = i;
  auto part = RankedTensorType::get(type.getShape().drop_front(),
                                    type.getElementType());
  return tensor::ExtractSliceOp::create(builder, loc, part, tensor, offsets,
                                        extents, strides);
}

Value Emitter::convert(Value tensor, Type element) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getElementType() == element)
    return tensor;
  Value init = empty(type.clone(element), sizes(tensor));
  return mapSame(init, tensor,
                 [](OpBuilder &, Location, ValueRange in) { return in[0]; });
}

Value llmc::emitLinear(Emitter &e, Value input, Value weight, Value bias) {
  SmallVector<OpFoldResult> sizes{e.size(input, 0), e.size(weight, 0)};
  Value init;
  if (bias)
    init = e.map(e.empty(e.builder.getF32Type(), sizes), {{bias, {1}}},
                 [](OpBuilder &, Location, ValueRange in) { return in[0]; });
  else
    init = e.filled(0.0, sizes);
  return e.reduce(3, {init, {0, 1}},
                  ArrayRef<Emitter::Operand>{{input, {0, 2}}, {weight, {1, 2}}},
                  [](OpBuilder &b, Location loc, ValueRange in) -> Value {
                    Value product = arith::MulFOp::create(
                        b, loc, in[0],
                        convertElement(b, loc, in[1], b.getF32Type()));
                    return arith::AddFOp::create(b, loc, in[2], product);
                  });
}

std::pair<Value, Value> llmc::unpackGlu(Emitter &e, Value packed,
                                        GluLayout layout, int64_t block) {
  auto type = cast<RankedTensorType>(packed.getType());
  int64_t last = type.getRank() - 1, half = type.getDimSize(last) / 2;
  if (layout == GluLayout::Split)
    return {e.slice(packed, last, 0, half), e.slice(packed, last, half, half)};
  if (block == 1)
    return {e.slice(packed, last, 0, half, 2),
            e.slice(packed, last, 1, half, 2)};
  // Element i of a half is i % block of block i / block; gates come first.
  auto part = [&](int64_t offset) {
    SmallVector<OpFoldResult> sizes = e.sizes(packed);
    sizes[last] = e.builder.getIndexAttr(half);
    Value init = e.empty(type.getElementType(), sizes);
    return e.map(init, {},
                 [&](OpBuilder &b, Location loc, ValueRange) -> Value {
                   SmallVector<Value> at;
                   for (int64_t i = 0; i <= last; ++i)
                     at.push_back(linalg::IndexOp::create(b, loc, i));
                   AffineExpr i = b.getAffineDimExpr(0);
                   AffineExpr from =
                       i.floorDiv(block) * (2 * block) + i % block + offset;
                   at[last] = affine::AffineApplyOp::create(
                       b, loc, AffineMap::get(1, 0, from), at[last]);
                   return tensor::ExtractOp::create(b, loc, packed, at);
                 });
  };
  return {part(0), part(block)};
}

Value llmc::emitGlu(Emitter &e, ActivationKind kind, Value gate, Value up,
                    Value init) {
  return e.mapSame(init, {gate, up},
                   [&](OpBuilder &b, Location loc, ValueRange in) -> Value {
                     return arith::MulFOp::create(
                         b, loc, emitActivation(b, loc, kind, in[0]), in[1]);
                   });
}
