// Conversions to and from 8-bit floats: verifiers.
#include "dialects/tile/TileDialect.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace llmc::tile;

/// Elements of a vector; 0 for a scalar.
static int64_t elementsOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() : 0;
}

static LogicalResult verifySameShape(Operation *op) {
  Type from = op->getOperand(0).getType(), to = op->getResult(0).getType();
  if (elementsOf(from) != elementsOf(to))
    return op->emitOpError("expected a result of the operand's shape, got ")
           << from << " to " << to;
  if (elementsOf(from) % 2)
    return op->emitOpError("expected a scalar or a vector of an even number of "
                           "elements, which convert in pairs, got ")
           << from;
  return success();
}

LogicalResult NarrowOp::verify() { return verifySameShape(*this); }

LogicalResult WidenOp::verify() { return verifySameShape(*this); }
