#include "passes/linalg/Passes.h"
#include "passes/linalg/Patterns.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Func/Transforms/FuncConversions.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace llmc {
#define GEN_PASS_DEF_CONVERTLLMTOLINALG
#include "passes/linalg/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

static void appendKvTypes(KvType type, SmallVectorImpl<Type> &types) {
  auto pool = [&](int64_t dim) {
    return MemRefType::get(
        {ShapedType::kDynamic, type.getHeads(), type.getBlock(), dim},
        type.getElement());
  };
  types.push_back(pool(type.getHeadDim()));
  if (type.getVHeadDim())
    types.push_back(pool(type.getVHeadDim()));
}

HandleTypeConverter::HandleTypeConverter() {
  addConversion([](Type type) { return type; });
  addConversion(
      [](BatchType type,
         SmallVectorImpl<Type> &types) -> std::optional<LogicalResult> {
        int64_t any = ShapedType::kDynamic;
        Type i32 = IntegerType::get(type.getContext(), 32);
        types.append({MemRefType::get({any}, i32), MemRefType::get({any}, i32),
                      MemRefType::get({any, any}, i32),
                      MemRefType::get({any}, i32)});
        return success();
      });
  addConversion(
      [](KvType type,
         SmallVectorImpl<Type> &types) -> std::optional<LogicalResult> {
        appendKvTypes(type, types);
        return success();
      });
  addConversion(
      [](KvCacheType type,
         SmallVectorImpl<Type> &types) -> std::optional<LogicalResult> {
        for (KvType layer : type.getLayers())
          appendKvTypes(layer, types);
        return success();
      });
  addSourceMaterialization(
      [](OpBuilder &b, Type type, ValueRange values, Location loc) {
        return UnrealizedConversionCastOp::create(b, loc, type, values)
            .getResult(0);
      });
  addTargetMaterialization([](OpBuilder &b, TypeRange types, ValueRange values,
                              Location loc) {
    return SmallVector<Value>(
        UnrealizedConversionCastOp::create(b, loc, types, values).getResults());
  });
}

namespace {
struct ConvertLlmToLinalg
    : llmc::impl::ConvertLlmToLinalgBase<ConvertLlmToLinalg> {
  using ConvertLlmToLinalgBase::ConvertLlmToLinalgBase;

  void runOnOperation() override {
    names.clear();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(bindParameters(function)))
        return signalPassFailure();
    for (ParameterOp parameter :
         llvm::make_early_inc_range(getOperation().getOps<ParameterOp>()))
      parameter.erase();

    HandleTypeConverter converter;
    RewritePatternSet patterns(&getContext());
    populateModuleLowerings(patterns, converter);
    populatePrimitiveLowerings(patterns);
    populateDecoderLowerings(patterns);
    populateRopeLowerings(patterns);
    populateAttentionLowerings(patterns);
    populateCacheLowerings(patterns, converter);
    populateExpertLowerings(patterns);
    populateQuantLowerings(patterns);
    populateCollectiveLowerings(patterns);
    populateFunctionOpInterfaceTypeConversionPattern<func::FuncOp>(patterns,
                                                                   converter);
    populateCallOpTypeConversionPattern(patterns, converter);
    populateReturnOpTypeConversionPattern(patterns, converter);

    ConversionTarget target(getContext());
    target.addIllegalDialect<LlmDialect>();
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    target.addDynamicallyLegalOp<func::FuncOp>([&](func::FuncOp op) {
      return converter.isSignatureLegal(op.getFunctionType());
    });
    target.addDynamicallyLegalOp<func::CallOp, func::ReturnOp>(
        [&](Operation *op) { return converter.isLegal(op); });
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      return signalPassFailure();

    // Not earlier: the conversion of a signature misplaces attributes when one
    // argument becomes several.
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      ArrayRef<Attribute> parameters = names[function.getSymName()];
      unsigned first = function.getNumArguments() - parameters.size();
      for (auto [i, name] : llvm::enumerate(parameters))
        function.setArgAttr(first + i, "llm.parameter", name);
    }
  }

private:
  // The parameters that the last arguments of each function are bound to.
  llvm::StringMap<SmallVector<Attribute>> names;

  // Gives `function` one argument for each parameter of the module, in symbol
  // order, after its own; parameters with a value become constants.
  LogicalResult bindParameters(func::FuncOp function) {
    SmallVector<WeightOp> reads;
    function.walk([&](WeightOp op) { reads.push_back(op); });
    if (reads.empty())
      return success();
    if (!function.isPublic())
      return reads.front().emitError(
          "is in a private function; pass weights to it as operands");

    llvm::StringMap<BlockArgument> arguments;
    for (auto parameter : getOperation().getOps<ParameterOp>()) {
      if (parameter.getValue())
        continue;
      unsigned position = function.getNumArguments();
      if (failed(function.insertArgument(position, parameter.getTensorType(),
                                         DictionaryAttr(), parameter.getLoc())))
        return failure();
      names[function.getSymName()].push_back(
          FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
      arguments[parameter.getSymName()] = function.getArgument(position);
    }
    for (WeightOp read : reads) {
      OpBuilder builder(read);
      Value value = arguments.lookup(read.getName());
      if (!value) {
        auto parameter =
            getOperation().lookupSymbol<ParameterOp>(read.getName());
        value = arith::ConstantOp::create(
            builder, read.getLoc(), cast<TypedAttr>(*parameter.getValue()));
      }
      read.replaceAllUsesWith(value);
      read.erase();
    }
    return success();
  }
};
} // namespace
