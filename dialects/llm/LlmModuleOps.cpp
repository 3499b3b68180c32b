//===- LlmModuleOps.cpp - weights, kernels and launches -------------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/llm/LlmDialect.h"
#include "dialects/llm/LlmVerify.h"

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace llmc::llm;

//===----------------------------------------------------------------------===//
// parameter, weight
//===----------------------------------------------------------------------===//

LogicalResult ParameterOp::verify() {
  RankedTensorType type = getTensorType();
  if (!type.hasStaticShape())
    return emitOpError() << "expected a static shape, got " << type;
  std::optional<ElementsAttr> value = getValue();
  if (!getRecipe() && !value)
    return emitOpError("expected a recipe (`from`) or a value (`=`)");
  if (getRecipe() && value)
    return emitOpError("has both a recipe and a value; expected one of them");
  if (getRecipe() && !isRecipe(*getRecipe()))
    return emitOpError()
           << "expected a weight recipe such as #llm.source<...>, "
              "got "
           << *getRecipe();
  if (value && value->getShapedType() != type)
    return emitOpError() << "expected a value of type " << type << ", got "
                         << value->getShapedType();
  if (!getLayout())
    return success();
  if (!isa<PanelLayoutAttr>(*getLayout()))
    return emitOpError() << "expected a layout such as #llm.panels<...>, got "
                         << *getLayout();
  if (type.getRank() != 2)
    return emitOpError() << "expected a layout on a parameter of rank 2, got "
                         << type;
  return success();
}

LogicalResult WeightOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto parameter =
      symbols.lookupNearestSymbolFrom<ParameterOp>(*this, getNameAttr());
  if (!parameter)
    return emitOpError() << "expected a declared llm.parameter, found no @"
                         << getName();
  if (parameter.getTensorType() != getType())
    return emitOpError() << "reads @" << getName() << " as " << getType()
                         << ", but it is declared as "
                         << parameter.getTensorType();
  return success();
}

//===----------------------------------------------------------------------===//
// group
//===----------------------------------------------------------------------===//

LogicalResult GroupOp::verifyRegions() {
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (yield.getOperandTypes() != getResultTypes())
    return emitOpError() << "yields " << yield.getOperandTypes()
                         << ", but has results " << getResultTypes();
  return success();
}

void GroupOp::getSuccessorRegions(RegionBranchPoint point,
                                  SmallVectorImpl<RegionSuccessor> &regions) {
  if (point.isParent())
    regions.push_back(RegionSuccessor(&getBody()));
  else
    regions.push_back(RegionSuccessor(getOperation(), getResults()));
}

//===----------------------------------------------------------------------===//
// kernel, launch
//===----------------------------------------------------------------------===//

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                     FunctionType type, StringRef anchor) {
  state.addAttribute(SymbolTable::getSymbolAttrName(),
                     builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  state.addAttribute(getAnchorAttrName(state.name),
                     builder.getStringAttr(anchor));
  Region *body = state.addRegion();
  Block *block = new Block();
  body->push_back(block);
  for (Type input : type.getInputs())
    block->addArgument(input, state.location);
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  auto buildType = [](Builder &builder, ArrayRef<Type> arguments,
                      ArrayRef<Type> results,
                      function_interface_impl::VariadicFlag, std::string &) {
    return builder.getFunctionType(arguments, results);
  };
  if (function_interface_impl::parseFunctionOp(
          parser, result, /*allowVariadic=*/false,
          getFunctionTypeAttrName(result.name), buildType,
          getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name)))
    return failure();
  ensureTerminator(*result.regions.front(), parser.getBuilder(),
                   result.location);
  return success();
}

void KernelOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(
      printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
      getArgAttrsAttrName(), getResAttrsAttrName());
}

LogicalResult KernelOp::verifyRegions() {
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (yield.getOperandTypes() != getResultTypes())
    return emitOpError() << "yields " << yield.getOperandTypes()
                         << ", but returns " << getResultTypes();
  return success();
}

LogicalResult KernelOp::verify() {
  if (IntegerAttr workspace = getWorkspaceAttr();
      workspace && workspace.getInt() < 0)
    return emitOpError() << "expected a workspace of 0 or more bytes, got "
                         << workspace.getInt();
  return success();
}

LogicalResult LaunchOp::verify() {
  std::optional<ArrayRef<int64_t>> offsets = getOffsets();
  if (offsets && offsets->size() != getNumResults())
    return emitOpError() << "expected one arena offset for each of "
                         << getNumResults() << " results, got "
                         << offsets->size();
  std::optional<ArrayRef<int64_t>> tied = getTied();
  if (!tied)
    return success();
  if (tied->size() % 2)
    return emitOpError("expected `tied` to hold (result, operand) pairs");
  llvm::SmallDenseSet<int64_t> results, operands;
  for (size_t i = 0; i < tied->size(); i += 2) {
    int64_t result = (*tied)[i], operand = (*tied)[i + 1];
    if (result < 0 || result >= int64_t(getNumResults()) || operand < 0 ||
        operand >= int64_t(getOperands().size()))
      return emitOpError() << "ties result " << result << " to operand "
                           << operand << ", but there are " << getNumResults()
                           << " results and " << getOperands().size()
                           << " operands";
    if (getResult(result).getType() != getOperands()[operand].getType())
      return emitOpError() << "ties result " << result << " of type "
                           << getResult(result).getType() << " to operand "
                           << operand << " of type "
                           << getOperands()[operand].getType();
    if (!results.insert(result).second || !operands.insert(operand).second)
      return emitOpError() << "ties result " << result << " or operand "
                           << operand << " twice";
  }
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel =
      symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError() << "expected an llm.kernel, found no @" << getKernel();
  if (kernel.getArgumentTypes() != TypeRange(getOperands()) ||
      kernel.getResultTypes() != TypeRange(getResults()))
    return emitOpError() << "launches @" << getKernel() << " as "
                         << FunctionType::get(getContext(),
                                              getOperands().getTypes(),
                                              getResultTypes())
                         << ", but it is " << kernel.getFunctionType();
  return success();
}

// A kernel reads or writes the KV cache when it is given one; everything else
// is a value. The kernel's body is not consulted: the symbol may be anywhere.
void LaunchOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  for (OpOperand &operand : getOperation()->getOpOperands()) {
    if (!isa<KvType, KvCacheType>(operand.get().getType()))
      continue;
    effects.emplace_back(MemoryEffects::Read::get(), &operand);
    effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
}
