#include "passes/host/AttentionShape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

static Value behindViews(Value value) {
  while (Operation *op = value.getDefiningOp())
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(op))
      value = op->getOperand(0);
    else
      break;
  return value;
}

std::optional<AttentionShape> AttentionShape::of(KernelOp kernel) {
  AttentionShape shape{};
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (auto attention = dyn_cast<PagedAttentionOp>(op)) {
      if (shape.op)
        return std::nullopt;
      shape.op = attention;
    } else if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp,
                    tensor::CastOp, tensor::DimOp, arith::ConstantOp,
                    arith::ConstantIndexOp>(op)) {
      return std::nullopt;
    }
  }
  Operation *yield = kernel.getBody().front().getTerminator();
  if (!shape.op || yield->getNumOperands() != 1 ||
      behindViews(yield->getOperand(0)) != shape.op.getResult())
    return std::nullopt;
  shape.query = behindViews(shape.op.getQuery());
  auto kv = dyn_cast<BlockArgument>(shape.op.getKv());
  auto isFloat32 = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getElementType().isF32();
  };
  auto isPlain = [&](Value value) {
    return !value || (isa<BlockArgument>(value) && isFloat32(value));
  };
  if (!isa<BlockArgument>(shape.query) || !kv || !isFloat32(shape.query) ||
      !isFloat32(shape.op.getResult()) || !isPlain(shape.op.getSinks()) ||
      !isPlain(shape.op.getAlibiSlopes()))
    return std::nullopt;
  KvType kvType = shape.op.getKv().getType();
  auto query = cast<RankedTensorType>(shape.op.getQuery().getType());
  shape.kvOperand = kv.getArgNumber();
  shape.kvHeads = kvType.getHeads();
  shape.group = query.getDimSize(1) / kvType.getHeads();
  shape.headDim = query.getDimSize(2);
  shape.valueDim = cast<RankedTensorType>(shape.op.getType()).getDimSize(2);
  shape.block = kvType.getBlock();
  return shape;
}
