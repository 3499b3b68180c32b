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
static bool isSupported(Operation &op, Value input) {
  if (isa<LinearOp, ScaledLinearOp, PackedGluOp, GluOp, ActivationOp,
          tensor::CastOp, tensor::SplatOp>(op))
    return true;
  if (isa<tensor::CollapseShapeOp>(op))
    return op.getResult(0) == input ||
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

static RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

Value LinearShape::bias() const {
  if (auto scaled = dyn_cast<ScaledLinearOp>(linear))
    return scaled.getBias();
  return cast<LinearOp>(linear).getBias();
}

Value LinearShape::weightScale() const {
  auto scaled = dyn_cast<ScaledLinearOp>(linear);
  return scaled ? scaled.getWeightScale() : Value();
}

Value LinearShape::weightZero() const {
  auto scaled = dyn_cast<ScaledLinearOp>(linear);
  return scaled ? scaled.getWeightZero() : Value();
}

Value LinearShape::inputScale() const {
  auto scaled = dyn_cast<ScaledLinearOp>(linear);
  return scaled ? scaled.getInputScale() : Value();
}

// Operands that the panel kernel can multiply: float32 rows by a float weight,
// or rows of either kind by codes with a scale for each out feature, or for
// each of some groups of its in features.
static bool areOperandsSupported(const LinearShape &shape) {
  Value weight = shape.weight(), scale = shape.weightScale();
  Type input = tensorOf(shape.input()).getElementType(),
       element = tensorOf(weight).getElementType();
  if (!isArgumentView(shape.input()) || !isArgument(weight) ||
      !isArgument(shape.bias()))
    return false;
  if (!scale)
    return input.isF32() && isa<FloatType>(element);
  if (!isArgument(scale) || !isArgument(shape.inputScale()) ||
      !(isa<Float8E4M3FNType>(element) || element.isSignlessInteger(8) ||
        element.isSignlessInteger(4)))
    return false;
  RankedTensorType scaleType = tensorOf(scale);
  if (scaleType.getRank() != 2 || !scaleType.getElementType().isF32() ||
      scaleType.getDimSize(0) != shape.productColumns())
    return false;
  if (Value zero = shape.weightZero())
    if (!isArgument(zero) ||
        tensorOf(zero).getShape() != scaleType.getShape() ||
        !tensorOf(zero).getElementType().isSignlessInteger(8))
      return false;
  // Two 4-bit codes share a byte.
  if (element.isSignlessInteger(4) && shape.scaleGroup() % 2)
    return false;
  Value inputScale = shape.inputScale();
  if (!inputScale)
    return input.isF32();
  ArrayRef<int64_t> covered = tensorOf(inputScale).getShape();
  return isa<Float8E4M3FNType>(input) &&
         (covered.empty() || covered.back() == 1);
}

std::optional<LinearShape> LinearShape::of(KernelOp kernel, int64_t panelRows,
                                           int64_t lanes) {
  LinearShape shape{nullptr, {}, panelRows, lanes};
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (isa<LinearOp, ScaledLinearOp>(op)) {
      if (shape.linear)
        return std::nullopt;
      shape.linear = &op;
    } else if (auto glu = dyn_cast<PackedGluOp>(op)) {
      if (shape.glu)
        return std::nullopt;
      shape.glu = glu;
    }
  }
  if (!shape.linear || !areOperandsSupported(shape))
    return std::nullopt;
  for (Operation &op : kernel.getBody().front().without_terminator())
    if (!isSupported(op, shape.input()))
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

int64_t LinearShape::depth() const {
  return tensorOf(input()).getShape().back();
}

int64_t LinearShape::productColumns() const {
  return tensorOf(weight()).getDimSize(0);
}

int64_t LinearShape::scaleGroup() const {
  return depth() / tensorOf(weightScale()).getDimSize(1);
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
