// What the files of `convert-tile-to-nvvm` share: where a thread stands, how
// types lower, and a builder for index arithmetic.
#pragma once

#include "dialects/tile/TileDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/DialectConversion.h"

namespace llmc::tile {

/// Where a thread stands in its scope: the role, or the kernel without roles.
struct ThreadPlace {
  mlir::Value thread;    ///< index in the scope
  mlir::Value lane;      ///< index in the warp
  mlir::Value warp;      ///< index of the warp in the scope; warp-uniform
  mlir::Value warpgroup; ///< index of the warpgroup in the scope; uniform
  int64_t threads = 0;   ///< threads of the scope
  int64_t barrier = 0;   ///< named barrier of the scope
  int64_t warpgroupBarriers = 0; ///< first of one barrier per warpgroup
  bool elected = false;          ///< one thread runs the scope
  bool readsShared = false;      ///< ordinary loads read ring stages
};

/// State of the lowering of one kernel.
struct KernelLowering {
  mlir::Value shared; ///< start of dynamic shared memory
  llvm::DenseMap<mlir::Operation *, ThreadPlace> places;

  /// The place of the threads that run `op`.
  const ThreadPlace &place(mlir::Operation *op) const;
};

/// i32 arithmetic at one location, folded where an operand is a constant.
class Emitter {
public:
  Emitter(mlir::OpBuilder &builder, mlir::Location loc)
      : b(builder), loc(loc) {}

  mlir::Value i32(int64_t value);
  mlir::Value i64(int64_t value);
  mlir::Value f32(float value);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value add(mlir::Value x, int64_t y);
  mlir::Value mul(mlir::Value x, int64_t y);
  mlir::Value div(mlir::Value x, int64_t y); ///< by a power of two: a shift
  mlir::Value rem(mlir::Value x, int64_t y);
  mlir::Value bitXor(mlir::Value x, mlir::Value y);
  mlir::Value bitXor(mlir::Value x, int64_t y);
  mlir::Value shl(mlir::Value x, int64_t y);
  mlir::Value equal(mlir::Value x, int64_t y);
  mlir::Value below(mlir::Value x, int64_t y);

  /// `pointer` plus bytes, in the address space of `pointer`.
  mlir::Value offset(mlir::Value pointer, int64_t bytes);
  mlir::Value offset(mlir::Value pointer, mlir::Value bytes);

  mlir::Value extract(mlir::Value aggregate, int64_t index);
  mlir::Value insert(mlir::Value aggregate, mlir::Value value, int64_t index);
  mlir::Value undef(mlir::Type type);
  /// A vector of two from scalars, and back.
  mlir::Value pair(mlir::Value x, mlir::Value y);
  mlir::Value element(mlir::Value vector, int64_t index);

  /// Shuffle with the lane at distance `mask` (xor).
  mlir::Value shuffleXor(mlir::Value value, int64_t mask);
  /// Barrier `id` for `threads` threads; id 0 of the whole block by default.
  void barrier(mlir::Value id, int64_t threads);
  void blockBarrier();
  /// Runs `body` where `condition` holds.
  void when(mlir::Value condition, llvm::function_ref<void(Emitter &)> body);

  mlir::OpBuilder &b;
  mlir::Location loc;
};

/// Stage `stage` of a ring that starts at `ring`: where its slots lie, and its
/// barriers.
llvm::SmallVector<mlir::Value>
slotAddresses(Emitter &e, RingType type, mlir::Value ring, mlir::Value stage);
mlir::Value fullBarrier(Emitter &e, RingType type, mlir::Value ring,
                        mlir::Value stage);
mlir::Value emptyBarrier(Emitter &e, RingType type, mlir::Value ring,
                         mlir::Value stage);

/// Values of a fragment that a thread holds: f32 and other scalars one by one,
/// 16-bit elements of matrices as vectors of two.
mlir::Type fragmentStorage(FragType type);
bool isPacked(FragType type);

/// Base class of the patterns.
template <typename Op> struct TilePattern : mlir::OpConversionPattern<Op> {
  TilePattern(const mlir::TypeConverter &converter, mlir::MLIRContext *context,
              const KernelLowering &kernel)
      : mlir::OpConversionPattern<Op>(converter, context), kernel(kernel) {}
  const KernelLowering &kernel;
};

/// Each file of the lowering adds its patterns.
void populateRingPatterns(const mlir::TypeConverter &converter,
                          mlir::RewritePatternSet &patterns,
                          const KernelLowering &kernel);
void populateNarrowPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns,
                            const KernelLowering &kernel);
void populateCopyPatterns(const mlir::TypeConverter &converter,
                          mlir::RewritePatternSet &patterns,
                          const KernelLowering &kernel);
void populateMatrixPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns,
                            const KernelLowering &kernel);
void populateMmaPatterns(const mlir::TypeConverter &converter,
                         mlir::RewritePatternSet &patterns,
                         const KernelLowering &kernel);
void populateFragmentPatterns(const mlir::TypeConverter &converter,
                              mlir::RewritePatternSet &patterns,
                              const KernelLowering &kernel);
void populateStoreTmaPatterns(const mlir::TypeConverter &converter,
                              mlir::RewritePatternSet &patterns,
                              const KernelLowering &kernel);
void populateClusterPatterns(const mlir::TypeConverter &converter,
                             mlir::RewritePatternSet &patterns,
                             const KernelLowering &kernel);
void populateBlockPatterns(const mlir::TypeConverter &converter,
                           mlir::RewritePatternSet &patterns,
                           const KernelLowering &kernel);
void populateMemoryPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns,
                            const KernelLowering &kernel);

} // namespace llmc::tile
