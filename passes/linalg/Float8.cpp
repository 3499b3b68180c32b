#include "passes/linalg/Float8.h"

#include "passes/linalg/Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

// An f8E4M3FN pattern moved to the top of an f32 reads as the value times
// 2^-120, denormals included: 120 is the difference of the exponent biases.
static constexpr int kShift = 20;

bool llmc::isFloat8(Type element) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(element);
}

static Value intConstant(OpBuilder &b, Location loc, Type type, int64_t value) {
  TypedAttr attr = b.getIntegerAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vector, attr);
  return arith::ConstantOp::create(b, loc, attr);
}

// `element` in the shape of `type`: a scalar or a vector.
static Type shapedLike(Type type, Type element) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(vector.clone(element)) : element;
}

Value llmc::extendFloat8(OpBuilder &b, Location loc, Value value) {
  Type from = value.getType();
  auto typeOf = [&](Type element) { return shapedLike(from, element); };
  Type i8 = typeOf(b.getI8Type()), i16 = typeOf(b.getI16Type()),
       i32 = typeOf(b.getI32Type()), f32 = typeOf(b.getF32Type());
  Value bits = arith::BitcastOp::create(b, loc, i8, value);
  if (isa<Float8E5M2Type>(getElementTypeOrSelf(from))) {
    Value wide = arith::ExtUIOp::create(b, loc, i16, bits);
    wide = arith::ShLIOp::create(b, loc, wide, intConstant(b, loc, i16, 8));
    Value half = arith::BitcastOp::create(b, loc, typeOf(b.getF16Type()), wide);
    return arith::ExtFOp::create(b, loc, f32, half);
  }
  // The sign, extended, reaches the top; the bits below it are cleared.
  Value wide = arith::ExtSIOp::create(b, loc, i32, bits);
  Value shifted =
      arith::ShLIOp::create(b, loc, wide, intConstant(b, loc, i32, kShift));
  shifted = arith::AndIOp::create(
      b, loc, shifted,
      intConstant(b, loc, i32, int32_t(0x80000000u | 0x7fu << kShift)));
  Value scaled = arith::BitcastOp::create(b, loc, f32, shifted);
  Value result = arith::MulFOp::create(b, loc, scaled,
                                       floatConstant(b, loc, f32, 0x1p120));
  Value magnitude =
      arith::AndIOp::create(b, loc, bits, intConstant(b, loc, i8, 0x7f));
  Value isNan = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                      magnitude, intConstant(b, loc, i8, 0x7f));
  Value nan = floatConstant(b, loc, f32, std::nan(""));
  return arith::SelectOp::create(b, loc, isNan, nan, result);
}

Value llmc::truncateToFloat8(OpBuilder &b, Location loc, Value value,
                             Type type) {
  Type i8 = b.getI8Type(), i32 = b.getI32Type();
  bool e5m2 = isa<Float8E5M2Type>(type);
  Value bits, sign;
  int shift;
  if (e5m2) {
    Value half = arith::TruncFOp::create(b, loc, b.getF16Type(), value);
    bits = arith::ExtUIOp::create(
        b, loc, i32, arith::BitcastOp::create(b, loc, b.getI16Type(), half));
    sign = arith::ShRUIOp::create(b, loc, bits, intConstant(b, loc, i32, 8));
    bits =
        arith::AndIOp::create(b, loc, bits, intConstant(b, loc, i32, 0x7fff));
    shift = 8;
  } else {
    Value scaled = arith::MulFOp::create(
        b, loc, value,
        arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0x1p-120f)));
    bits = arith::BitcastOp::create(b, loc, i32, scaled);
    sign = arith::ShRUIOp::create(b, loc, bits, intConstant(b, loc, i32, 24));
    bits = arith::AndIOp::create(b, loc, bits,
                                 intConstant(b, loc, i32, 0x7fffffff));
    shift = kShift;
  }
  sign = arith::AndIOp::create(b, loc, sign, intConstant(b, loc, i32, 0x80));
  Value amount = intConstant(b, loc, i32, shift);
  Value odd = arith::AndIOp::create(
      b, loc, arith::ShRUIOp::create(b, loc, bits, amount),
      intConstant(b, loc, i32, 1));
  Value half = intConstant(b, loc, i32, (int64_t(1) << (shift - 1)) - 1);
  Value rounded = arith::AddIOp::create(
      b, loc, arith::AddIOp::create(b, loc, bits, half), odd);
  rounded = arith::ShRUIOp::create(b, loc, rounded, amount);
  rounded = arith::OrIOp::create(b, loc, rounded, sign);
  if (!e5m2) {
    // Too narrow for the bits by which f32 says so.
    Value isNan =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, value, value);
    rounded = arith::SelectOp::create(b, loc, isNan,
                                      intConstant(b, loc, i32, 0x7f), rounded);
  }
  return arith::BitcastOp::create(b, loc, type,
                                  arith::TruncIOp::create(b, loc, i8, rounded));
}
