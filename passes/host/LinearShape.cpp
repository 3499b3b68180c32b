#include "passes/host/LinearShape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

// The kernel's argument behind a chain of reshapes that keep the rows.
static bool isArgumentView(Value value) {
  while (auto collapse = value.getDefiningOp<tensor::CollapseShapeOp>())
    value = collapse.getSrc();
  return isa<BlockArgument>(value);
}

static bool isArgument(Value value) {
  return !value || isa<BlockArgument>(value);
}

// Can LinearEpilogue evaluate the op?
static bool isSupported(Operation &op, LinearOp linear) {
  if (isa<LinearOp, PackedGluOp, GluOp, ActivationOp, tensor::CastOp,
          tensor::SplatOp>(op))
    return true;
  if (isa<tensor::CollapseShapeOp>(op))
    return op.getResult(0) == linear.getInput() ||
           llvm::all_of(op.getUsers(), llvm::IsaPred<tensor::CollapseShapeOp>);
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    RankedTensorType from = broadcast.getInput().getType();
    return isa<BlockArgument>(broadcast.getInput()) && from.getRank() <= 2 &&
           broadcast.getType().getRank() == 2;
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return !isa<ShapedType>(constant.getType()) ||
           isa<SplatElementsAttr>(constant.getValue());
  if (isa<tensor::DimOp>(op))
    return true; // a size of some broadcast
  return OpTrait::hasElementwiseMappableTraits(&op);
}

std::optional<LinearShape> LinearShape::of(KernelOp kernel, int64_t panelRows,
                                           int64_t lanes) {
  LinearShape shape{{}, {}, panelRows, lanes};
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (auto linear = dyn_cast<LinearOp>(op)) {
      if (shape.linear)
        return std::nullopt;
      shape.linear = linear;
    } else if (auto glu = dyn_cast<PackedGluOp>(op)) {
      if (shape.glu)
        return std::nullopt;
      shape.glu = glu;
    }
  }
  LinearOp linear = shape.linear;
  if (!linear || !isArgumentView(linear.getInput()) ||
      !linear.getInput().getType().getElementType().isF32() ||
      !isArgument(linear.getWeight()) || !isArgument(linear.getBias()) ||
      !isa<FloatType>(cast<RankedTensorType>(linear.getWeight().getType())
                          .getElementType()))
    return std::nullopt;
  for (Operation &op : kernel.getBody().front().without_terminator())
    if (!isSupported(op, linear))
      return std::nullopt;
  for (Type type : kernel.getResultTypes())
    if (cast<RankedTensorType>(type).getRank() != 2)
      return std::nullopt;
  if (!shape.glu)
    return shape;
  if (shape.isSplitGlu())
    return shape.outputColumns() % panelRows ? std::nullopt
                                             : std::optional(shape);
  // Whole vectors of gates and of ups out of one panel.
  int64_t block = shape.glu.getBlock();
  if (panelRows % (2 * lanes) || panelRows % (2 * block))
    return std::nullopt;
  return shape;
}

// Accessors of ops are not const: copies of the handles are asked.
int64_t LinearShape::depth() const {
  LinearOp op = linear;
  return op.getInput().getType().getShape().back();
}

int64_t LinearShape::productColumns() const {
  LinearOp op = linear;
  return cast<RankedTensorType>(op.getWeight().getType()).getDimSize(0);
}

bool LinearShape::isSplitGlu() const {
  PackedGluOp op = glu;
  return op && op.getLayout() == GluLayout::Split;
}

int64_t LinearShape::columnTiles() const {
  return llvm::divideCeilSigned(productColumns(), panelRows) / panelsPerTile();
}

SmallVector<Value> LinearShape::panels(OpBuilder &b, Location loc,
                                       Value tile) const {
  if (!isSplitGlu())
    return {tile};
  Value half = arith::ConstantIndexOp::create(b, loc, columnTiles());
  return {tile, arith::AddIOp::create(b, loc, tile, half)};
}

LinearShape::Columns LinearShape::columns(OpBuilder &b, Location loc,
                                          Value tile) const {
  auto vectorsFrom = [&](Value panel, int64_t width, SmallVector<Value> &into) {
    Value base = arith::MulIOp::create(
        b, loc, panel, arith::ConstantIndexOp::create(b, loc, width));
    for (int64_t column = 0; column < width; column += lanes)
      into.push_back(arith::AddIOp::create(
          b, loc, base, arith::ConstantIndexOp::create(b, loc, column)));
  };
  Columns columns;
  for (Value panel : panels(b, loc, tile))
    vectorsFrom(panel, panelRows, columns.product);
  vectorsFrom(tile, glu && !isSplitGlu() ? panelRows / 2 : panelRows,
              columns.output);
  return columns;
}
