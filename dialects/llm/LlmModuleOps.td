//===- LlmModuleOps.td - weights, kernels and launches -----*- tablegen -*-===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_DIALECTS_LLM_LLMMODULEOPS_TD
#define LLMC_DIALECTS_LLM_LLMMODULEOPS_TD

include "LlmBase.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

def Llm_ParameterOp : Llm_Op<"parameter", [Symbol]> {
  let summary = "declares a weight";
  let description = [{
    A weight of the model: its name, its logical type, and the recipe by which the
    engine writer makes it from the checkpoint. `layout` changes only how the
    elements are stored, never the logical type. A parameter with a `value` is a
    small constant (rope frequencies) and needs no recipe.

    ```mlir
    llm.parameter @model.embed_tokens.weight : tensor<49152x576xbf16> from #llm.source<"model.embed_tokens.weight">
    llm.parameter @rotary.inv_freq : tensor<32xf32> = dense<1.0> : tensor<32xf32>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<RankedTensorOf<[AnyType]>>:$type,
                       OptionalAttr<AnyAttr>:$recipe,
                       OptionalAttr<ElementsAttr>:$value,
                       OptionalAttr<AnyAttr>:$layout);
  let assemblyFormat = [{
    $sym_name `:` $type (`from` $recipe^)? (`=` $value^)? (`layout` $layout^)? attr-dict
  }];
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getType());
    }
  }];
  let hasVerifier = 1;
}

def Llm_WeightOp : Llm_PureOp<"weight",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "reads a parameter";
  let description = [{
    The tensor of a declared `llm.parameter`; the types must agree.

    ```mlir
    %w = llm.weight @lm_head.weight : tensor<49152x576xbf16>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$name);
  let results = (outs RankedTensorOf<[AnyType]>:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
}

def Llm_GroupOp : Llm_Op<"group", [
    SingleBlockImplicitTerminator<"YieldOp">, RecursiveMemoryEffects,
    DeclareOpInterfaceMethods<RegionBranchOpInterface>]> {
  let summary = "ops that will become one kernel";
  let description = [{
    What `llm-form-kernels` builds and `llm-outline-kernels` consumes: a region that
    is to run as one kernel, still in place, so that it may use any value around
    it. `anchor` names the kind of kernel.

    ```mlir
    %r = llm.group "linear" -> tensor<?x576xf32> {
      %y = llm.linear %x, %w : tensor<?x576xbf16>, tensor<576x576xbf16> -> tensor<?x576xf32>
      %s = arith.addf %y, %residual : tensor<?x576xf32>
      llm.yield %s : tensor<?x576xf32>
    }
    ```
  }];
  let arguments = (ins StrAttr:$anchor);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$anchor (`->` type($results)^)? $body attr-dict";
  let hasRegionVerifier = 1;
}

def Llm_KernelOp : Llm_Op<"kernel", [
    IsolatedFromAbove, FunctionOpInterface,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "an outlined kernel";
  let description = [{
    A function-like symbol with one block: the work of one launch. Operands are its
    block arguments in order; the yielded values become destination buffers. Equal
    kernels of different layers are one symbol. `codegen` turns each into machine
    code; `workspace` is the scratch memory in bytes that a launch needs at the
    engine's limits.

    ```mlir
    llm.kernel @norm_0(%x: tensor<?x576xf32>, %g: tensor<576xbf16>) -> tensor<?x576xbf16>
        attributes {anchor = "norm"} {
      %y = llm.rms_norm %x, %g {eps = 1.0e-5 : f64} : tensor<?x576xf32>, tensor<576xbf16> -> tensor<?x576xbf16>
      llm.yield %y : tensor<?x576xbf16>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       StrAttr:$anchor,
                       OptionalAttr<StrAttr>:$sym_visibility,
                       OptionalAttr<I64Attr>:$workspace,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name,
                                 "::mlir::FunctionType":$type,
                                 "::llvm::StringRef":$anchor)>];
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() {
      return getFunctionType().getInputs();
    }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() {
      return getFunctionType().getResults();
    }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Llm_LaunchOp : Llm_Op<"launch", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "runs a kernel";
  let description = [{
    Runs an `llm.kernel`. After `llm-plan-memory`, `offsets` holds the arena offset in
    bytes of each result and `workspace_offset` that of the scratch memory. Results
    named in `tied` (pairs of result and operand number) share the operand's buffer.

    ```mlir
    %h = llm.launch @norm_0(%x, %g) : (tensor<?x576xf32>, tensor<576xbf16>) -> tensor<?x576xbf16>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyType>:$operands,
                       OptionalAttr<DenseI64ArrayAttr>:$offsets,
                       OptionalAttr<I64Attr>:$workspace_offset,
                       OptionalAttr<DenseI64ArrayAttr>:$tied);
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = [{
    $kernel `(` $operands `)` attr-dict `:` functional-type($operands, $results)
  }];
  let hasVerifier = 1;
}

def Llm_YieldOp : Llm_Op<"yield", [
    Pure, ReturnLike, Terminator, ParentOneOf<["GroupOp", "KernelOp"]>]> {
  let summary = "results of a group or kernel";
  let description = [{
    Ends the body of `llm.group` and `llm.kernel`; its operands are the results.

    ```mlir
    llm.yield %y : tensor<?x576xbf16>
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$operands);
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
}

#endif // LLMC_DIALECTS_LLM_LLMMODULEOPS_TD
