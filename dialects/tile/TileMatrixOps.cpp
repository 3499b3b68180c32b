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
    return op->emitOpError("multiplies tiles of two dimensions");
  int64_t kb = transposeB ? sb[0] : sb[1], n = transposeB ? sb[1] : sb[0];
  if (sa[0] != sc[0] || n != sc[1])
    return op->emitOpError("multiplies ")
           << sa[0] << " rows by " << n << " columns into " << sc[0] << " x "
           << sc[1];
  if (sa[1] != kb)
    return op->emitOpError("A has K = ") << sa[1] << ", B has K = " << kb;
  if (elementA != b.getElementType())
    return op->emitOpError("A holds ")
           << elementA << ", B " << b.getElementType();
  int64_t step = 256 / elementA.getIntOrFloatBitWidth();
  if (kb % step)
    return op->emitOpError("K must be a multiple of ")
           << step << " for " << elementA << ", got " << kb;
  if (transposeB && elementA.getIntOrFloatBitWidth() != 16)
    return op->emitOpError("only 16-bit operands have an MN-major form, got ")
           << elementA;
  return success();
}

LogicalResult WgmmaOp::verify() {
  Type a = getA().getType();
  SmemType b = getB().getType();
  if (shapeOf(getAcc().getType()) != getResult().getType().getShape())
    return emitOpError("accumulator and result differ in shape");
  if (b.getSwizzle() == 0)
    return emitOpError("operands in shared memory are swizzled");
  if (auto frag = dyn_cast<FragType>(getAcc().getType()))
    if (frag.getLayout() != Layout::Accumulator ||
        !frag.getElementType().isF32())
      return emitOpError("adds to an f32 fragment of layout accumulator, got ")
             << frag;
  Type element;
  if (auto smem = dyn_cast<SmemType>(a)) {
    element = smem.getElementType();
    if (smem.getSwizzle() == 0)
      return emitOpError("operands in shared memory are swizzled");
    if (smem.getShape()[0] != 64)
      return emitOpError("A has 64 rows per warpgroup, got ")
             << smem.getShape()[0]
             << "; take the rows of one with tile.warpgroup_slice";
  } else {
    auto frag = cast<FragType>(a);
    element = frag.getElementType();
    if (frag.getLayout() != Layout::OperandA)
      return emitOpError("A in registers has layout operand_a, got ") << frag;
  }
  return verifyProduct(*this, a, element, b, getResult().getType(),
                       getTransposeB());
}

LogicalResult WgmmaWaitOp::verify() {
  if (getAccs().size() != getResults().size())
    return emitOpError("returns what it takes: ")
           << getAccs().size() << " accumulator(s) in, " << getResults().size()
           << " out";
  for (auto [in, out] :
       llvm::zip(getAccs().getTypes(), getResults().getTypes())) {
    auto frag = dyn_cast<FragType>(out);
    if (shapeOf(in) != shapeOf(out) ||
        (frag && (frag.getLayout() != Layout::Accumulator ||
                  !frag.getElementType().isF32())))
      return emitOpError("cannot turn ") << in << " into " << out;
  }
  return success();
}

LogicalResult MmaOp::verify() {
  FragType a = getA().getType(), acc = getAcc().getType();
  if (acc != getResult().getType())
    return emitOpError("accumulator and result differ in type");
  if (a.getLayout() != Layout::OperandA ||
      acc.getLayout() != Layout::Accumulator || !acc.getElementType().isF32())
    return emitOpError("takes an operand_a fragment and an f32 accumulator");
  return verifyProduct(*this, a, a.getElementType(), getB().getType(), acc,
                       getTransposeB());
}

LogicalResult LoadMatrixOp::verify() {
  SmemType tile = getTile().getType();
  FragType result = getResult().getType();
  if (tile.getShape() != result.getShape() ||
      tile.getElementType() != result.getElementType() ||
      result.getLayout() != Layout::OperandA)
    return emitOpError("reads ")
           << tile << " into an operand_a fragment of its shape, got "
           << result;
  return success();
}
