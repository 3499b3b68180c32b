// Pieces of assembly that the declarative formats share.
#include "dialects/tile/TileAssembly.h"

using namespace mlir;
using namespace llmc::tile;

/// `as (%a, %b)`: names for the tiles of a stage, then the region.
static ParseResult parseSlots(OpAsmParser &parser, Region &body, Type ring,
                              SmallVectorImpl<Type> *results) {
  auto type = dyn_cast<RingType>(ring);
  SmallVector<OpAsmParser::Argument> slots;
  if (!type)
    return parser.emitError(parser.getNameLoc(), "expected a !tile.ring");
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword("as") ||
      parser.parseArgumentList(slots, OpAsmParser::Delimiter::Paren))
    return failure();
  if (slots.size() != type.getSlots().size())
    return parser.emitError(loc, "expected a name for each of ")
           << type.getSlots().size() << " slot(s) of the ring, got "
           << slots.size();
  for (auto [slot, tile] : llvm::zip(slots, type.getSlots()))
    slot.type = tile;
  if (results && succeeded(parser.parseOptionalArrow()))
    if (parser.parseLParen() || parser.parseTypeList(*results) ||
        parser.parseRParen())
      return failure();
  if (parser.parseRegion(body, slots))
    return failure();
  ProduceOp::ensureTerminator(body, parser.getBuilder(),
                              parser.getEncodedSourceLoc(loc));
  return success();
}

static void printSlots(OpAsmPrinter &printer, Region &body, TypeRange results) {
  printer << " as (";
  llvm::interleaveComma(body.getArguments(), printer,
                        [&](BlockArgument slot) { printer << slot; });
  printer << ")";
  if (!results.empty())
    printer << " -> (" << results << ")";
  printer << " ";
  printer.printRegion(body, /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/!results.empty());
}

ParseResult llmc::tile::parseSlotRegion(OpAsmParser &parser, Region &body,
                                        Type ring) {
  return parseSlots(parser, body, ring, nullptr);
}

void llmc::tile::printSlotRegion(OpAsmPrinter &printer, Operation *,
                                 Region &body, Type) {
  printSlots(printer, body, {});
}

ParseResult llmc::tile::parseSlotRegionResults(OpAsmParser &parser,
                                               Region &body,
                                               SmallVectorImpl<Type> &results,
                                               Type ring) {
  return parseSlots(parser, body, ring, &results);
}

void llmc::tile::printSlotRegionResults(OpAsmPrinter &printer, Operation *,
                                        Region &body, TypeRange results, Type) {
  printSlots(printer, body, results);
}

ParseResult llmc::tile::parseIndices(
    OpAsmParser &parser,
    SmallVectorImpl<OpAsmParser::UnresolvedOperand> &indices,
    SmallVectorImpl<Type> &types) {
  Type type = parser.getBuilder().getI32Type();
  if (parser.parseLSquare() || parser.parseOperandList(indices))
    return failure();
  if (succeeded(parser.parseOptionalColon()) && parser.parseType(type))
    return failure();
  types.assign(indices.size(), type);
  return parser.parseRSquare();
}

void llmc::tile::printIndices(OpAsmPrinter &printer, Operation *,
                              OperandRange indices, TypeRange types) {
  printer << "[" << indices;
  if (!types.empty() && !types.front().isInteger(32))
    printer << " : " << types.front();
  printer << "]";
}
