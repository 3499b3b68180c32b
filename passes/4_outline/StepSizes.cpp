//===- StepSizes.cpp - dynamic sizes in terms of T and R ------------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/4_outline/StepSizes.h"

#include "passes/4_outline/StepFunction.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace llmc {

StepSizes::StepSizes(func::FuncOp step) {
  for (BlockArgument argument : step.getArguments())
    if (const StepInput *input = stepInput(argument.getArgNumber()))
      tensors[argument] = {StepSize{input->rows, 1}};
  visitBlock(step.getBody().front());
}

std::optional<StepSize> StepSizes::dim(Value tensor, int64_t index) const {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!type.isDynamicDim(index))
    return StepSize{0, type.getDimSize(index)};
  auto known = tensors.find(tensor);
  if (known == tensors.end())
    return std::nullopt;
  return known->second[index];
}

StepSizes::Shape StepSizes::shapeOrUnknown(Value tensor) const {
  Shape shape;
  for (int64_t i = 0; i < cast<RankedTensorType>(tensor.getType()).getRank();
       ++i)
    shape.push_back(dim(tensor, i));
  return shape;
}

std::optional<SmallVector<StepSize>> StepSizes::shape(Value tensor) const {
  SmallVector<StepSize> known;
  for (std::optional<StepSize> size : shapeOrUnknown(tensor)) {
    if (!size)
      return std::nullopt;
    known.push_back(*size);
  }
  return known;
}

std::optional<StepSize> StepSizes::index(OpFoldResult value) const {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return StepSize{0, *constant};
  auto known = indexes.find(dyn_cast<Value>(value));
  if (known == indexes.end())
    return std::nullopt;
  return known->second;
}

void StepSizes::copy(ValueRange from, ValueRange to) {
  for (auto [source, target] : llvm::zip_equal(from, to))
    if (isa<RankedTensorType>(source.getType()))
      tensors[target] = shapeOrUnknown(source);
}

void StepSizes::visitBlock(Block &block) {
  for (Operation &op : block)
    visit(&op);
}

// A kernel is visited once a launch: equal kernels may run on T and on R rows.
void StepSizes::visitLaunch(llm::LaunchOp launch) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<llm::KernelOp>(
      launch, launch.getKernelAttr());
  if (!kernel)
    return;
  Block &body = kernel.getBody().front();
  copy(launch.getOperands(), body.getArguments());
  visitBlock(body);
  copy(body.getTerminator()->getOperands(), launch.getResults());
}

// The product of the sizes of a reassociation group, of which one may be
// dynamic.
static std::optional<StepSize>
product(ArrayRef<std::optional<StepSize>> sizes) {
  StepSize result{0, 1};
  for (std::optional<StepSize> size : sizes) {
    if (!size || (size->symbol && result.symbol))
      return std::nullopt;
    result.symbol = result.symbol ? result.symbol : size->symbol;
    result.factor *= size->factor;
  }
  return result;
}

void StepSizes::visit(Operation *op) {
  TypeSwitch<Operation *>(op)
      .Case([&](llm::GroupOp group) {
        Block &body = group.getBody().front();
        visitBlock(body);
        copy(body.getTerminator()->getOperands(), group.getResults());
      })
      .Case([&](llm::LaunchOp launch) { visitLaunch(launch); })
      .Case([&](tensor::DimOp dimOp) {
        std::optional<int64_t> index = dimOp.getConstantIndex();
        if (std::optional<StepSize> size =
                index ? dim(dimOp.getSource(), *index) : std::nullopt)
          indexes[dimOp] = *size;
      })
      .Case([&](llm::GatherRowsOp gather) {
        Shape shape = shapeOrUnknown(gather.getInput());
        shape[0] = dim(gather.getRows(), 0);
        tensors[gather.getResult()] = shape;
      })
      .Case([&](llm::TransposeOp transpose) {
        Shape shape;
        for (int64_t source : transpose.getPermutation())
          shape.push_back(dim(transpose.getInput(), source));
        tensors[transpose.getResult()] = shape;
      })
      .Case([&](llm::BroadcastOp broadcast) {
        RankedTensorType input = broadcast.getInput().getType();
        RankedTensorType type = broadcast.getType();
        int64_t lead = type.getRank() - input.getRank();
        auto sizes = broadcast.getSizes().begin();
        Shape shape;
        for (int64_t i = 0; i < type.getRank(); ++i) {
          if (!type.isDynamicDim(i))
            shape.push_back(StepSize{0, type.getDimSize(i)});
          else if (i >= lead && input.isDynamicDim(i - lead))
            shape.push_back(dim(broadcast.getInput(), i - lead));
          else
            shape.push_back(index(Value(*sizes++)));
        }
        tensors[broadcast.getResult()] = shape;
      })
      .Case([&](tensor::EmptyOp empty) {
        Shape shape;
        for (OpFoldResult size : empty.getMixedSizes())
          shape.push_back(index(size));
        tensors[empty.getResult()] = shape;
      })
      .Case([&](tensor::ExtractSliceOp slice) {
        llvm::SmallBitVector dropped = slice.getDroppedDims();
        Shape shape;
        for (auto [i, size] : llvm::enumerate(slice.getMixedSizes()))
          if (!dropped.test(i))
            shape.push_back(index(size));
        tensors[slice.getResult()] = shape;
      })
      .Case([&](tensor::CollapseShapeOp collapse) {
        Shape from = shapeOrUnknown(collapse.getSrc()), shape;
        for (ReassociationIndices &group : collapse.getReassociationIndices())
          shape.push_back(
              product(ArrayRef(from).slice(group.front(), group.size())));
        tensors[collapse.getResult()] = shape;
      })
      .Case([&](tensor::ExpandShapeOp expand) {
        Shape shape = shapeOrUnknown(expand.getResult());
        for (auto [source, group] :
             llvm::enumerate(expand.getReassociationIndices())) {
          std::optional<StepSize> whole = dim(expand.getSrc(), source);
          int64_t known = 1, unknown = -1;
          for (int64_t i : group)
            if (shape[i])
              known *= shape[i]->factor;
            else
              unknown = i;
          if (unknown >= 0 && whole && known && whole->factor % known == 0)
            shape[unknown] = StepSize{whole->symbol, whole->factor / known};
        }
        tensors[expand.getResult()] = shape;
      })
      .Default([&](Operation *other) { setFromOperands(other); });
}

// Every other op works row by row: its results have the rows of its operands,
// provided that these agree.
void StepSizes::setFromOperands(Operation *op) {
  for (Value result : op->getResults())
    tensors.erase(result);
  std::optional<StepSize> rows;
  for (Value operand : op->getOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (!type)
      continue;
    for (int64_t i = 0; i < type.getRank(); ++i) {
      if (!type.isDynamicDim(i))
        continue;
      std::optional<StepSize> size = dim(operand, i);
      if (!size || (rows && *rows != *size))
        return;
      rows = size;
    }
  }
  if (!rows)
    return;
  for (Value result : op->getResults())
    if (auto type = dyn_cast<RankedTensorType>(result.getType()))
      tensors[result] = Shape(type.getRank(), rows);
}

} // namespace llmc
