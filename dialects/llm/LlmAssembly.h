//===- LlmAssembly.h - custom assembly directives ---------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The `custom<...>` directives of the .td files: an enum as a bare keyword, one
// type printed for two operands that share it, and the types of optional
// operands.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_DIALECTS_LLM_LLMASSEMBLY_H
#define LLMC_DIALECTS_LLM_LLMASSEMBLY_H

#include "dialects/llm/LlmDialect.h"

namespace llmc::llm {

// AttrT is an EnumAttr of this dialect; its enum class is what getValue
// returns.
template <typename AttrT>
mlir::ParseResult parseBareEnum(mlir::OpAsmParser &parser, AttrT &attr) {
  using EnumT = decltype(std::declval<AttrT>().getValue());
  llvm::StringRef keyword;
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return mlir::failure();
  std::optional<EnumT> value = symbolizeEnum<EnumT>(keyword);
  if (!value)
    return parser.emitError(loc, "unknown ")
           << AttrT::getMnemonic() << " '" << keyword << "'";
  attr = AttrT::get(parser.getContext(), *value);
  return mlir::success();
}

template <typename AttrT>
void printBareEnum(mlir::OpAsmPrinter &printer, mlir::Operation *, AttrT attr) {
  printer << stringifyEnum(attr.getValue());
}

inline mlir::ParseResult parseSameTypePair(mlir::OpAsmParser &parser,
                                           mlir::Type &first,
                                           mlir::Type &second) {
  if (parser.parseType(first))
    return mlir::failure();
  second = first;
  return mlir::success();
}

inline void printSameTypePair(mlir::OpAsmPrinter &printer, mlir::Operation *,
                              mlir::Type first, mlir::Type) {
  printer << first;
}

// The types of a norm's operands, of which gamma and beta may each be absent.
using OptionalOperand = std::optional<mlir::OpAsmParser::UnresolvedOperand>;

inline mlir::ParseResult
parseNormTypes(mlir::OpAsmParser &parser, const OptionalOperand &gamma,
               const OptionalOperand &beta, mlir::Type &inputType,
               mlir::Type &gammaType, mlir::Type &betaType) {
  if (parser.parseType(inputType) ||
      (gamma && (parser.parseComma() || parser.parseType(gammaType))) ||
      (beta && (parser.parseComma() || parser.parseType(betaType))))
    return mlir::failure();
  return mlir::success();
}

inline void printNormTypes(mlir::OpAsmPrinter &printer, mlir::Operation *,
                           mlir::Value, mlir::Value, mlir::Type inputType,
                           mlir::Type gammaType, mlir::Type betaType) {
  printer << inputType;
  for (mlir::Type type : {gammaType, betaType})
    if (type)
      printer << ", " << type;
}

} // namespace llmc::llm

#endif // LLMC_DIALECTS_LLM_LLMASSEMBLY_H
