//===- LlmAttrs.cpp - attributes of the llm dialect -----------------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// What a recipe can be checked for without the checkpoint: that it is made of
// recipes, and that its numbers make sense. Shapes are checked where tensors
// are read.
//
//===----------------------------------------------------------------------===//

#include "dialects/llm/LlmDialect.h"
#include "dialects/llm/LlmVerify.h"

using namespace mlir;
using namespace llmc::llm;

using EmitError = function_ref<InFlightDiagnostic()>;

bool llmc::llm::isRecipe(Attribute attr) {
  return isa<SourceAttr, TransposeAttr, ConcatAttr, InterleaveAttr, SliceAttr,
             OffsetAttr, CodesAttr, ScalesAttr, ZerosAttr>(attr);
}

// A part of a recipe. Codes, scales and zero points are made last: what
// rearranges rows rearranges the values that they are made from.
static LogicalResult checkRecipe(EmitError emitError, Attribute attr) {
  if (isa<CodesAttr, ScalesAttr, ZerosAttr>(attr))
    return emitError() << "expected a recipe of values, got " << attr
                       << "; quantize outermost";
  if (isRecipe(attr))
    return success();
  return emitError()
         << "expected a weight recipe such as #llm.source<...>, got " << attr;
}

static LogicalResult checkParts(EmitError emitError,
                                ArrayRef<Attribute> parts) {
  for (Attribute part : parts)
    if (failed(checkRecipe(emitError, part)))
      return failure();
  return success();
}

static LogicalResult checkDim(EmitError emitError, int64_t dim) {
  if (dim >= 0)
    return success();
  return emitError() << "expected a dim of 0 or more, got " << dim;
}

LogicalResult TransposeAttr::verify(EmitError emitError, Attribute recipe) {
  return checkRecipe(emitError, recipe);
}

LogicalResult OffsetAttr::verify(EmitError emitError, Attribute recipe,
                                 FloatAttr value) {
  return checkRecipe(emitError, recipe);
}

LogicalResult ConcatAttr::verify(EmitError emitError, ArrayRef<Attribute> parts,
                                 int64_t dim) {
  if (failed(checkParts(emitError, parts)))
    return failure();
  return checkDim(emitError, dim);
}

LogicalResult InterleaveAttr::verify(EmitError emitError,
                                     ArrayRef<Attribute> parts, int64_t dim,
                                     int64_t block) {
  if (failed(checkParts(emitError, parts)) || failed(checkDim(emitError, dim)))
    return failure();
  if (block < 1)
    return emitError() << "expected a block of 1 or more, got " << block;
  return success();
}

LogicalResult SliceAttr::verify(EmitError emitError, Attribute recipe,
                                int64_t dim, int64_t begin, int64_t end) {
  if (failed(checkRecipe(emitError, recipe)) ||
      failed(checkDim(emitError, dim)))
    return failure();
  if (begin < 0 || begin >= end)
    return emitError() << "expected a range with 0 <= begin < end, got ["
                       << begin << ", " << end << ")";
  return success();
}

//===----------------------------------------------------------------------===//
// Quantization
//===----------------------------------------------------------------------===//

static LogicalResult checkCodes(EmitError emitError, Type type, int64_t group,
                                bool zeros = false) {
  if (!isa<Float8E4M3FNType>(type) && !type.isSignlessInteger(8) &&
      !type.isSignlessInteger(4))
    return emitError() << "expected codes of type f8E4M3FN, i8 or i4, got "
                       << type;
  if (zeros && !type.isSignlessInteger())
    return emitError()
           << "expected codes of type i8 or i4, which can have zero "
              "points, got "
           << type;
  if (group < 0)
    return emitError() << "expected a group of 0 (the whole row) or more, got "
                       << group;
  return success();
}

LogicalResult QuantizationAttr::verify(EmitError emitError, Type weight,
                                       int64_t group, Type input, bool zeros) {
  if (failed(checkCodes(emitError, weight, group, zeros)))
    return failure();
  if (input && input != weight)
    return emitError() << "expected input codes of the type of the weight's, "
                       << weight << ", got " << input;
  return success();
}

LogicalResult CodesAttr::verify(EmitError emitError, Attribute recipe, Type to,
                                int64_t group, bool zeros) {
  if (failed(checkRecipe(emitError, recipe)))
    return failure();
  return checkCodes(emitError, to, group, zeros);
}

LogicalResult ScalesAttr::verify(EmitError emitError, Attribute recipe, Type to,
                                 int64_t group, bool zeros) {
  return CodesAttr::verify(emitError, recipe, to, group, zeros);
}

LogicalResult ZerosAttr::verify(EmitError emitError, Attribute recipe, Type to,
                                int64_t group) {
  return CodesAttr::verify(emitError, recipe, to, group, /*zeros=*/true);
}

LogicalResult PanelLayoutAttr::verify(EmitError emitError, int64_t rows,
                                      int64_t group) {
  if (rows < 1 || group < 1)
    return emitError() << "expected rows and group of 1 or more, got " << rows
                       << " and " << group;
  return success();
}
