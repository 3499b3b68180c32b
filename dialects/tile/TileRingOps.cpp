// Rings, TMA and shared tiles: verifiers.
#include "dialects/tile/TileAssembly.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace llmc::tile;

static LogicalResult verifySlots(Operation *op, TypeRange tiles,
                                 RingType ring) {
  if (tiles.size() != ring.getSlots().size())
    return op->emitOpError("expected one tile for each of ")
           << ring.getSlots().size() << " slot(s) of the ring, got "
           << tiles.size();
  for (auto [i, tile, slot] : llvm::enumerate(tiles, ring.getSlots()))
    if (tile != slot)
      return op->emitOpError("expected tile #")
             << i << " to have the type of its slot, " << slot << ", got "
             << tile;
  return success();
}

static LogicalResult verifyStage(Operation *op, Value stage, Value phase) {
  if (bool(stage) == bool(phase))
    return success();
  return op->emitOpError("expected a stage and a phase, got only a ")
         << (stage ? "stage" : "phase");
}

LogicalResult ProduceOp::verify() {
  if (failed(verifyStage(*this, getStage(), getPhase())))
    return failure();
  return verifySlots(*this, getBody().getArgumentTypes(), getRing().getType());
}

LogicalResult ConsumeOp::verify() {
  return verifySlots(*this, getBody().getArgumentTypes(), getRing().getType());
}

LogicalResult ConsumeOp::verifyRegions() {
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (yield.getOperandTypes() != getResultTypes())
    return emitOpError("expected a yield of the types of the results (")
           << getResultTypes() << "), got (" << yield.getOperandTypes() << ")";
  return success();
}

LogicalResult AcquireOp::verify() {
  if (failed(verifyStage(*this, getStage(), getPhase())))
    return failure();
  return verifySlots(*this, getTiles().getTypes(), getRing().getType());
}

//===----------------------------------------------------------------------===//
// TMA
//===----------------------------------------------------------------------===//

/// Whether boxes of `map` at `coordinates` fill `tile` exactly.
static LogicalResult verifyBox(Operation *op, TensorMapType map,
                               ValueRange coordinates, SmemType tile) {
  ArrayRef<int64_t> box = map.getShape();
  if (coordinates.size() != box.size())
    return op->emitOpError("expected ")
           << box.size() << " coordinates, one per dimension of the map, got "
           << coordinates.size();
  if (map.getElementType() != tile.getElementType())
    return op->emitOpError("expected a tile of ")
           << map.getElementType() << ", as the map says, got "
           << tile.getElementType();
  if (map.getSwizzle() != tile.getSwizzle())
    return op->emitOpError("expected a tile with a swizzle of ")
           << map.getSwizzle() << " bytes, as the map says, got "
           << tile.getSwizzle();
  if (tile.getShape().size() != 2)
    return op->emitOpError("expected a tile of two dimensions, got ") << tile;
  int64_t rows = 1;
  for (int64_t d : box.drop_back())
    rows *= d;
  if (tile.getShape()[0] % rows)
    return op->emitOpError("expected a tile of a multiple of ")
           << rows << " rows, those of a box, got " << tile.getShape()[0];
  if (tile.getShape()[0] != rows && box.size() > 2 &&
      llvm::any_of(box.drop_back().drop_back(),
                   [](int64_t d) { return d > 1; }))
    return op->emitOpError("expected a box that is 1 in its outer dimensions, "
                           "or fills all ")
           << tile.getShape()[0] << " rows of the tile, got " << map;
  if (box.back() != tile.getSlabColumns() &&
      (tile.getSwizzle() || tile.getShape()[1] != box.back()))
    return op->emitOpError("expected boxes of ")
           << tile.getSlabColumns() << " columns, one slab of the tile, got "
           << box.back();
  return success();
}

LogicalResult TmaLoadOp::verify() {
  return verifyBox(*this, getMap().getType(), getCoordinates(),
                   getTile().getType());
}

LogicalResult CopyAsyncOp::verify() {
  SmemType tile = getTile().getType();
  Type element = getMemory().getType().getElementType();
  if (tile.getElementType() != element)
    return emitOpError("expected a tile of ")
           << element << ", as the memory holds, got " << tile;
  if (tile.getShape().size() != 2)
    return emitOpError("expected a tile of two dimensions, got ") << tile;
  int64_t chunk = 16 / tile.getElementBytes(), columns = getColumns();
  if (tile.getShape()[1] % chunk || columns % chunk || columns < chunk)
    return emitOpError("expected columns of the tile and of the memory in "
                       "steps of ")
           << chunk << ", which are 16 bytes, got " << tile.getShape()[1]
           << " and " << columns;
  if ((*this)->getParentOfType<RoleOp>())
    return emitOpError("expected in a kernel without roles, whose threads "
                       "consume what they copy");
  return success();
}

LogicalResult PrefetchOp::verify() {
  auto role = (*this)->getParentOfType<RoleOp>();
  if (role && !role.getElected())
    return emitOpError("expected an elected role: it is for one thread");
  if (getCoordinates().size() != getMap().getType().getShape().size())
    return emitOpError("has ")
           << getCoordinates().size() << " coordinates for a map of rank "
           << getMap().getType().getShape().size();
  return success();
}

LogicalResult StoreTmaOp::verify() {
  FragType fragment = getFragment().getType();
  SmemType staging = getStaging().getType();
  if (fragment.getLayout() != Layout::Accumulator ||
      (fragment.getElementType().getIntOrFloatBitWidth() != 16 &&
       fragment.getElementType().getIntOrFloatBitWidth() != 32))
    return emitOpError("expected a 16-bit or 32-bit fragment of layout "
                       "accumulator, got ")
           << fragment;
  if (fragment.getElementType() != staging.getElementType())
    return emitOpError("expected a staging tile of ")
           << fragment.getElementType() << ", as the fragment, got "
           << staging.getElementType();
  if (!staging.getSwizzle() || staging.getShape()[0] != fragment.getShape()[0])
    return emitOpError("expected a swizzled staging tile of ")
           << fragment.getShape()[0] << " rows, as the fragment has, got "
           << staging;
  if (staging.getShape()[1] != staging.getSlabColumns() ||
      fragment.getShape()[1] % staging.getShape()[1])
    return emitOpError("expected a staging tile one slab wide (")
           << staging.getSlabColumns() << " columns), a divisor of the "
           << fragment.getShape()[1] << " columns of the fragment, got "
           << staging.getShape()[1] << " columns";
  if (!getStaging().getDefiningOp<SharedOp>())
    return emitOpError("expected a staging tile made by tile.shared");
  if (getAccumulate() && !fragment.getElementType().isF32())
    return emitOpError("expected a fragment of f32 to accumulate, got ")
           << fragment;
  return verifyBox(*this, getMap().getType(), getCoordinates(), staging);
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
    return emitOpError("expected a result and offsets of the rank, element "
                       "type and swizzle of ")
           << from << ", got " << to << " and " << getOffsets().size()
           << " offset(s)";
  for (auto [o, f, t] : llvm::zip(getOffsets(), from.getShape(), to.getShape()))
    if (o < 0 || o + t > f)
      return emitOpError("expected a range inside [0, ")
             << f << "), got [" << o << ", " << o + t << ")";
  if (!from.getSwizzle()) {
    for (unsigned d = 1; d < from.getShape().size(); ++d)
      if (from.getShape()[d] != to.getShape()[d])
        return emitOpError("expected whole rows of a tile without swizzle, ")
               << from << ", got " << to;
    return success();
  }
  if (to.getSlabRows() != from.getSlabRows())
    return emitOpError("expected slab_rows = ")
           << from.getSlabRows() << ", as the tile has, got "
           << to.getSlabRows();
  if (getOffsets()[0] % 8 || getOffsets()[1] % from.getSlabColumns())
    return emitOpError("expected offsets at a multiple of 8 rows and of ")
           << from.getSlabColumns() << " columns, got " << getOffsets();
  return success();
}

int64_t SliceOp::getByteOffset() {
  SmemType type = getTile().getType();
  ArrayRef<int64_t> at = getOffsets();
  if (!type.getSwizzle())
    return at[0] * type.getBytes() / type.getShape()[0];
  return at[0] * type.getSwizzle() +
         at[1] / type.getSlabColumns() * type.getSlabBytes();
}

LogicalResult WarpgroupSliceOp::verify() {
  SmemType from = getTile().getType(), to = getResult().getType();
  if (from.getElementType() != to.getElementType() ||
      from.getSwizzle() != to.getSwizzle() || from.getShape().size() != 2 ||
      to.getShape().size() != 2 || from.getShape()[1] != to.getShape()[1])
    return emitOpError("expected a result of the columns, element type and "
                       "swizzle of ")
           << from << ", got " << to;
  if (to.getSlabRows() != from.getSlabRows())
    return emitOpError("expected slab_rows = ")
           << from.getSlabRows() << ", as the tile has, got "
           << to.getSlabRows();
  if (getClamped() && from.getShape()[0] < to.getShape()[0])
    return emitOpError("expected a tile of at least ")
           << to.getShape()[0] << " rows for clamped slices, got "
           << from.getShape()[0];
  if (getStep() < 8 || getStep() % 8)
    return emitOpError("expected a step of a positive multiple of 8, got ")
           << int32_t(getStep());
  return success();
}
