// Work on fragments: verifiers.
#include "dialects/tile/TileDialect.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace llmc::tile;

LogicalResult FillOp::verify() {
  if (getValue().getType() != getResult().getType().getElementType())
    return emitOpError("fills ")
           << getResult().getType() << " with " << getValue().getType();
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
    return op->emitOpError("needs at least one fragment");
  if (bool(row) != bool(column))
    return op->emitOpError(
        "has a row without a column or a column without one");
  FragType matrix = cast<FragType>(fragments.front());
  for (Type type : fragments)
    if (cast<FragType>(type).getLayout() != Layout::Rows)
      matrix = cast<FragType>(type);
  if (body.getNumArguments() != fragments.size() + 2)
    return op->emitOpError("the body takes one value per fragment, the row and "
                           "the column: ")
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
      return op->emitOpError("fragments ")
             << matrix << " and " << frag
             << " do not lie the same way over the threads";
    if (frag.getLayout() == Layout::OperandA)
      return op->emitOpError("does not take operand_a fragments");
    if (perRow && frag.getShape()[0] != matrix.getShape()[0])
      return op->emitOpError("rows of ")
             << frag << " and " << matrix << " differ";
    if (arg == element) {
      if (!perRow && width == 2)
        return op->emitOpError("the body mixes one and two neighbours");
      width = perRow ? width : 1;
      continue;
    }
    auto vector = dyn_cast<VectorType>(arg);
    if (perRow || frag.getLayout() == Layout::Rows || !vector ||
        vector.getElementType() != element || vector.getNumElements() != 2 ||
        width == 1)
      return op->emitOpError("body argument #")
             << i << " must be " << element
             << (perRow ? "" : " or a vector of two") << ", got " << arg;
    width = 2;
  }
  for (unsigned i : {0u, 1u})
    if (!body.getArgument(fragments.size() + i).getType().isInteger(32))
      return op->emitOpError("row and column are i32");
  return success();
}

LogicalResult MapOp::verify() {
  int64_t width;
  if (failed(verifyBody(*this, getFragments().getTypes(), getRow(), getColumn(),
                        getBody(), width)))
    return failure();
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (yield.getNumOperands() != getNumResults())
    return emitOpError("yields ") << yield.getNumOperands() << " value(s) for "
                                  << getNumResults() << " result(s)";
  FragType matrix = cast<FragType>(getFragments().front().getType());
  for (Value f : getFragments())
    if (cast<FragType>(f.getType()).getLayout() != Layout::Rows)
      matrix = cast<FragType>(f.getType());
  for (auto [value, type] :
       llvm::zip(yield.getOperandTypes(), getResultTypes())) {
    auto frag = cast<FragType>(type);
    Type want = frag.getElementType();
    if (width == 2)
      want = VectorType::get({2}, want);
    if (value != want)
      return emitOpError("yields ") << value << " for an element of " << frag
                                    << ", which takes " << want;
    if (frag.getShape() != matrix.getShape() ||
        frag.getLayout() != matrix.getLayout())
      return emitOpError("result ") << frag << " does not lie as " << matrix;
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
    return emitOpError("reduces an accumulator or rows fragment to rows of "
                       "the same length, got ")
           << from << " to " << to;
  if (!to.getElementType().isF32())
    return emitOpError("reduces f32, got ") << to.getElementType();
  if (getKind() == ReduceKind::Argmax)
    return emitOpError("has no argmax");
  if (from.getLayout() == Layout::Rows && getPartial())
    return emitOpError("partial says nothing about a rows fragment");
  return success();
}

LogicalResult ConvertOp::verify() {
  FragType from = getFragment().getType(), to = getResult().getType();
  if (from.getShape() != to.getShape())
    return emitOpError("keeps the shape, got ") << from << " to " << to;
  if (from.getLayout() != to.getLayout() &&
      !(from.getLayout() == Layout::Accumulator &&
        to.getLayout() == Layout::OperandA))
    return emitOpError("cannot change layout ")
           << stringifyLayout(from.getLayout()) << " to "
           << stringifyLayout(to.getLayout()) << " without moving data "
           << "between threads";
  return success();
}

LogicalResult DeinterleaveOp::verify() {
  FragType from = getFragment().getType(), even = getEven().getType();
  if (even != getOdd().getType())
    return emitOpError("gives two results of one type");
  if (from.getLayout() != Layout::Accumulator)
    return emitOpError("takes a fragment of layout accumulator, got ") << from;
  SmallVector<int64_t> shape(from.getShape());
  shape[getRows() ? 0 : 1] /= 2;
  if (!getRows() && from.getShape()[1] % 16)
    return emitOpError("along columns needs a multiple of 16 columns, got ")
           << from.getShape()[1];
  auto want = FragType::get(getContext(), shape, from.getElementType(),
                            getRows() ? Layout::HalfRows : Layout::Accumulator);
  if (even != want)
    return emitOpError("gives ") << want << ", got " << even;
  return success();
}

LogicalResult PinOp::verify() {
  FragType type = getFragment().getType();
  if (type.getLayout() != Layout::Rows || !type.getElementType().isF32())
    return emitOpError("pins f32 rows fragments, got ") << type;
  return success();
}
