// Enumerations of the `tile` dialect.
#ifndef LLMC_TILE_ENUMS_TD
#define LLMC_TILE_ENUMS_TD

include "mlir/IR/EnumAttr.td"
include "dialects/tile/TileDialect.td"

class Tile_Enum<string name, string enumSummary, list<I32EnumCase> cases>
    : I32Enum<name, enumSummary, cases> {
  let cppNamespace = "::llmc::tile";
}

// How the elements of a fragment lie over the threads of a warp or warpgroup.
def Tile_LayoutEnum : Tile_Enum<"Layout", "fragment layout", [
  I32EnumCase<"Accumulator", 0, "accumulator">,
  I32EnumCase<"HalfRows", 1, "half_rows">,
  I32EnumCase<"OperandA", 2, "operand_a">,
  I32EnumCase<"Rows", 3, "rows">]>;

def Tile_ProducePart : Tile_Enum<"ProducePart", "part of a stage's filling", [
  I32EnumCase<"Whole", 0, "whole">,
  I32EnumCase<"Begin", 1, "begin">,
  I32EnumCase<"Resume", 2, "resume">]>;

def Tile_ReduceKind : Tile_Enum<"ReduceKind", "reduction", [
  I32EnumCase<"Add", 0, "add">,
  I32EnumCase<"Max", 1, "max">,
  I32EnumCase<"Min", 2, "min">,
  I32EnumCase<"Argmax", 3, "argmax">]>;

def Tile_Scope : Tile_Enum<"Scope", "group of threads", [
  I32EnumCase<"Warp", 0, "warp">,
  I32EnumCase<"Warpgroup", 1, "warpgroup">,
  I32EnumCase<"Role", 2, "role">,
  I32EnumCase<"Block", 3, "block">]>;

def Tile_Cache : Tile_Enum<"Cache", "cache policy", [
  I32EnumCase<"Normal", 0, "normal">,
  I32EnumCase<"EvictFirst", 1, "evict_first">,
  I32EnumCase<"EvictLast", 2, "evict_last">]>;

def Tile_AtomicKind : Tile_Enum<"AtomicKind", "atomic update", [
  I32EnumCase<"Add", 0, "add">,
  I32EnumCase<"Max", 1, "max">,
  I32EnumCase<"Exchange", 2, "exchange">]>;

def Tile_Axis : Tile_Enum<"Axis", "axis of the grid", [
  I32EnumCase<"X", 0, "x">,
  I32EnumCase<"Y", 1, "y">,
  I32EnumCase<"Z", 2, "z">]>;

#endif // LLMC_TILE_ENUMS_TD
