// convert-tile-to-nvvm: a kernel becomes a gpu.module with one llvm.func.
#include "passes/tile/Lowering.h"
#include "passes/tile/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace llmc {
#define GEN_PASS_DEF_CONVERTTILETONVVM
#include "passes/tile/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc::tile;

/// Name of the dynamic shared memory in every gpu.module.
static constexpr StringLiteral kShared = "shared_memory";

namespace {

class TileTypeConverter : public TypeConverter {
public:
  explicit TileTypeConverter(MLIRContext *context) {
    auto pointer = [context](unsigned space) -> Type {
      return LLVM::LLVMPointerType::get(context, space);
    };
    addConversion([](Type type) { return type; });
    // LLVM has no 8-bit floats: their bits are integers.
    addConversion([](FloatType type) -> Type {
      return type.getWidth() == 8 ? IntegerType::get(type.getContext(), 8)
                                  : Type(type);
    });
    addConversion([this](VectorType type) -> Type {
      return type.clone(convertType(type.getElementType()));
    });
    addConversion([=](PtrType) { return pointer(1); });
    addConversion([=](TensorMapType) { return pointer(0); });
    addConversion([=](SmemType) { return pointer(3); });
    addConversion([=](RingType) { return pointer(3); });
    addConversion([](FragType type) { return fragmentStorage(type); });
    addConversion([](AccType type) -> Type {
      int64_t count = type.getShape()[1] / 2;
      return LLVM::LLVMStructType::getLiteral(
          type.getContext(), SmallVector<Type>(count, type.getElementType()));
    });
    auto cast = [](OpBuilder &builder, Type type, ValueRange inputs,
                   Location loc) -> Value {
      return UnrealizedConversionCastOp::create(builder, loc, type, inputs)
          .getResult(0);
    };
    addSourceMaterialization(cast);
    addTargetMaterialization(cast);
  }
};

/// Lowers one kernel; the order of the public steps is that of run().
class KernelConverter {
public:
  KernelConverter(KernelOp kernel) : kernel(kernel), builder(kernel) {}

  LogicalResult run() {
    if (!kernel.getSharedMemory())
      return kernel.emitOpError("has no shared_memory yet; run "
                                "tile-allocate-shared-memory");
    makeModule();
    convertArguments();
    if (failed(placeThreads()))
      return failure();
    initialize();
    sinkPerWarpgroupTiles();
    if (failed(convertBody()))
      return failure();
    dispatchRoles();
    makeFunction();
    return success();
  }

private:
  /// gpu.module with the dynamic shared memory, around the kernel.
  void makeModule() {
    module =
        gpu::GPUModuleOp::create(builder, kernel.getLoc(), kernel.getSymName());
    module->setAttr("tile.threads", kernel.getThreadsAttr());
    module->setAttr("tile.shared_memory", kernel.getSharedMemoryAttr());
    if (kernel.getCluster())
      module->setAttr("tile.cluster", kernel.getClusterAttr());
    if (kernel.getPdl())
      module->setAttr("tile.pdl", builder.getUnitAttr());
    builder.setInsertionPointToStart(module.getBody());
    auto bytes = LLVM::LLVMArrayType::get(builder.getI8Type(), 0);
    LLVM::GlobalOp::create(builder, kernel.getLoc(), bytes,
                           /*isConstant=*/false, LLVM::Linkage::External,
                           kShared, Attribute(), /*alignment=*/1024,
                           /*addrSpace=*/3);
    kernel->moveBefore(module.getBody(), module.getBody()->end());
  }

  void convertArguments() {
    builder.setInsertionPointToStart(&kernel.getBody().front());
    for (BlockArgument argument : kernel.getBody().getArguments()) {
      Type from = argument.getType(), to = converter.convertType(from);
      if (from == to)
        continue;
      argument.setType(to);
      auto cast = UnrealizedConversionCastOp::create(builder, kernel.getLoc(),
                                                     from, argument);
      argument.replaceAllUsesExcept(cast.getResult(0), cast);
      if (isa<TensorMapType>(from))
        maps.push_back(argument);
    }
  }

  /// Thread, warp and barrier numbers of the kernel and of its roles.
  LogicalResult placeThreads() {
    Emitter e(builder, kernel.getLoc());
    Type i32 = builder.getI32Type();
    lowering.shared = LLVM::AddressOfOp::create(
        builder, e.loc, LLVM::LLVMPointerType::get(e.b.getContext(), 3),
        kShared);
    thread = NVVM::ThreadIdXOp::create(builder, e.loc, i32);
    Value lane = e.rem(thread, 32);
    // Through a shuffle, so that ptxas knows it to be the same in the warp.
    warp = NVVM::ShflOp::create(builder, e.loc, i32, e.i32(-1),
                                e.div(thread, 32), e.i32(0), e.i32(31),
                                NVVM::ShflKind::idx, UnitAttr());
    ThreadPlace &whole = lowering.places[kernel];
    whole = {thread, lane, warp, e.div(warp, 4), kernel.getThreads()};
    int64_t barriers = 1;
    auto reserve = [&](Operation *scope, ThreadPlace &place, int64_t warps) {
      bool own = false, groups = false;
      scope->walk([&](Operation *op) {
        Scope s = Scope::Warp;
        if (auto barrier = dyn_cast<BarrierOp>(op))
          s = barrier.getScope();
        if (auto reduce = dyn_cast<ReduceOp>(op))
          s = reduce.getScope();
        own |= s == Scope::Role || s == Scope::Block;
        groups |= s == Scope::Warpgroup || isa<StoreTmaOp>(op);
        auto load = dyn_cast<LoadOp>(op);
        place.readsShared |=
            isa<LoadMatrixOp, MmaOp>(op) ||
            (load && isa<SmemType>(load.getMemory().getType()));
      });
      if (own && isa<RoleOp>(scope))
        place.barrier = barriers++;
      if (groups) {
        place.warpgroupBarriers = barriers;
        barriers += llvm::divideCeil(warps, 4);
      }
    };
    for (auto [role, first, reserved] : getRoleWarps(kernel)) {
      builder.setInsertionPointToStart(&role.getBody().front());
      Emitter in(builder, role.getLoc());
      ThreadPlace place{in.add(thread, -32 * first),
                        lane,
                        in.add(warp, -first),
                        Value(),
                        role.getWarps() * 32,
                        0,
                        0,
                        role.getElected()};
      place.warpgroup = in.div(place.warp, 4);
      reserve(role, place, role.getWarps());
      lowering.places[role] = place;
    }
    if (kernel.getBody().getOps<RoleOp>().empty())
      reserve(kernel, lowering.places[kernel], kernel.getThreads() / 32);
    if (barriers > 16)
      return kernel.emitOpError("expected at most 16 named barriers, got ")
             << barriers << "; use fewer roles or reductions";
    return success();
  }

  /// One thread prefetches descriptors and initialises barriers; all meet.
  void initialize() {
    builder.setInsertionPointAfter(warp.getDefiningOp());
    // Behind the arithmetic that placeThreads made.
    if (Operation *last = lowering.places[kernel].warpgroup.getDefiningOp())
      builder.setInsertionPointAfter(last);
    Emitter e(builder, kernel.getLoc());
    // A block that fills its own rings needs no barriers in memory.
    SmallVector<RingOp> rings;
    if (!kernel.getBody().getOps<RoleOp>().empty())
      llvm::append_range(rings, kernel.getBody().getOps<RingOp>());
    if (rings.empty() && maps.empty() && !kernel.getCluster())
      return;
    e.when(e.equal(thread, 0), [&](Emitter &e) {
      for (Value map : maps)
        NVVM::PrefetchOp::create(builder, e.loc, NVVM::PrefetchCacheLevelAttr(),
                                 NVVM::CacheEvictionPriorityAttr(), map,
                                 Value(), builder.getUnitAttr());
      for (RingOp ring : rings) {
        RingType type = ring.getRing().getType();
        Emitter at(builder, ring.getLoc());
        int64_t barriers =
            *ring.getOffset() + type.getStages() * type.getStageBytes();
        for (int64_t i = 0; i < 2 * type.getStages(); ++i)
          NVVM::MBarrierInitOp::create(
              builder, ring.getLoc(),
              at.offset(lowering.shared, barriers + 8 * i),
              at.i32(i < type.getStages() ? *ring.getFullArrivals()
                                          : *ring.getEmptyArrivals()),
              Value());
      }
      if (!rings.empty())
        NVVM::FenceMbarrierInitOp::create(builder, e.loc);
    });
    if (kernel.getCluster()) {
      // The other block must be running before anything is written to it.
      NVVM::ClusterArriveOp::create(builder, e.loc, builder.getUnitAttr());
      NVVM::ClusterWaitOp::create(builder, e.loc, builder.getUnitAttr());
    } else if (!rings.empty()) {
      e.blockBarrier();
    }
  }

  /// A tile that every warpgroup has of its own is addressed in the role.
  void sinkPerWarpgroupTiles() {
    SmallVector<SharedOp> tiles(kernel.getBody().getOps<SharedOp>());
    for (SharedOp tile : tiles) {
      if (!tile.getPerWarpgroup())
        continue;
      for (RoleOp role : kernel.getBody().getOps<RoleOp>()) {
        const ThreadPlace &place = lowering.places[role];
        builder.setInsertionPointToStart(&role.getBody().front());
        if (Operation *last = place.warpgroup.getDefiningOp())
          builder.setInsertionPointAfter(last);
        Operation *copy = builder.clone(*tile);
        tile->replaceUsesWithIf(copy, [&](OpOperand &use) {
          return role->isProperAncestor(use.getOwner());
        });
        if (copy->use_empty())
          copy->erase();
      }
      if (tile->use_empty())
        tile->erase();
    }
  }

  LogicalResult convertBody() {
    MLIRContext *context = kernel.getContext();
    ConversionTarget target(*context);
    target.addLegalDialect<arith::ArithDialect, math::MathDialect,
                           LLVM::LLVMDialect, NVVM::NVVMDialect,
                           gpu::GPUDialect, vector::VectorDialect>();
    target.addIllegalDialect<TileDialect>();
    target.addLegalOp<KernelOp, RoleOp, UnrealizedConversionCastOp>();
    target.addDynamicallyLegalOp<YieldOp>(
        [](YieldOp op) { return isa<KernelOp, RoleOp>(op->getParentOp()); });
    RewritePatternSet patterns(context);
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                         target);
    populateRingPatterns(converter, patterns, lowering);
    populateMatrixPatterns(converter, patterns, lowering);
    populateMmaPatterns(converter, patterns, lowering);
    populateFragmentPatterns(converter, patterns, lowering);
    populateStoreTmaPatterns(converter, patterns, lowering);
    populateClusterPatterns(converter, patterns, lowering);
    populateBlockPatterns(converter, patterns, lowering);
    populateMemoryPatterns(converter, patterns, lowering);
    populateNarrowPatterns(converter, patterns, lowering);
    populateCopyPatterns(converter, patterns, lowering);
    drainStores();
    drainCopies();
    return applyPartialConversion(kernel, target, std::move(patterns));
  }

  /// A role may end, and its shared memory go, only when its TMA stores have
  /// read their buffers.
  void drainStores() {
    llvm::SetVector<Operation *> scopes;
    kernel.walk([&](StoreTmaOp store) {
      Operation *role = store->getParentOfType<RoleOp>();
      scopes.insert(role ? role : kernel.getOperation());
    });
    for (Operation *scope : scopes) {
      builder.setInsertionPoint(scope->getRegion(0).front().getTerminator());
      Emitter e(builder, scope->getLoc());
      Value leader = e.equal(e.rem(lowering.places[scope].thread, 128), 0);
      e.when(leader, [&](Emitter &e) {
        NVVM::CpAsyncBulkWaitGroupOp::create(builder, e.loc, 0,
                                             builder.getUnitAttr());
      });
    }
  }

  /// No copy may be on its way when the block ends.
  void drainCopies() {
    bool copies =
        kernel.walk([](CopyAsyncOp) { return WalkResult::interrupt(); })
            .wasInterrupted();
    if (!copies)
      return;
    builder.setInsertionPoint(kernel.getBody().front().getTerminator());
    NVVM::CpAsyncWaitGroupOp::create(builder, kernel.getLoc(), 0);
  }

  /// One chain of warp-uniform branches, in the order of the warps.
  void dispatchRoles() {
    SmallVector<RoleWarps> roles = getRoleWarps(kernel);
    if (roles.empty())
      return;
    builder.setInsertionPoint(roles.front().role);
    // What ptxas gives every thread at entry.
    int64_t entry = std::min<int64_t>(65536 / kernel.getThreads() / 8 * 8, 256);
    for (auto [role, first, reserved] : roles) {
      Emitter e(builder, role.getLoc());
      scf::IfOp branch;
      if (role != roles.back().role) {
        branch = scf::IfOp::create(builder, role.getLoc(),
                                   e.below(warp, first + reserved), true);
        builder.setInsertionPointToStart(branch.thenBlock());
      }
      if (role.getRegs() && int64_t(*role.getRegs()) != entry)
        NVVM::SetMaxRegisterOp::create(
            builder, role.getLoc(), *role.getRegs(),
            int64_t(*role.getRegs()) < entry
                ? NVVM::SetMaxRegisterAction::decrease
                : NVVM::SetMaxRegisterAction::increase);
      if (reserved != role.getWarps()) {
        auto busy =
            scf::IfOp::create(builder, role.getLoc(),
                              e.below(warp, first + role.getWarps()), false);
        builder.setInsertionPointToStart(busy.thenBlock());
      }
      if (role.getElected()) {
        Value one = NVVM::ElectSyncOp::create(builder, role.getLoc(),
                                              builder.getI1Type(), Value());
        auto elected = scf::IfOp::create(builder, role.getLoc(), one, false);
        builder.setInsertionPointToStart(elected.thenBlock());
      }
      Block &body = role.getBody().front();
      body.getTerminator()->erase();
      builder.getInsertionBlock()->getOperations().splice(
          builder.getInsertionPoint(), body.getOperations());
      if (branch)
        builder.setInsertionPointToStart(branch.elseBlock());
      role.erase();
    }
  }

  void makeFunction() {
    MLIRContext *context = kernel.getContext();
    builder.setInsertionPoint(kernel);
    auto type = LLVM::LLVMFunctionType::get(
        LLVM::LLVMVoidType::get(context),
        llvm::to_vector(kernel.getBody().getArgumentTypes()));
    auto function = LLVM::LLVMFuncOp::create(builder, kernel.getLoc(),
                                             kernel.getSymName(), type);
    function->setAttr("nvvm.kernel", builder.getUnitAttr());
    function->setAttr("gpu.kernel", builder.getUnitAttr());
    function->setAttr("nvvm.maxntid", builder.getDenseI32ArrayAttr(
                                          {int32_t(kernel.getThreads())}));
    if (kernel.getCluster())
      function->setAttr(
          "nvvm.cluster_dim",
          builder.getDenseI32ArrayAttr({int32_t(*kernel.getCluster()), 1, 1}));
    if (kernel.getMinBlocks())
      function->setAttr("nvvm.minctasm", kernel.getMinBlocksAttr());
    Type bytes = LLVM::LLVMArrayType::get(builder.getI8Type(), 128);
    for (BlockArgument map : maps) {
      unsigned i = map.getArgNumber();
      function.setArgAttr(i, "llvm.byval", TypeAttr::get(bytes));
      function.setArgAttr(i, "nvvm.grid_constant", builder.getUnitAttr());
      function.setArgAttr(i, "llvm.align", builder.getI64IntegerAttr(64));
    }
    Operation *yield = kernel.getBody().front().getTerminator();
    builder.setInsertionPoint(yield);
    LLVM::ReturnOp::create(builder, kernel.getLoc(), ValueRange());
    yield->erase();
    function.getBody().takeBody(kernel.getBody());
    kernel.erase();
  }

  KernelOp kernel;
  OpBuilder builder;
  TileTypeConverter converter{kernel.getContext()};
  KernelLowering lowering;
  gpu::GPUModuleOp module;
  SmallVector<BlockArgument> maps;
  Value thread, warp;
};

struct ConvertTileToNVVM
    : llmc::impl::ConvertTileToNVVMBase<ConvertTileToNVVM> {
  void runOnOperation() override {
    SmallVector<KernelOp> kernels(getOperation().getOps<KernelOp>());
    for (KernelOp kernel : kernels)
      if (failed(KernelConverter(kernel).run()))
        return signalPassFailure();
    if (!kernels.empty())
      getOperation()->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                              UnitAttr::get(&getContext()));
  }
};

} // namespace
