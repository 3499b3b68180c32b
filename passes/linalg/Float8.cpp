#include "passes/linalg/Float8.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

// An f8E4M3FN pattern moved to the top of an f32 reads as the value times
// 2^-120, denormals included: 120 is the difference of the exponent biases.
static constexpr int kShift = 20;

bool llmc::isFloat8(Type element) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(element);
}

static Value intConstant(OpBuilder &b, Location loc, Type type, int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
}

Value llmc::extendFloat8(OpBuilder &b, Location loc, Value value) {
  Type i8 = b.getI8Type(), i16 = b.getI16Type(), i32 = b.getI32Type(),
       f32 = b.getF32Type();
  Value bits = arith::BitcastOp::create(b, loc, i8, value);
  if (isa<Float8E5M2Type>(value.getType())) {
    Value wide = arith::ExtUIOp::create(b, loc, i16, bits);
    wide = arith::ShLIOp::create(b, loc, wide, intConstant(b, loc, i16, 8));
    Value half = arith::BitcastOp::create(b, loc, b.getF16Type(), wide);
    return arith::ExtFOp::create(b, loc, f32, half);
  }
  Value wide = arith::ExtUIOp::create(b, loc, i32, bits);
  Value magnitude =
      arith::AndIOp::create(b, loc, wide, intConstant(b, loc, i32, 0x7f));
  Value sign =
      arith::AndIOp::create(b, loc, wide, intConstant(b, loc, i32, 0x80));
  sign = arith::ShLIOp::create(b, loc, sign, intConstant(b, loc, i32, 24));
  Value shifted = arith::ShLIOp::create(b, loc, magnitude,
                                        intConstant(b, loc, i32, kShift));
  Value scaled = arith::BitcastOp::create(
      b, loc, f32, arith::OrIOp::create(b, loc, shifted, sign));
  Value result = arith::MulFOp::create(
      b, loc, scaled,
      arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0x1p120f)));
  Value isNan =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, magnitude,
                            intConstant(b, loc, i32, 0x7f));
  Value nan = arith::ConstantOp::create(
      b, loc, b.getFloatAttr(f32, APFloat::getQNaN(APFloat::IEEEsingle())));
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
  return arith::BitcastOp::create(b, loc, type,
                                  arith::TruncIOp::create(b, loc, i8, rounded));
}
