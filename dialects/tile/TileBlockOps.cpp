// Row and elementwise kernels: verifiers.
#include "dialects/tile/TileAssembly.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace llmc::tile;

LogicalResult ForEachOp::verify() {
  if (getVector() < 1)
    return emitOpError("vector must be positive");
  if (getScope() == Scope::Role)
    return emitOpError("scope role is what block means inside a role");
  if (getBody().getNumArguments() != getInit().size() + 1 ||
      !getBody().getArgument(0).getType().isInteger(32))
    return emitOpError("the body takes the i32 element index and the ")
           << getInit().size() << " carried value(s)";
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (TypeRange(getInit().getTypes()) != TypeRange(getResultTypes()) ||
      TypeRange(yield.getOperandTypes()) != TypeRange(getResultTypes()) ||
      TypeRange(getBody().getArgumentTypes()).drop_front() !=
          TypeRange(getResultTypes()))
    return emitOpError("init, body arguments, yield and results have the same "
                       "types");
  return success();
}

LogicalResult ReduceOp::verify() {
  bool argmax = getKind() == ReduceKind::Argmax;
  if (getValues().size() != (argmax ? 2 : 1))
    return emitOpError("of kind ")
           << stringifyReduceKind(getKind()) << " takes " << (argmax ? 2 : 1)
           << " value(s), got " << getValues().size();
  if (getValues().getTypes() != getResults().getTypes())
    return emitOpError("returns the types it takes");
  Type type = getValues().front().getType();
  if (!type.isF32() && (argmax || !type.isInteger(32)))
    return emitOpError("combines f32")
           << (argmax ? "" : " or i32") << ", got " << type;
  if (argmax && !getValues()[1].getType().isInteger(32))
    return emitOpError("the index of argmax is i32");
  return success();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static LogicalResult verifyAccess(Operation *op, Type memory, Type value,
                                  ValueRange indices) {
  auto vector = dyn_cast<VectorType>(value);
  Type element = vector ? vector.getElementType() : value;
  int64_t count = vector ? vector.getNumElements() : 1;
  Type held;
  size_t rank = 1;
  if (auto ptr = dyn_cast<PtrType>(memory)) {
    held = ptr.getElementType();
  } else {
    auto smem = cast<SmemType>(memory);
    held = smem.getElementType();
    rank = smem.getShape().size();
    if (smem.getSwizzle() && count * smem.getElementBytes() > 16)
      return op->emitOpError("a swizzled tile is accessed in at most 16 bytes, "
                             "got ")
             << value;
  }
  if (element != held)
    return op->emitOpError("moves ") << value << " in memory of " << held;
  if (vector && vector.getRank() != 1)
    return op->emitOpError("moves vectors of one dimension, got ") << value;
  if (indices.size() != rank)
    return op->emitOpError("has ")
           << indices.size() << " index(es) for " << memory;
  return success();
}

LogicalResult LoadOp::verify() {
  return verifyAccess(*this, getMemory().getType(), getResult().getType(),
                      getIndices());
}

LogicalResult StoreOp::verify() {
  if (auto ptr = dyn_cast<PtrType>(getMemory().getType()))
    if (ptr.getConstant())
      return emitOpError("writes constant memory");
  return verifyAccess(*this, getMemory().getType(), getValue().getType(),
                      getIndices());
}

LogicalResult AtomicOp::verify() {
  Type type = getValue().getType();
  if (type != getMemory().getType().getElementType() ||
      type != getOld().getType())
    return emitOpError("updates ") << getMemory().getType() << " with " << type
                                   << ", giving " << getOld().getType();
  if (!type.isF32() && !type.isInteger(32) && !type.isInteger(64))
    return emitOpError("updates f32, i32 or i64, got ") << type;
  if (type.isF32() && getKind() == AtomicKind::Max)
    return emitOpError("has no floating-point maximum");
  return success();
}
