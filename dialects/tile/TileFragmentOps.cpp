// Work on fragments: verifiers.
#include "dialects/tile/TileDialect.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace llmc::tile;

LogicalResult FillOp::verify() {
  if (getValue().getType() != getResult().getType().getElementType())
    return emitOpError("expected a scalar of the element type of ")
           << getResult().getType() << ", got " << getValue().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// tile.map and tile.epilogue
//===----------------------------------------------------------------------===//

/// The elementwise body shared by both ops. Gives, in `width`, how many
/// neighbours it sees at once.
static LogicalResult verifyBody(Operation *op, TypeRange fragments, Value row,
                                Value column, Region &body, int64_t &width) {
  if (fragments.empty())
    return op->emitOpError("expected one fragment or more, got none");
  if (bool(row) != bool(column))
    return op->emitOpError("expected a row and a column, got only a ")
           << (row ? "row" : "column");
  FragType matrix = cast<FragType>(fragments.front());
  for (Type type : fragments)
    if (cast<FragType>(type).getLayout() != Layout::Rows)
      matrix = cast<FragType>(type);
  if (body.getNumArguments() != fragments.size() + 2)
    return op->emitOpError("expected a body that takes one value per fragment, "
                           "the row and the column: ")
           << fragments.size() + 2 << " arguments, got "
           << body.getNumArguments();
  width = 0;
  for (auto [i, type] : llvm::enumerate(fragments)) {
    auto frag = cast<FragType>(type);
    Type element = frag.getElementType(), arg = body.getArgument(i).getType();
    bool perRow =
        frag.getLayout() == Layout::Rows && matrix.getLayout() != Layout::Rows;
    if (!perRow && (frag.getShape() != matrix.getShape() ||
                    frag.getLayout() != matrix.getLayout()))
      return op->emitOpError("expected fragments of one shape and layout "
                             "(or rows beside them), got ")
             << matrix << " and " << frag;
    if (frag.getLayout() == Layout::OperandA)
      return op->emitOpError("expected fragments of layout accumulator, "
                             "half_rows or rows, got ")
             << frag;
    if (perRow && frag.getShape()[0] != matrix.getShape()[0])
      return op->emitOpError("expected a rows fragment of as many rows as ")
             << matrix << ", got " << frag;
    if (arg == element) {
      if (!perRow && width == 2)
        return op->emitOpError("expected all arguments of the body to be "
                               "vectors of two, as earlier ones are, got ")
               << arg << " as #" << i;
      width = perRow ? width : 1;
      continue;
    }
    auto vector = dyn_cast<VectorType>(arg);
    if (perRow || frag.getLayout() == Layout::Rows || !vector ||
        vector.getElementType() != element || vector.getNumElements() != 2 ||
        width == 1)
      return op->emitOpError("expected body argument #")
             << i << " to be " << element
             << (perRow || width == 1 ? "" : " or a vector of two") << ", got "
             << arg;
    width = 2;
  }
  for (unsigned i : {0u, 1u})
    if (Type type = body.getArgument(fragments.size() + i).getType();
        !type.isInteger(32))
      return op->emitOpError("expected an i32 as the body's ")
             << (i ? "column" : "row") << ", got " << type;
  return success();
}

LogicalResult MapOp::verify() {
  int64_t width;
  return verifyBody(*this, getFragments().getTypes(), getRow(), getColumn(),
                    getBody(), width);
}

LogicalResult MapOp::verifyRegions() {
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (yield.getNumOperands() != getNumResults())
    return emitOpError("expected a yield of ")
           << getNumResults() << " value(s), one per result, got "
           << yield.getNumOperands();
  FragType matrix = cast<FragType>(getFragments().front().getType());
  bool pairs = false;
  for (auto [fragment, argument] :
       llvm::zip(getFragments(), getBody().getArguments())) {
    if (cast<FragType>(fragment.getType()).getLayout() != Layout::Rows)
      matrix = cast<FragType>(fragment.getType());
    pairs |= isa<VectorType>(argument.getType());
  }
  for (auto [value, type] :
       llvm::zip(yield.getOperandTypes(), getResultTypes())) {
    auto frag = cast<FragType>(type);
    Type want = frag.getElementType();
    if (pairs)
      want = VectorType::get({2}, want);
    if (value != want)
      return emitOpError("expected a yield of ")
             << want << " for " << frag << ", got " << value;
    if (frag.getShape() != matrix.getShape() ||
        frag.getLayout() != matrix.getLayout())
      return emitOpError("expected a result of the shape and layout of ")
             << matrix << ", got " << frag;
  }
  return success();
}

LogicalResult EpilogueOp::verify() {
  int64_t width;
  return verifyBody(*this, getFragments().getTypes(), getRow(), getColumn(),
                    getBody(), width);
}

//===----------------------------------------------------------------------===//
// Rows, conversions
//===----------------------------------------------------------------------===//

LogicalResult RowReduceOp::verify() {
  FragType from = getFragment().getType(), to = getResult().getType();
  if (to.getLayout() != Layout::Rows ||
      to.getShape()[0] != from.getShape()[0] ||
      to.getElementType() != from.getElementType() ||
      (from.getLayout() != Layout::Accumulator &&
       from.getLayout() != Layout::Rows))
    return emitOpError("expected an accumulator or rows fragment and a rows "
                       "fragment of as many rows, got ")
           << from << " to " << to;
  if (!to.getElementType().isF32())
    return emitOpError("expected f32 elements, got ") << to.getElementType();
  if (getKind() == ReduceKind::Argmax)
    return emitOpError("expected kind add, max or min, got ")
           << stringifyReduceKind(getKind());
  if (from.getLayout() == Layout::Rows && getPartial())
    return emitOpError("expected partial on an accumulator only, got ") << from;
  return success();
}

LogicalResult ConvertOp::verify() {
  FragType from = getFragment().getType(), to = getResult().getType();
  if (from.getShape() != to.getShape())
    return emitOpError("expected a result of the operand's shape, got ")
           << from << " to " << to;
  if (from.getLayout() != to.getLayout() &&
      !(from.getLayout() == Layout::Accumulator &&
        to.getLayout() == Layout::OperandA))
    return emitOpError("expected the same layout, or accumulator to operand_a "
                       "(others move data between threads), got ")
           << stringifyLayout(from.getLayout()) << " to "
           << stringifyLayout(to.getLayout());
  return success();
}

LogicalResult DeinterleaveOp::verify() {
  FragType from = getFragment().getType(), even = getEven().getType();
  if (even != getOdd().getType())
    return emitOpError("expected two results of one type, got ")
           << even << " and " << getOdd().getType();
  if (from.getLayout() != Layout::Accumulator)
    return emitOpError("expected a fragment of layout accumulator, got ")
           << from;
  SmallVector<int64_t> shape(from.getShape());
  shape[getRows() ? 0 : 1] /= 2;
  if (!getRows() && from.getShape()[1] % 16)
    return emitOpError("expected a multiple of 16 columns, got ")
           << from.getShape()[1];
  auto want = FragType::get(getContext(), shape, from.getElementType(),
                            getRows() ? Layout::HalfRows : Layout::Accumulator);
  if (even != want)
    return emitOpError("expected results of type ") << want << ", got " << even;
  return success();
}

LogicalResult ColumnsOp::verify() {
  FragType from = getFragment().getType(), to = getResult().getType();
  if (from.getLayout() == Layout::Rows || from.getLayout() != to.getLayout() ||
      from.getElementType() != to.getElementType() ||
      from.getShape()[0] != to.getShape()[0])
    return emitOpError("expected a result with the rows, element type and "
                       "layout of ")
           << from << ", got " << to;
  int64_t first = getOffset(), width = to.getShape()[1];
  if (first % 8 || width % 8 || first + width > from.getShape()[1])
    return emitOpError("expected multiples of 8 within ")
           << from.getShape()[1] << " columns, got columns " << first << " to "
           << first + width;
  return success();
}

LogicalResult ClusterReduceOp::verify() {
  auto kernel = (*this)->getParentOfType<KernelOp>();
  if (kernel && !kernel.getCluster())
    return emitOpError("expected a kernel with cluster(2)");
  FragType from = getFragment().getType(), to = getResult().getType();
  if (from.getLayout() != Layout::Accumulator ||
      !from.getElementType().isF32() || from.getShape()[1] % 16)
    return emitOpError("expected an f32 fragment of layout accumulator with a "
                       "multiple of 16 columns, got ")
           << from;
  auto want =
      FragType::get(getContext(), {from.getShape()[0], from.getShape()[1] / 2},
                    from.getElementType(), Layout::Accumulator);
  if (to != want)
    return emitOpError("expected a result of type ") << want << ", got " << to;
  return success();
}

LogicalResult AnyOp::verify() {
  FragType type = getFragment().getType();
  if (type.getLayout() != Layout::Rows || !type.getElementType().isF32())
    return emitOpError("expected a vote on an f32 rows fragment, got ") << type;
  return success();
}

LogicalResult PinOp::verify() {
  FragType type = getFragment().getType();
  if (type.getLayout() != Layout::Rows || !type.getElementType().isF32())
    return emitOpError("expected an f32 rows fragment, got ") << type;
  return success();
}
