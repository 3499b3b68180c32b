// Elementwise work on fragments, row reductions, conversions.
#include "passes/tile/Lowering.h"

using namespace mlir;
using namespace llmc::tile;

namespace {

/// Registers of a fragment, by place: column block j, row half h, neighbour n.
struct Registers {
  Registers(FragType type) : type(type), packed(isPacked(type)) {
    halves = type.getLayout() == Layout::HalfRows ? 1 : 2;
    blocks = type.getLayout() == Layout::Rows ? 1 : type.getShape()[1] / 8;
  }

  Value get(Emitter &e, Value storage, int64_t j, int64_t h, int64_t n) const {
    if (type.getLayout() == Layout::Rows)
      return e.extract(storage, h);
    if (packed)
      return e.element(e.extract(storage, j * halves + h), n);
    return e.extract(storage, (j * halves + h) * 2 + n);
  }

  Value getPair(Emitter &e, Value storage, int64_t j, int64_t h) const {
    if (packed)
      return e.extract(storage, j * halves + h);
    return e.pair(get(e, storage, j, h, 0), get(e, storage, j, h, 1));
  }

  FragType type;
  bool packed;
  int64_t halves, blocks;
};

/// Collects the registers of a result and packs them in the end.
struct Builder {
  Builder(FragType type) : registers(type) {
    values.resize(type.getThreadElements());
  }
  void set(int64_t j, int64_t h, int64_t n, Value value) {
    int64_t index = registers.type.getLayout() == Layout::Rows
                        ? h
                        : (j * registers.halves + h) * 2 + n;
    values[index] = value;
  }
  void setPair(Emitter &e, int64_t j, int64_t h, Value pair) {
    if (registers.packed) {
      values[(j * registers.halves + h) * 2] = pair;
      return;
    }
    set(j, h, 0, e.element(pair, 0));
    set(j, h, 1, e.element(pair, 1));
  }
  Value finish(Emitter &e) {
    Value storage = e.undef(fragmentStorage(registers.type));
    int64_t step = registers.packed ? 2 : 1;
    for (int64_t i = 0; i < int64_t(values.size()); i += step) {
      Value value = values[i];
      if (registers.packed && !isa<VectorType>(value.getType()))
        value = e.pair(value, values[i + 1]);
      storage = e.insert(storage, value, i / step);
    }
    return storage;
  }
  Registers registers;
  SmallVector<Value> values;
};

//===----------------------------------------------------------------------===//
// tile.map and tile.epilogue
//===----------------------------------------------------------------------===//

/// Clones the body once per element (or pair); gives the results it yields.
template <typename Op>
SmallVector<Value>
emitElementwise(Op op, typename Op::Adaptor adaptor, TypeRange resultTypes,
                const ThreadPlace &place, ConversionPatternRewriter &rewriter) {
  Emitter e(rewriter, op.getLoc());
  auto fragmentType = [&](unsigned i) {
    return cast<FragType>(op.getFragments()[i].getType());
  };
  unsigned count = op.getFragments().size();
  FragType matrix = fragmentType(0);
  for (unsigned i = 0; i < count; ++i)
    if (fragmentType(i).getLayout() != Layout::Rows)
      matrix = fragmentType(i);
  Registers shape(matrix);
  bool rowsOnly = matrix.getLayout() == Layout::Rows;
  bool pairs = llvm::any_of(op.getBody().getArgumentTypes(),
                            [](Type t) { return isa<VectorType>(t); });

  // Where this thread's first element lies.
  int64_t warpRows = matrix.getLayout() == Layout::HalfRows ? 8 : 16;
  Value row = e.div(place.lane, 4);
  if (matrix.getShape()[0] > warpRows)
    row = e.add(e.mul(e.rem(place.warp, 4), warpRows), row);
  Value column = rowsOnly ? e.i32(0) : e.shl(e.rem(place.lane, 4), 1);
  if (op.getRow()) {
    row = e.add(adaptor.getRow(), row);
    column = e.add(adaptor.getColumn(), column);
  }

  SmallVector<Builder> results;
  for (Type type : resultTypes)
    results.emplace_back(cast<FragType>(type));
  int64_t neighbours = pairs || rowsOnly ? 1 : 2;
  for (int64_t h = 0; h < shape.halves; ++h)
    for (int64_t j = 0; j < shape.blocks; ++j)
      for (int64_t n = 0; n < neighbours; ++n) {
        IRMapping mapping;
        Block &body = op.getBody().front();
        for (unsigned i = 0; i < count; ++i) {
          Registers from(fragmentType(i));
          Value storage = adaptor.getFragments()[i];
          bool pair = isa<VectorType>(body.getArgument(i).getType());
          mapping.map(body.getArgument(i), pair
                                               ? from.getPair(e, storage, j, h)
                                               : from.get(e, storage, j, h, n));
        }
        mapping.map(body.getArgument(count), e.add(row, 8 * h));
        mapping.map(body.getArgument(count + 1), e.add(column, 8 * j + n));
        for (Operation &inner : body.without_terminator())
          rewriter.clone(inner, mapping);
        for (auto [result, yielded] :
             llvm::zip(results, body.getTerminator()->getOperands())) {
          Value value = mapping.lookupOrDefault(yielded);
          if (isa<VectorType>(value.getType()))
            result.setPair(e, j, h, value);
          else
            result.set(j, h, n, value);
        }
      }
  SmallVector<Value> storages;
  for (Builder &result : results)
    storages.push_back(result.finish(e));
  return storages;
}

struct MapPattern : TilePattern<MapOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(MapOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, emitElementwise(op, adaptor, op.getResultTypes(),
                                           kernel.place(op), rewriter));
    return success();
  }
};

struct EpiloguePattern : TilePattern<EpilogueOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(EpilogueOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    emitElementwise(op, adaptor, {}, kernel.place(op), rewriter);
    rewriter.eraseOp(op);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Rows, conversions
//===----------------------------------------------------------------------===//

struct FillPattern : TilePattern<FillOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(FillOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    Builder result(op.getResult().getType());
    for (Value &value : result.values)
      value = adaptor.getValue();
    rewriter.replaceOp(op, result.finish(e));
    return success();
  }
};

struct RowReducePattern : TilePattern<RowReduceOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(RowReduceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    auto combine = [&](Value x, Value y) -> Value {
      if (op.getKind() == ReduceKind::Add)
        return arith::AddFOp::create(rewriter, op.getLoc(), x, y);
      if (op.getKind() == ReduceKind::Max)
        return arith::MaxNumFOp::create(rewriter, op.getLoc(), x, y);
      return arith::MinNumFOp::create(rewriter, op.getLoc(), x, y);
    };
    Registers from(op.getFragment().getType());
    bool rowsOnly = from.type.getLayout() == Layout::Rows;
    Builder result(op.getResult().getType());
    for (int64_t h = 0; h < 2; ++h) {
      // Two chains, so that the adder's latency is hidden.
      Value chains[2];
      for (int64_t j = 0; j < from.blocks; ++j)
        for (int64_t n = 0; n < (rowsOnly ? 1 : 2); ++n) {
          Value value = from.get(e, adaptor.getFragment(), j, h, n);
          chains[n] = chains[n] ? combine(chains[n], value) : value;
        }
      Value sum = chains[1] ? combine(chains[0], chains[1]) : chains[0];
      if (!op.getPartial())
        for (int64_t distance : {1, 2})
          sum = combine(sum, e.shuffleXor(sum, distance));
      result.set(0, h, 0, sum);
    }
    rewriter.replaceOp(op, result.finish(e));
    return success();
  }
};

struct ConvertPattern : TilePattern<ConvertOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(ConvertOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    FragType fromType = op.getFragment().getType();
    FragType toType = op.getResult().getType();
    Type from = fromType.getElementType(), to = toType.getElementType();
    // An operand_a fragment has the registers of a packed accumulator.
    if (from == to) {
      rewriter.replaceOp(op, adaptor.getFragment());
      return success();
    }
    bool narrow = to.getIntOrFloatBitWidth() < from.getIntOrFloatBitWidth();
    auto cast = [&](Value value) -> Value {
      auto vector = dyn_cast<VectorType>(value.getType());
      Type type = vector ? Type(VectorType::get({2}, to)) : to;
      if (narrow)
        return arith::TruncFOp::create(rewriter, op.getLoc(), type, value);
      return arith::ExtFOp::create(rewriter, op.getLoc(), type, value);
    };
    Registers registers(fromType);
    Builder result(toType);
    bool rowsOnly = fromType.getLayout() == Layout::Rows;
    for (int64_t j = 0; j < registers.blocks; ++j)
      for (int64_t h = 0; h < registers.halves; ++h) {
        Value storage = adaptor.getFragment();
        if (rowsOnly)
          result.set(j, h, 0, cast(registers.get(e, storage, j, h, 0)));
        else
          result.setPair(e, j, h, cast(registers.getPair(e, storage, j, h)));
      }
    rewriter.replaceOp(op, result.finish(e));
    return success();
  }
};

struct DeinterleavePattern : TilePattern<DeinterleaveOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(DeinterleaveOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    Registers from(op.getFragment().getType());
    SmallVector<Value> results;
    for (int64_t odd : {0, 1}) {
      Builder result(op.getEven().getType());
      for (int64_t j = 0; j < result.registers.blocks; ++j)
        for (int64_t h = 0; h < result.registers.halves; ++h) {
          int64_t fromJ = op.getRows() ? j : 2 * j + odd;
          int64_t fromH = op.getRows() ? odd : h;
          Value storage = adaptor.getFragment();
          if (from.packed)
            result.setPair(e, j, h, from.getPair(e, storage, fromJ, fromH));
          else
            for (int64_t n : {0, 1})
              result.set(j, h, n, from.get(e, storage, fromJ, fromH, n));
        }
      results.push_back(result.finish(e));
    }
    rewriter.replaceOp(op, results);
    return success();
  }
};

struct ColumnsPattern : TilePattern<ColumnsOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(ColumnsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    Registers from(op.getFragment().getType());
    Builder result(op.getResult().getType());
    int64_t first = op.getOffset() / 8;
    for (int64_t j = 0; j < result.registers.blocks; ++j)
      for (int64_t h = 0; h < result.registers.halves; ++h)
        if (from.packed)
          result.setPair(e, j, h,
                         from.getPair(e, adaptor.getFragment(), first + j, h));
        else
          for (int64_t n : {0, 1})
            result.set(j, h, n,
                       from.get(e, adaptor.getFragment(), first + j, h, n));
    rewriter.replaceOp(op, result.finish(e));
    return success();
  }
};

struct PinPattern : TilePattern<PinOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(PinOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    Value both = arith::MinNumFOp::create(rewriter, op.getLoc(),
                                          e.extract(adaptor.getFragment(), 0),
                                          e.extract(adaptor.getFragment(), 1));
    LLVM::InlineAsmOp::create(
        rewriter, op.getLoc(), TypeRange(), both,
        "{\n.reg .pred p;\nsetp.lt.f32 p, $0, 0f00000000;\n"
        "@p nanosleep.u32 0;\n}",
        "f", /*has_side_effects=*/true, /*is_align_stack=*/false,
        LLVM::TailCallKind::None,
        LLVM::AsmDialectAttr::get(getContext(), LLVM::AsmDialect::AD_ATT),
        ArrayAttr());
    rewriter.eraseOp(op);
    return success();
  }
};

struct AnyPattern : TilePattern<AnyOp> {
  using TilePattern::TilePattern;
  LogicalResult
  matchAndRewrite(AnyOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc());
    Value some;
    int64_t count = op.getFragment().getType().getThreadElements();
    for (int64_t i = 0; i < count; ++i) {
      Value set = arith::CmpFOp::create(
          rewriter, op.getLoc(), arith::CmpFPredicate::UNE,
          e.extract(adaptor.getFragment(), i), e.f32(0));
      some =
          some ? arith::OrIOp::create(rewriter, op.getLoc(), some, set) : set;
    }
    rewriter.replaceOpWithNewOp<NVVM::VoteSyncOp>(
        op, rewriter.getI1Type(), e.i32(-1), some, NVVM::VoteSyncKind::any);
    return success();
  }
};

} // namespace

void llmc::tile::populateFragmentPatterns(const TypeConverter &converter,
                                          RewritePatternSet &patterns,
                                          const KernelLowering &kernel) {
  patterns.add<MapPattern, EpiloguePattern, FillPattern, RowReducePattern,
               ConvertPattern, DeinterleavePattern, ColumnsPattern, PinPattern,
               AnyPattern>(converter, patterns.getContext(), kernel);
}
