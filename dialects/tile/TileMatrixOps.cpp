// Tensor-core multiplies: verifiers.
#include "dialects/tile/TileDialect.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace llmc::tile;

static ArrayRef<int64_t> shapeOf(Type type) {
  if (auto acc = dyn_cast<AccType>(type))
    return acc.getShape();
  if (auto frag = dyn_cast<FragType>(type))
    return frag.getShape();
  return cast<SmemType>(type).getShape();
}

/// A [m, k] times B ([n, k], or [k, n] transposed) gives [m, n].
static LogicalResult verifyProduct(Operation *op, Type a, Type elementA,
                                   SmemType b, Type acc, bool transposeB) {
  ArrayRef<int64_t> sa = shapeOf(a), sb = b.getShape(), sc = shapeOf(acc);
  if (sa.size() != 2 || sb.size() != 2)
    return op->emitOpError("expected operands of two dimensions, got ")
           << a << " and " << b;
  int64_t kb = transposeB ? sb[0] : sb[1], n = transposeB ? sb[1] : sb[0];
  if (sa[0] != sc[0] || n != sc[1])
    return op->emitOpError("expected an accumulator of ")
           << sa[0] << " x " << n << ", the rows of A and columns of B, got "
           << sc[0] << " x " << sc[1];
  if (sa[1] != kb)
    return op->emitOpError("expected one K in A and B, got ")
           << sa[1] << " and " << kb;
  if (elementA != b.getElementType())
    return op->emitOpError("expected one element type in A and B, got ")
           << elementA << " and " << b.getElementType();
  // Both operands being whole swizzle spans or operand_a fragments, K is whole
  // 32-byte steps.
  if (transposeB && elementA.getIntOrFloatBitWidth() != 16)
    return op->emitOpError("expected 16-bit elements for transpose_b, got ")
           << elementA;
  return success();
}

LogicalResult WgmmaOp::verify() {
  Type a = getA().getType();
  SmemType b = getB().getType();
  if (shapeOf(getAcc().getType()) != getResult().getType().getShape())
    return emitOpError("expected a result of the accumulator's shape, ")
           << getAcc().getType() << ", got " << getResult().getType();
  if (b.getSwizzle() == 0)
    return emitOpError("expected a swizzled B, got ") << b;
  if (auto frag = dyn_cast<FragType>(getAcc().getType()))
    if (frag.getLayout() != Layout::Accumulator ||
        !frag.getElementType().isF32())
      return emitOpError("expected an f32 fragment of layout accumulator to "
                         "add to, got ")
             << frag;
  Type element;
  if (auto smem = dyn_cast<SmemType>(a)) {
    element = smem.getElementType();
    if (smem.getSwizzle() == 0)
      return emitOpError("expected a swizzled A, got ") << smem;
    if (smem.getShape()[0] != 64)
      return emitOpError("expected an A of 64 rows, those of a warpgroup, got ")
             << smem.getShape()[0]
             << "; take the rows of one with tile.warpgroup_slice";
  } else {
    auto frag = cast<FragType>(a);
    element = frag.getElementType();
    if (frag.getLayout() != Layout::OperandA)
      return emitOpError("expected an A of layout operand_a, got ") << frag;
  }
  return verifyProduct(*this, a, element, b, getResult().getType(),
                       getTransposeB());
}

LogicalResult WgmmaWaitOp::verify() {
  if (getAccs().size() != getResults().size())
    return emitOpError("expected one result for each of ")
           << getAccs().size() << " accumulator(s), got "
           << getResults().size();
  for (auto [in, out] :
       llvm::zip(getAccs().getTypes(), getResults().getTypes())) {
    auto frag = dyn_cast<FragType>(out);
    if (shapeOf(in) != shapeOf(out) ||
        (frag && (frag.getLayout() != Layout::Accumulator ||
                  !frag.getElementType().isF32())))
      return emitOpError("expected a result that is ")
             << in << " or the f32 fragment of its shape, got " << out;
  }
  return success();
}

LogicalResult MmaOp::verify() {
  if (getA().empty() || getA().size() != getAcc().size() ||
      getA().size() != getResults().size())
    return emitOpError("expected one accumulator and one result for each of "
                       "one A or more, got ")
           << getA().size() << " A, " << getAcc().size()
           << " accumulator(s) and " << getResults().size() << " result(s)";
  for (auto [aType, accType, result] : llvm::zip(
           getA().getTypes(), getAcc().getTypes(), getResults().getTypes())) {
    auto a = cast<FragType>(aType), acc = cast<FragType>(accType);
    if (acc != result)
      return emitOpError("expected a result of the accumulator's type, ")
             << acc << ", got " << result;
    if (a.getLayout() != Layout::OperandA ||
        acc.getLayout() != Layout::Accumulator || !acc.getElementType().isF32())
      return emitOpError("expected an A of layout operand_a and an f32 "
                         "accumulator, got ")
             << a << " and " << acc;
    if (failed(verifyProduct(*this, a, a.getElementType(), getB().getType(),
                             acc, getTransposeB())))
      return failure();
  }
  return success();
}

LogicalResult LoadMatrixOp::verify() {
  SmemType tile = getTile().getType();
  FragType result = getResult().getType();
  if (tile.getShape() != result.getShape() ||
      tile.getElementType() != result.getElementType() ||
      result.getLayout() != Layout::OperandA)
    return emitOpError("expected an operand_a fragment of the shape and "
                       "element type of ")
           << tile << ", got " << result;
  return success();
}
