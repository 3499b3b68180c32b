// Types of the `tile` dialect: assembly, geometry and hardware rules.
#include "dialects/tile/TileDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#define GET_TYPEDEF_CLASSES
#include "dialects/tile/TileTypes.cpp.inc"

using namespace mlir;
using namespace llmc::tile;

namespace {
int64_t product(ArrayRef<int64_t> shape) {
  int64_t n = 1;
  for (int64_t d : shape)
    n *= d;
  return n;
}

int64_t elementBytes(Type type) {
  return llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}

ParseResult parseShaped(AsmParser &parser, SmallVectorImpl<int64_t> &shape,
                        Type &element) {
  return failure(parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
                 parser.parseType(element));
}

void printShaped(AsmPrinter &printer, ArrayRef<int64_t> shape, Type element) {
  for (int64_t d : shape)
    printer << d << "x";
  printer << element;
}

/// Parses `, key = value` pairs of integers until the closing bracket.
ParseResult parseIntegers(AsmParser &parser,
                          ArrayRef<std::pair<StringRef, int64_t *>> keys) {
  while (succeeded(parser.parseOptionalComma())) {
    StringRef key;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&key))
      return failure();
    const auto *it =
        llvm::find_if(keys, [&](auto &k) { return k.first == key; });
    if (it == keys.end())
      return parser.emitError(loc, "unknown parameter '") << key << "'";
    if (parser.parseEqual() || parser.parseInteger(*it->second))
      return failure();
  }
  return parser.parseGreater();
}

LogicalResult verifyElement(function_ref<InFlightDiagnostic()> emitError,
                            Type type) {
  if (type && type.isIntOrFloat() && type.getIntOrFloatBitWidth() % 8 == 0)
    return success();
  return emitError() << "expected an element type that is an integer or float "
                        "of whole bytes, got "
                     << type;
}

LogicalResult verifySwizzle(function_ref<InFlightDiagnostic()> emitError,
                            int64_t swizzle) {
  if (llvm::is_contained({0, 32, 64, 128}, swizzle))
    return success();
  return emitError() << "expected a swizzle of 0, 32, 64 or 128 bytes, got "
                     << swizzle;
}
} // namespace

//===----------------------------------------------------------------------===//
// !tile.ptr
//===----------------------------------------------------------------------===//

Type PtrType::parse(AsmParser &parser) {
  Type element;
  bool constant = false;
  if (parser.parseLess() || parser.parseType(element))
    return {};
  if (succeeded(parser.parseOptionalComma())) {
    if (parser.parseKeyword("constant"))
      return {};
    constant = true;
  }
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), element, constant);
}

void PtrType::print(AsmPrinter &printer) const {
  printer << "<" << getElementType() << (getConstant() ? ", constant>" : ">");
}

//===----------------------------------------------------------------------===//
// !tile.tensor_map
//===----------------------------------------------------------------------===//

Type TensorMapType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type element;
  int64_t swizzle = 0;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parseShaped(parser, shape, element) ||
      parseIntegers(parser, {{"swizzle", &swizzle}}))
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    shape, element, swizzle);
}

void TensorMapType::print(AsmPrinter &printer) const {
  printer << "<";
  printShaped(printer, getShape(), getElementType());
  if (getSwizzle())
    printer << ", swizzle = " << getSwizzle();
  printer << ">";
}

int64_t TensorMapType::getBoxBytes() const {
  return product(getShape()) * elementBytes(getElementType());
}

LogicalResult
TensorMapType::verify(function_ref<InFlightDiagnostic()> emitError,
                      ArrayRef<int64_t> shape, Type element, int64_t swizzle) {
  if (failed(verifyElement(emitError, element)) ||
      failed(verifySwizzle(emitError, swizzle)))
    return failure();
  if (shape.empty() || shape.size() > 5)
    return emitError() << "expected a TMA box of 1 to 5 dimensions, got "
                       << shape.size();
  for (int64_t d : shape)
    if (d < 1 || d > 256)
      return emitError() << "expected box dimensions from 1 to 256, got " << d;
  int64_t inner = shape.back() * elementBytes(element);
  if (inner % 16)
    return emitError()
           << "expected an innermost box dimension of a multiple of "
              "16 bytes, got "
           << shape.back() << " x " << element << " = " << inner;
  if (swizzle && inner > swizzle)
    return emitError() << "expected an innermost box dimension of at most the "
                       << swizzle << " bytes of the swizzle, got " << inner
                       << "; use several boxes";
  return success();
}

//===----------------------------------------------------------------------===//
// !tile.smem
//===----------------------------------------------------------------------===//

Type SmemType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type element;
  int64_t swizzle = 0, slabRows = 0;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parseShaped(parser, shape, element))
    return {};
  slabRows = shape.size() == 2 ? shape[0] : 0;
  if (parseIntegers(parser, {{"swizzle", &swizzle}, {"slab_rows", &slabRows}}))
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    shape, element, swizzle, slabRows);
}

void SmemType::print(AsmPrinter &printer) const {
  printer << "<";
  printShaped(printer, getShape(), getElementType());
  if (getSwizzle())
    printer << ", swizzle = " << getSwizzle();
  if (getShape().size() == 2 && getSlabRows() != getShape()[0])
    printer << ", slab_rows = " << getSlabRows();
  printer << ">";
}

int64_t SmemType::getElementBytes() const {
  return elementBytes(getElementType());
}
int64_t SmemType::getNumElements() const { return product(getShape()); }
int64_t SmemType::getBytes() const {
  return getNumElements() * getElementBytes();
}
int64_t SmemType::getSlabColumns() const {
  return getSwizzle() ? getSwizzle() / getElementBytes() : getShape().back();
}

LogicalResult SmemType::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<int64_t> shape, Type element,
                               int64_t swizzle, int64_t slabRows) {
  if (failed(verifyElement(emitError, element)) ||
      failed(verifySwizzle(emitError, swizzle)))
    return failure();
  if (shape.empty() || llvm::any_of(shape, [](int64_t d) { return d < 1; }))
    return emitError() << "expected one positive dimension or more, got ["
                       << shape << "]";
  if (!swizzle)
    return success();
  if (shape.size() != 2)
    return emitError() << "expected two dimensions in a swizzled tile, got "
                       << shape.size();
  int64_t row = shape[1] * elementBytes(element);
  if (row % swizzle)
    return emitError() << "expected rows of a multiple of the " << swizzle
                       << " bytes of the swizzle, got " << row;
  if (slabRows % 8)
    return emitError()
           << "expected a multiple of 8 rows in a swizzled tile, got "
           << slabRows;
  return success();
}

//===----------------------------------------------------------------------===//
// !tile.ring
//===----------------------------------------------------------------------===//

Type RingType::parse(AsmParser &parser) {
  int64_t stages;
  SmallVector<SmemType> slots;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseInteger(stages))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    SmemType slot;
    if (parser.parseType(slot))
      return {};
    slots.push_back(slot);
  }
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    stages, slots);
}

void RingType::print(AsmPrinter &printer) const {
  printer << "<" << getStages();
  for (SmemType slot : getSlots())
    printer << ", " << slot;
  printer << ">";
}

int64_t RingType::getSlotOffset(unsigned slot) const {
  int64_t offset = 0;
  for (SmemType tile : getSlots().take_front(slot))
    offset += llvm::alignTo(tile.getBytes(), 1024);
  return offset;
}

int64_t RingType::getStageBytes() const {
  return getSlotOffset(getSlots().size());
}

LogicalResult RingType::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t stages, ArrayRef<SmemType> slots) {
  if (stages < 1 || stages > 64)
    return emitError() << "expected 1 to 64 stages, got " << stages;
  if (slots.empty())
    return emitError() << "expected one slot or more, got none";
  return success();
}

//===----------------------------------------------------------------------===//
// !tile.acc and !tile.frag
//===----------------------------------------------------------------------===//

Type AccType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type element;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parseShaped(parser, shape, element) ||
      parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    shape, element);
}

void AccType::print(AsmPrinter &printer) const {
  printer << "<";
  printShaped(printer, getShape(), getElementType());
  printer << ">";
}

LogicalResult AccType::verify(function_ref<InFlightDiagnostic()> emitError,
                              ArrayRef<int64_t> shape, Type element) {
  if (shape.size() != 2 || shape[0] != 64)
    return emitError()
           << "expected 64 rows, those of a warpgroup, and columns, "
              "got ["
           << shape << "]";
  if (shape[1] % 8 || shape[1] < 8 || shape[1] > 256)
    return emitError() << "expected 8 to 256 columns in steps of 8, got "
                       << shape[1];
  if (!element.isF32())
    return emitError() << "expected f32 elements, got " << element;
  return success();
}

Type FragType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type element;
  Layout layout = Layout::Accumulator;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parseShaped(parser, shape, element))
    return {};
  if (succeeded(parser.parseOptionalComma())) {
    StringRef word;
    if (parser.parseKeyword(&word))
      return {};
    std::optional<Layout> named = symbolizeLayout(word);
    if (!named) {
      parser.emitError(loc, "unknown fragment layout '") << word << "'";
      return {};
    }
    layout = *named;
  }
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    shape, element, layout);
}

void FragType::print(AsmPrinter &printer) const {
  printer << "<";
  printShaped(printer, getShape(), getElementType());
  if (getLayout() != Layout::Accumulator)
    printer << ", " << stringifyLayout(getLayout());
  printer << ">";
}

int64_t FragType::getThreadElements() const {
  if (getLayout() == Layout::Rows)
    return 2;
  int64_t rows = getLayout() == Layout::HalfRows ? 1 : 2;
  return rows * getShape()[1] / 4;
}

LogicalResult FragType::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<int64_t> shape, Type element,
                               Layout layout) {
  if (failed(verifyElement(emitError, element)))
    return failure();
  size_t rank = layout == Layout::Rows ? 1 : 2;
  if (shape.size() != rank)
    return emitError() << "expected " << rank << " dimension(s) in layout "
                       << stringifyLayout(layout) << ", got " << shape.size();
  int64_t warp = layout == Layout::HalfRows ? 8 : 16;
  if (shape[0] != warp && shape[0] != 4 * warp)
    return emitError() << "expected " << warp << " rows (a warp) or "
                       << 4 * warp << " (a warpgroup) in layout "
                       << stringifyLayout(layout) << ", got " << shape[0];
  int64_t columns = layout == Layout::OperandA ? 16 : 8;
  if (rank == 2 && shape[1] % columns)
    return emitError() << "expected columns in steps of " << columns
                       << " in layout " << stringifyLayout(layout) << ", got "
                       << shape[1];
  if (layout == Layout::OperandA && element.getIntOrFloatBitWidth() != 16)
    return emitError() << "expected 16-bit elements in layout operand_a, got "
                       << element;
  return success();
}

void TileDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/tile/TileTypes.cpp.inc"
      >();
}
