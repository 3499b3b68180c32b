// Passes of the phase `host`.
#ifndef LLMC_PASSES_HOST_TD
#define LLMC_PASSES_HOST_TD

include "mlir/Pass/PassBase.td"

def HostChooseLayouts : Pass<"host-choose-layouts", "::mlir::ModuleOp"> {
  let summary = "stores the weights of linears in panels";
  let description = [{
    Sets the `layout` of each parameter that an outlined linear kernel multiplies by,
    and marks the operands of the kernels that read it with `llm.layout`: the engine
    writer packs the weight, the kernels know how it lies. A parameter that an
    embedding shares with a linear is read from panels there too.

    A kernel whose body the panel kernel cannot do (see LinearShape.h) keeps its
    weight in rows and is lowered row by row.

    ```mlir
    llm.parameter @w : tensor<960x576xbf16> from #llm.source<"w"> layout #llm.panels<rows = 32, group = 1>
    llm.kernel @linear_0(%x: tensor<?x576xf32>, %w: tensor<960x576xbf16> {llm.layout = #llm.panels<rows = 32, group = 1>}) -> ...
    ```
  }];
  let dependentDialects = ["::llmc::llm::LlmDialect"];
  let options = [
    Option<"rows", "rows", "int64_t", "32", "Rows of a panel: two vectors of f32">
  ];
}

defvar vectorBits =
  Option<"vectorBits", "vector-bits", "int64_t", "512", "Width of the target's vectors">;

defvar hostDialects = [
  "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
  "::mlir::func::FuncDialect", "::mlir::linalg::LinalgDialect",
  "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
  "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
  "::mlir::tensor::TensorDialect", "::mlir::vector::VectorDialect"
];

def HostLowerLinear : Pass<"host-lower-linear", "::mlir::ModuleOp"> {
  let summary = "linear kernels as products with panels";
  let description = [{
    Turns each linear kernel whose weight is stored in panels into a function
    `void entry(const uint64_t *args, int64_t tile)`. A tile is a block of rows times
    one panel: blocks of up to 12 rows (6 without AVX-512) keep their sums in
    registers over the whole depth while the panel streams through the first-level
    cache once a block; the rest of the kernel's body (bias, activation or GLU,
    scale, residual) is evaluated on those registers before they are stored.

    A row has the same bits in any block: each of its sums is one chain of
    multiply-adds, and `host.ordered_sums` keeps later passes from reordering the rest.

    Attributes of the function (Entry.h) say how to launch it.

    ```mlir
    llm.kernel @linear_0(%x: tensor<?x576xf32>, %w: tensor<576x576xbf16> {llm.layout = ...}, %r: tensor<?x576xf32>) -> tensor<?x576xf32> { ... }
    // becomes
    func.func @linear_0(%args: !llvm.ptr, %tile: i64) attributes {host.rows_per_tile = 48 : i64, host.column_tiles = 18 : i64, ...}
    ```
  }];
  let dependentDialects = hostDialects;
  let options = [vectorBits];
}

def HostLowerAttention : Pass<"host-lower-attention", "::mlir::ModuleOp"> {
  let summary = "attention kernels as online softmax over pages";
  let description = [{
    Turns each kernel around `llm.paged_attention` into a function. A tile is one KV
    head and a block of tokens, with the query heads of that KV head as rows; a block
    may span sequences. Page by page: keys are transposed into scratch memory, scores
    are a product of rows in registers with them, the softmax is kept relative to the
    largest score so far, values are added by a second product. Keys past the end of
    a sequence are masked and their values never read.

    Preconditions: float32 queries, even head dimensions; vectors are shortened until
    head dimensions and block size are multiples of them.

    ```mlir
    llm.kernel @attention_0(%q: tensor<?x9x64xf32>, %kv: !llm.kv<...>, %b: !llm.batch) -> tensor<?x9x64xf32> { ... }
    // becomes
    func.func @attention_0(%args: !llvm.ptr, %tile: i64) attributes {host.rows_per_tile = 16 : i64, host.column_tiles = 3 : i64, ...}
    ```
  }];
  let dependentDialects = hostDialects;
  let options = [vectorBits];
}

def HostTileRows : Pass<"host-tile-rows", "::mlir::ModuleOp"> {
  let summary = "kernels as loops over rows";
  let description = [{
    Turns every remaining `llm.kernel` into a function that runs the kernel's body on
    one row after the other: all dynamic sizes become 1 and the body keeps its llm
    ops, which `convert-llm-to-linalg` then lowers to static loops whose
    intermediate values stay in the first-level cache. A tile is a block of rows.

    Preconditions: every dynamic dimension in the body counts the rows of the launch,
    except the leading one of what `llm.gather_rows` selects from. Kernels that mix
    rows (attention) have been lowered before.

    ```mlir
    llm.kernel @norm_0(%x: tensor<?x576xf32>, ...) { %y = llm.rms_norm %x ... : tensor<?x576xf32> ... }
    // becomes
    func.func @norm_0(%args: !llvm.ptr, %tile: i64) {
      scf.for %row = %begin to %end step %c1 {
        %x = bufferization.to_tensor %x_row : memref<1x576xf32, ...> to tensor<1x576xf32>
        %y = llm.rms_norm %x ... : tensor<1x576xf32>
        bufferization.materialize_in_destination %y in restrict writable %y_row
      }
    }
    ```
  }];
  let dependentDialects = !listconcat(hostDialects, ["::llmc::llm::LlmDialect"]);
}

def HostExpandMath : Pass<"host-expand-math"> {
  let summary = "elementary functions as polynomials, arithmetic as vector loops need it";
  let description = [{
    Lets products be fused and sums be reordered, the latter not in functions with
    `host.ordered_sums` (fast-math flags `contract`, `nsz`, `reassoc`; never `nnan` or
    `ninf`: masked scores are infinite), then expands exp,
    tanh, erf and log, so that loops over them vectorise. Sine and cosine stay calls:
    rotary angles are too large for the polynomials.

    ```mlir
    %y = math.exp %x : f32
    // becomes the range reduction and polynomial of `math-polynomial-approximation`
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"
  ];
}

def HostExpandCopies : Pass<"host-expand-copies"> {
  let summary = "copies of buffers as loops";
  let description = [{
    Turns `memref.copy` into a linalg op: LLVM lowers the former to a call of a
    library that host kernels do not link.

    ```mlir
    memref.copy %a, %b : memref<1x9x32xf32> to memref<1x9x32xf32, strided<[576, 64, 1]>>
    // becomes
    linalg.generic ... ins(%a) outs(%b) { linalg.yield %in }
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

#endif // LLMC_PASSES_HOST_TD
