// Rings, TMA and shared tiles: verifiers.
#include "dialects/tile/TileAssembly.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace llmc::tile;

static LogicalResult verifySlots(Operation *op, TypeRange tiles,
                                 RingType ring) {
  if (tiles.size() != ring.getSlots().size())
    return op->emitOpError("takes ")
           << tiles.size() << " tile(s) of a ring with "
           << ring.getSlots().size() << " slot(s)";
  for (auto [i, tile, slot] : llvm::enumerate(tiles, ring.getSlots()))
    if (tile != slot)
      return op->emitOpError("tile #")
             << i << " has type " << tile << ", the slot of the ring " << slot;
  return success();
}

LogicalResult ProduceOp::verify() {
  if (bool(getStage()) != bool(getPhase()))
    return emitOpError("has a stage without a phase or a phase without one");
  return verifySlots(*this, getBody().getArgumentTypes(), getRing().getType());
}

LogicalResult ConsumeOp::verify() {
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (yield.getOperandTypes() != getResultTypes())
    return emitOpError("yields other types than it returns");
  return verifySlots(*this, getBody().getArgumentTypes(), getRing().getType());
}

LogicalResult AcquireOp::verify() {
  if (bool(getStage()) != bool(getPhase()))
    return emitOpError("has a stage without a phase or a phase without one");
  return verifySlots(*this, getTiles().getTypes(), getRing().getType());
}

//===----------------------------------------------------------------------===//
// TMA
//===----------------------------------------------------------------------===//

/// Whether boxes of `map` fill `tile` exactly.
static LogicalResult verifyBox(Operation *op, TensorMapType map,
                               SmemType tile) {
  if (map.getElementType() != tile.getElementType())
    return op->emitOpError("moves ")
           << map.getElementType() << " into a tile of "
           << tile.getElementType();
  if (map.getSwizzle() != tile.getSwizzle())
    return op->emitOpError("the map swizzles ")
           << map.getSwizzle() << " bytes, the tile " << tile.getSwizzle();
  if (tile.getShape().size() != 2)
    return op->emitOpError("needs a tile of two dimensions");
  ArrayRef<int64_t> box = map.getShape();
  int64_t rows = 1;
  for (int64_t d : box.drop_back())
    rows *= d;
  if (tile.getShape()[0] % rows)
    return op->emitOpError("a tile of ")
           << tile.getShape()[0] << " rows is not filled by boxes of " << rows;
  if (tile.getShape()[0] != rows && box.size() > 2 &&
      llvm::any_of(box.drop_back().drop_back(),
                   [](int64_t d) { return d > 1; }))
    return op->emitOpError("a box of more than two dimensions fills all the "
                           "rows of its tile, or is 1 in the outer ones");
  if (box.back() != tile.getSlabColumns() &&
      (tile.getSwizzle() || tile.getShape()[1] != box.back()))
    return op->emitOpError("boxes are ")
           << box.back() << " columns wide, the slabs of the tile "
           << tile.getSlabColumns();
  return success();
}

LogicalResult TmaLoadOp::verify() {
  if (getCoordinates().size() != getMap().getType().getShape().size())
    return emitOpError("has ")
           << getCoordinates().size() << " coordinates for a map of rank "
           << getMap().getType().getShape().size();
  return verifyBox(*this, getMap().getType(), getTile().getType());
}

LogicalResult StoreTmaOp::verify() {
  FragType fragment = getFragment().getType();
  SmemType staging = getStaging().getType();
  if (fragment.getLayout() != Layout::Accumulator ||
      fragment.getElementType().getIntOrFloatBitWidth() != 16)
    return emitOpError("stores 16-bit fragments of layout accumulator, got ")
           << fragment;
  if (!staging.getSwizzle() || staging.getShape()[0] != fragment.getShape()[0])
    return emitOpError("the staging tile is swizzled and has the ")
           << fragment.getShape()[0] << " rows of the fragment, got "
           << staging;
  if (staging.getShape()[1] != staging.getSlabColumns() ||
      fragment.getShape()[1] % staging.getShape()[1])
    return emitOpError("the staging tile is one slab wide (")
           << staging.getSlabColumns() << " columns) and divides the "
           << fragment.getShape()[1] << " columns of the fragment";
  if (!getStaging().getDefiningOp<SharedOp>())
    return emitOpError("the staging tile must come from tile.shared");
  if (getCoordinates().size() != getMap().getType().getShape().size())
    return emitOpError("has ")
           << getCoordinates().size() << " coordinates for a map of rank "
           << getMap().getType().getShape().size();
  return verifyBox(*this, getMap().getType(), staging);
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

LogicalResult SliceOp::verify() {
  SmemType from = getTile().getType(), to = getResult().getType();
  if (from.getElementType() != to.getElementType() ||
      from.getSwizzle() != to.getSwizzle() ||
      from.getShape().size() != to.getShape().size() ||
      getOffsets().size() != from.getShape().size())
    return emitOpError("keeps rank, element type and swizzle");
  for (auto [o, f, t] : llvm::zip(getOffsets(), from.getShape(), to.getShape()))
    if (o < 0 || o + t > f)
      return emitOpError("reaches from ")
             << o << " to " << o + t << " in a dimension of " << f;
  if (!from.getSwizzle()) {
    for (unsigned d = 1; d < from.getShape().size(); ++d)
      if (from.getShape()[d] != to.getShape()[d])
        return emitOpError("of a tile without swizzle takes whole rows");
    return success();
  }
  if (to.getSlabRows() != from.getSlabRows())
    return emitOpError("needs slab_rows = ") << from.getSlabRows();
  if (getOffsets()[0] % 8 || getOffsets()[1] % from.getSlabColumns())
    return emitOpError("starts at a multiple of 8 rows and of ")
           << from.getSlabColumns() << " columns";
  return success();
}

LogicalResult WarpgroupSliceOp::verify() {
  SmemType from = getTile().getType(), to = getResult().getType();
  if (from.getElementType() != to.getElementType() ||
      from.getSwizzle() != to.getSwizzle() || from.getShape().size() != 2 ||
      to.getShape().size() != 2 || from.getShape()[1] != to.getShape()[1])
    return emitOpError("keeps columns, element type and swizzle");
  if (to.getSlabRows() != from.getSlabRows())
    return emitOpError("needs slab_rows = ") << from.getSlabRows();
  if (getStep() < 8 || getStep() % 8)
    return emitOpError("step is a multiple of 8, got ") << getStep();
  return success();
}
