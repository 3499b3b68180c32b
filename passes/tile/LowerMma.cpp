// The portable path: ldmatrix and mma.sync.
#include "passes/tile/Lowering.h"

using namespace mlir;
using namespace llmc::tile;

namespace {

/// Addresses of 8x8 matrices in a tile. Lane l of ldmatrix x4 gives the address
/// of row l % 8 of matrix l / 8.
struct MatrixAddress {
  /// `rowBit`: which bit of the matrix index moves 8 rows down; the other one
  /// moves 8 columns right.
  MatrixAddress(Emitter &e, SmemType tile, Value base, Value lane, int rowBit,
                Value firstRow)
      : e(e), tile(tile), base(base) {
    Value row = e.rem(lane, 8), matrix = e.rem(e.div(lane, 8), 4);
    Value low = e.rem(matrix, 2), high = e.div(matrix, 2);
    Value down = rowBit == 0 ? low : high, right = rowBit == 0 ? high : low;
    int64_t span = tile.getSwizzle();
    right = e.mul(right, 16);
    if (span)
      right =
          e.bitXor(right, e.shl(e.rem(e.div(row, 128 / span), span / 16), 4));
    rowBytes = span ? span : tile.getShape()[1] * tile.getElementBytes();
    row = e.add(row, e.mul(down, 8));
    if (firstRow)
      row = e.add(firstRow, row);
    lineStart = e.mul(row, rowBytes);
    chunk = right;
  }

  /// Address of the block whose corner is (row, column); 8-row, 16-column
  /// steps.
  Value at(int64_t row, int64_t column) const {
    int64_t bytes = column * tile.getElementBytes();
    int64_t fixed = row * rowBytes;
    Value inLine = chunk;
    if (int64_t span = tile.getSwizzle()) {
      fixed += bytes / span * tile.getSlabBytes();
      inLine = e.bitXor(chunk, bytes % span);
    } else {
      fixed += bytes;
    }
    return e.offset(base, e.add(e.add(lineStart, inLine), fixed));
  }

  /// `count` 32-bit registers of the matrices there.
  SmallVector<Value> load(int64_t row, int64_t column, int64_t count,
                          bool transpose) const {
    MLIRContext *context = e.b.getContext();
    Type i32 = e.b.getI32Type();
    Type result = LLVM::LLVMStructType::getLiteral(
        context, SmallVector<Type>(count, i32));
    Value loaded = NVVM::LdMatrixOp::create(
        e.b, e.loc, result, at(row, column), count,
        transpose ? NVVM::MMALayout::col : NVVM::MMALayout::row,
        NVVM::LdStMatrixShapeAttr::get(context, 8, 8),
        NVVM::LdStMatrixEltType::B16);
    SmallVector<Value> registers;
    for (int64_t i = 0; i < count; ++i)
      registers.push_back(e.extract(loaded, i));
    return registers;
  }

  Emitter &e;
  SmemType tile;
  Value base, lineStart, chunk;
  int64_t rowBytes;
};

struct LoadMatrixPattern : TilePattern<LoadMatrixOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(LoadMatrixOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    const ThreadPlace &place = kernel.place(op);
    SmemType tile = op.getTile().getType();
    FragType type = op.getResult().getType();
    Value firstRow;
    if (tile.getShape()[0] == 64)
      firstRow = e.mul(e.rem(place.warp, 4), 16);
    MatrixAddress address(e, tile, adaptor.getTile(), place.lane, 0, firstRow);
    Value storage = e.undef(fragmentStorage(type));
    Type pair = VectorType::get({2}, type.getElementType());
    for (int64_t k = 0; k < type.getShape()[1] / 16; ++k)
      for (auto [i, value] : llvm::enumerate(address.load(0, 16 * k, 4, false)))
        storage = e.insert(
            storage,
            LLVM::BitcastOp::create(rewriter, op.getLoc(), pair, value),
            4 * k + i);
    rewriter.replaceOp(op, storage);
    return success();
  }
};

struct MmaPattern : TilePattern<MmaOp> {
  using TilePattern::TilePattern;

  LogicalResult
  matchAndRewrite(MmaOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    SmemType tile = op.getB().getType();
    bool transposed = op.getTransposeB();
    ArrayRef<int64_t> shape = tile.getShape();
    int64_t n = shape[transposed ? 1 : 0], k = shape[transposed ? 0 : 1];
    Type element = tile.getElementType();

    // The four matrices cover 16 columns of N and 16 of K. Stored N x K, the
    // second matrix lies to the right; stored K x N, below.
    MatrixAddress address(e, tile, adaptor.getB(), kernel.place(op).lane,
                          transposed ? 0 : 1, Value());
    ValueRange as = adaptor.getA(), accs = adaptor.getAcc();
    SmallVector<SmallVector<Value>> sums(as.size());
    for (auto [acc, values] : llvm::zip(accs, sums))
      for (int64_t i = 0; i < n / 2; ++i)
        values.push_back(e.extract(acc, i));
    for (int64_t kk = 0; kk < k / 16; ++kk) {
      SmallVector<SmallVector<Value>> a;
      for (Value storage : as)
        a.push_back(operand(e, element, storage, kk));
      for (int64_t j = 0; j < n; j += 16) {
        int64_t blocks = std::min<int64_t>(2, (n - j) / 8);
        int64_t row = transposed ? 16 * kk : j;
        int64_t column = transposed ? j : 16 * kk;
        SmallVector<Value> b =
            address.load(row, column, 2 * blocks, transposed);
        for (auto [rows, values] : llvm::zip(a, sums))
          for (int64_t block = 0; block < blocks; ++block)
            multiply(e, element, rows, ArrayRef(b).slice(2 * block, 2),
                     MutableArrayRef(values).slice((j / 8 + block) * 4, 4));
      }
    }
    SmallVector<Value> results;
    for (auto [acc, values] : llvm::zip(accs, sums)) {
      Value storage = e.undef(acc.getType());
      for (auto [i, sum] : llvm::enumerate(values))
        storage = e.insert(storage, sum, i);
      results.push_back(storage);
    }
    rewriter.replaceOp(op, results);
    return success();
  }

  /// The four registers of columns 16 kk to 16 kk + 15 of an A.
  SmallVector<Value> operand(Emitter &e, Type element, Value storage,
                             int64_t kk) const {
    SmallVector<Value> registers;
    for (int64_t i = 0; i < 4; ++i) {
      Value pair = e.extract(storage, 4 * kk + i);
      if (!element.isF16())
        pair = LLVM::BitcastOp::create(e.b, e.loc, e.b.getI32Type(), pair);
      registers.push_back(pair);
    }
    return registers;
  }

  void multiply(Emitter &e, Type element, ArrayRef<Value> a, ArrayRef<Value> b,
                MutableArrayRef<Value> c) const {
    SmallVector<Value> bs(b);
    if (element.isF16())
      for (Value &value : bs)
        value = LLVM::BitcastOp::create(e.b, e.loc,
                                        VectorType::get({2}, element), value);
    Type f32 = e.b.getF32Type();
    Type result = LLVM::LLVMStructType::getLiteral(e.b.getContext(),
                                                   SmallVector<Type>(4, f32));
    NVVM::MMATypes type =
        element.isF16() ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
    Value product = NVVM::MmaOp::create(
        e.b, e.loc, result, a, bs, c, ArrayRef<int64_t>{16, 8, 16},
        std::nullopt, std::nullopt, std::array{type, type},
        std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
    for (int64_t i = 0; i < 4; ++i)
      c[i] = e.extract(product, i);
  }
};

} // namespace

void llmc::tile::populateMmaPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns,
                                     const KernelLowering &kernel) {
  patterns.add<LoadMatrixPattern, MmaPattern>(converter, patterns.getContext(),
                                              kernel);
}
