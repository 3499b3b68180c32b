//===- MergedParameter.cpp - one parameter out of several -----------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/3_optimize/MergedParameter.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace llmc;

MergeRecipe MergeRecipe::concat() {
  return MergeRecipe([](ArrayRef<Attribute> parts) -> Attribute {
    return llm::ConcatAttr::get(parts[0].getContext(), parts, /*dim=*/0);
  });
}

MergeRecipe MergeRecipe::interleave(int64_t block) {
  return MergeRecipe([=](ArrayRef<Attribute> parts) -> Attribute {
    return llm::InterleaveAttr::get(parts[0].getContext(), parts, /*dim=*/0,
                                    block);
  });
}

MergeRecipe MergeRecipe::interleaveHalves(int64_t block, int64_t half,
                                          bool gateFirst) {
  return MergeRecipe([=](ArrayRef<Attribute> parts) -> Attribute {
    MLIRContext *context = parts[0].getContext();
    Attribute first = llm::SliceAttr::get(context, parts[0], 0, 0, half);
    Attribute second =
        llm::SliceAttr::get(context, parts[0], 0, half, 2 * half);
    if (!gateFirst)
      std::swap(first, second);
    return llm::InterleaveAttr::get(context, {first, second}, /*dim=*/0, block);
  });
}

static llm::ParameterOp parameterOf(Value weight) {
  auto read = weight.getDefiningOp<llm::WeightOp>();
  return read ? SymbolTable::lookupNearestSymbolFrom<llm::ParameterOp>(
                    read, read.getNameAttr())
              : nullptr;
}

bool llmc::isMergeableWeight(Value weight) {
  llm::ParameterOp parameter = parameterOf(weight);
  return parameter && parameter.getRecipeAttr() && !parameter.getLayoutAttr();
}

// "q_proj", "k_proj", "v_proj" -> "qkv_proj"; "gate_proj", "up_proj" ->
// "gate_up_proj": what the parts share at their end is said once.
static std::string joinWords(ArrayRef<StringRef> words) {
  StringRef suffix = words[0];
  for (StringRef word : words)
    while (!word.ends_with(suffix))
      suffix = suffix.drop_front();
  bool single = llvm::all_of(
      words, [&](StringRef word) { return word.size() <= suffix.size() + 1; });
  auto stems = llvm::map_range(
      words, [&](StringRef word) { return word.drop_back(suffix.size()); });
  return llvm::join(stems, single ? "" : "_") + suffix.str();
}

std::string llmc::mergedName(ArrayRef<StringRef> names) {
  if (names.size() == 1)
    return (names[0] + ".interleaved").str();
  SmallVector<SmallVector<StringRef>> parts;
  for (StringRef name : names) {
    parts.emplace_back();
    name.split(parts.back(), '.');
  }
  if (!llvm::all_equal(llvm::map_range(
          parts, [](ArrayRef<StringRef> words) { return words.size(); })))
    return llvm::join(names, "+");
  SmallVector<std::string> merged;
  for (size_t word = 0; word < parts[0].size(); ++word) {
    SmallVector<StringRef> column;
    for (ArrayRef<StringRef> words : parts)
      column.push_back(words[word]);
    merged.push_back(llvm::all_equal(column) ? column[0].str()
                                             : joinWords(column));
  }
  return llvm::join(merged, ".");
}

Value llmc::mergeWeights(ArrayRef<Value> weights, const MergeRecipe &recipe,
                         SymbolTable &symbols, OpBuilder &builder) {
  SmallVector<StringRef> names;
  SmallVector<Attribute> recipes;
  SmallVector<int64_t> shape;
  llm::ParameterOp first = parameterOf(weights.front());
  for (Value weight : weights) {
    llm::ParameterOp parameter = parameterOf(weight);
    names.push_back(parameter.getSymName());
    recipes.push_back(parameter.getRecipeAttr());
    ArrayRef<int64_t> part = parameter.getTensorType().getShape();
    if (shape.empty())
      shape.assign(part.begin(), part.end());
    else
      shape[0] += part[0];
  }
  auto type =
      RankedTensorType::get(shape, first.getTensorType().getElementType());
  OpBuilder declarations(first);
  auto parameter = llm::ParameterOp::create(
      declarations, first.getLoc(),
      declarations.getStringAttr(mergedName(names)), TypeAttr::get(type),
      recipe(recipes), /*value=*/ElementsAttr(), /*layout=*/Attribute());
  StringAttr symbol = symbols.insert(parameter, first->getIterator());
  return llm::WeightOp::create(builder, weights.front().getLoc(), type,
                               FlatSymbolRefAttr::get(symbol));
}
