// Row and elementwise kernels: verifiers.
#include "dialects/tile/TileAssembly.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace llmc::tile;

LogicalResult ForEachOp::verify() {
  if (getVector() < 1)
    return emitOpError("expected a positive vector, got ")
           << int32_t(getVector());
  if (getScope() == Scope::Role)
    return emitOpError(
        "expected scope warp, warpgroup or block (inside a role, "
        "block means the role), got role");
  SmallVector<Type> want = {IntegerType::get(getContext(), 32)};
  llvm::append_range(want, getInit().getTypes());
  if (getBody().getArgumentTypes() != TypeRange(want))
    return emitOpError("expected a body that takes the i32 element index and "
                       "the carried values (")
           << want << "), got (" << getBody().getArgumentTypes() << ")";
  if (getInit().getTypes() != getResultTypes())
    return emitOpError("expected results of the types of init (")
           << getInit().getTypes() << "), got (" << getResultTypes() << ")";
  return success();
}

LogicalResult ForEachOp::verifyRegions() {
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (yield.getOperandTypes() != getResultTypes())
    return emitOpError("expected a yield of the types of the results (")
           << getResultTypes() << "), got (" << yield.getOperandTypes() << ")";
  return success();
}

LogicalResult ReduceOp::verify() {
  bool argmax = getKind() == ReduceKind::Argmax;
  if (getValues().size() != (argmax ? 2 : 1))
    return emitOpError("expected ")
           << (argmax ? 2 : 1) << " value(s) for kind "
           << stringifyReduceKind(getKind()) << ", got " << getValues().size();
  if (getValues().getTypes() != getResults().getTypes())
    return emitOpError("expected results of the types of the values (")
           << getValues().getTypes() << "), got (" << getResults().getTypes()
           << ")";
  Type type = getValues().front().getType();
  if (!type.isF32() && (argmax || !type.isInteger(32)))
    return emitOpError("expected a value of type f32")
           << (argmax ? "" : " or i32") << ", got " << type;
  if (argmax && !getValues()[1].getType().isInteger(32))
    return emitOpError("expected an i32 as the index of argmax, got ")
           << getValues()[1].getType();
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
      return op->emitOpError("expected at most 16 bytes in one access to a "
                             "swizzled tile, got ")
             << value;
  }
  if (element != held)
    return op->emitOpError("expected a value of the element type of ")
           << memory << ", got " << value;
  if (vector && vector.getRank() != 1)
    return op->emitOpError("expected a vector of one dimension, got ") << value;
  if (indices.size() != rank)
    return op->emitOpError("expected ") << rank << " index(es) into " << memory
                                        << ", got " << indices.size();
  return success();
}

LogicalResult LoadOp::verify() {
  return verifyAccess(*this, getMemory().getType(), getResult().getType(),
                      getIndices());
}

LogicalResult StoreOp::verify() {
  if (auto ptr = dyn_cast<PtrType>(getMemory().getType()))
    if (ptr.getConstant())
      return emitOpError("expected a pointer that may be written, got ") << ptr;
  return verifyAccess(*this, getMemory().getType(), getValue().getType(),
                      getIndices());
}

LogicalResult UniformOp::verify() {
  auto role = (*this)->getParentOfType<RoleOp>();
  if (role && role.getElected())
    return emitOpError("expected a role that is not elected: all lanes of a "
                       "warp take part");
  return success();
}

LogicalResult AtomicOp::verify() {
  Type type = getMemory().getType().getElementType();
  if (!type.isF32() && !type.isInteger(32) && !type.isInteger(64))
    return emitOpError("expected memory of f32, i32 or i64, got ") << type;
  if (getValue().getType() != type || getOld().getType() != type)
    return emitOpError("expected a value and an old value of type ")
           << type << ", got " << getValue().getType() << " and "
           << getOld().getType();
  if (type.isF32() && getKind() == AtomicKind::Max)
    return emitOpError("expected i32 or i64 for a maximum, got ") << type;
  return success();
}
