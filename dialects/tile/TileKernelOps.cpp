// tile.kernel, tile.role and the grid: assembly and verifiers.
#include "dialects/tile/TileDialect.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace llmc::tile;

//===----------------------------------------------------------------------===//
// tile.kernel
//===----------------------------------------------------------------------===//

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  auto &props = result.getOrAddProperties<Properties>();
  SmallVector<OpAsmParser::Argument> arguments;
  int64_t number;
  if (parser.parseSymbolName(props.sym_name) ||
      parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren,
                               /*allowType=*/true) ||
      parser.parseKeyword("threads") || parser.parseLParen() ||
      parser.parseInteger(number) || parser.parseRParen())
    return failure();
  props.threads = builder.getI32IntegerAttr(number);
  auto parseOption = [&](StringRef keyword, IntegerAttr &into) -> ParseResult {
    if (failed(parser.parseOptionalKeyword(keyword)))
      return success();
    if (parser.parseLParen() || parser.parseInteger(number) ||
        parser.parseRParen())
      return failure();
    into = builder.getI32IntegerAttr(number);
    return success();
  };
  if (parseOption("min_blocks", props.min_blocks) ||
      parseOption("cluster", props.cluster))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("pdl")))
    props.pdl = builder.getUnitAttr();
  if (parseOption("shared_memory", props.shared_memory) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*result.addRegion(), arguments))
    return failure();
  ensureTerminator(*result.regions.back(), builder, result.location);
  return success();
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  printer << "(";
  llvm::interleaveComma(
      getBody().getArguments(), printer,
      [&](BlockArgument a) { printer.printRegionArgument(a); });
  printer << ") threads(" << getThreads() << ")";
  if (getMinBlocks())
    printer << " min_blocks(" << *getMinBlocks() << ")";
  if (getCluster())
    printer << " cluster(" << *getCluster() << ")";
  if (getPdl())
    printer << " pdl";
  if (getSharedMemory())
    printer << " shared_memory(" << *getSharedMemory() << ")";
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getSymNameAttrName(), getThreadsAttrName(), getMinBlocksAttrName(),
       getClusterAttrName(), getPdlAttrName(), getSharedMemoryAttrName()});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/false);
}

SmallVector<RoleWarps> llmc::tile::getRoleWarps(KernelOp kernel) {
  SmallVector<RoleWarps> placed;
  auto roles = kernel.getBody().front().getOps<RoleOp>();
  bool budgets = llvm::any_of(roles, [](RoleOp r) { return r.getRegs(); });
  int64_t next = 0;
  for (RoleOp role : roles) {
    int64_t warps = role.getWarps();
    if (budgets || warps % 4 == 0) {
      next = llvm::alignTo(next, 4);
      warps = llvm::alignTo(warps, 4);
    }
    placed.push_back({role, next, warps});
    next += warps;
  }
  return placed;
}

static LogicalResult verifyRoles(KernelOp kernel) {
  SmallVector<RoleWarps> roles = getRoleWarps(kernel);
  if (roles.empty())
    return success();
  bool budgets =
      llvm::any_of(roles, [](RoleWarps r) { return r.role.getRegs(); });
  int64_t warps = 0, registers = 0;
  std::string sum;
  llvm::raw_string_ostream os(sum);
  for (auto [role, first, reserved] : roles) {
    if (budgets && !role.getRegs())
      return role.emitOpError("expected a register budget (regs), as another "
                              "role of the kernel has one; name it on all "
                              "roles or on none");
    warps = first + reserved;
    registers += reserved * 32 * role.getRegs().value_or(0);
    os << (sum.empty() ? "" : " + ") << reserved * 32 << " x "
       << role.getRegs().value_or(0);
  }
  if (registers > 65536)
    return kernel.emitOpError("expected register budgets of at most 65536 "
                              "registers, those of an SM, got ")
           << sum << " = " << registers << "; lower regs";
  if (int64_t(kernel.getThreads()) != warps * 32)
    return kernel.emitOpError("expected threads(")
           << warps * 32 << "), the " << warps << " warps of its roles, got "
           << kernel.getThreads();
  Operation *next = roles.front().role;
  for (; next; next = next->getNextNode())
    if (!isa<RoleOp, YieldOp>(next))
      return next->emitOpError("expected before the first tile.role: roles end "
                               "a kernel");
  return success();
}

LogicalResult KernelOp::verify() {
  int64_t threads = getThreads();
  if (threads < 32 || threads > 1024 || threads % 32)
    return emitOpError("expected threads in multiples of 32 up to 1024, got ")
           << threads;
  for (BlockArgument a : getBody().getArguments())
    if (!isa<PtrType, TensorMapType>(a.getType()) &&
        !a.getType().isInteger(32) && !a.getType().isInteger(64) &&
        !a.getType().isF32())
      return emitOpError("expected argument #")
             << a.getArgNumber() << " to be a !tile.ptr, !tile.tensor_map, "
             << "i32, i64 or f32, got " << a.getType();
  // Four blocks of one an SM leave SMs without work: few groups of SMs hold a
  // multiple of four.
  if (getCluster() && *getCluster() != 2)
    return emitOpError("expected clusters of 2 blocks or none, got ")
           << *getCluster();
  if (getSharedMemory() && int64_t(*getSharedMemory()) > kMaxSharedMemory)
    return emitOpError("expected at most ")
           << kMaxSharedMemory << " bytes of shared memory, got "
           << *getSharedMemory();
  return verifyRoles(*this);
}

//===----------------------------------------------------------------------===//
// tile.role
//===----------------------------------------------------------------------===//

LogicalResult RoleOp::verify() {
  if (getWarps() < 1 || getWarps() > 32)
    return emitOpError("expected 1 to 32 warps, got ") << int32_t(getWarps());
  if (getElected() && getWarps() != 1)
    return emitOpError("expected 1 warp in an elected role, which runs in one "
                       "thread, got ")
           << getWarps();
  if (getElected()) {
    // One thread cannot meet others.
    WalkResult alone = walk([&](Operation *op) {
      if (!isa<BarrierOp, ReduceOp, WgmmaOp, MmaOp, StoreTmaOp, ForEachOp,
               ClusterReduceOp>(op))
        return WalkResult::advance();
      op->emitOpError("expected in a role of whole warps, got one that is "
                      "elected, which runs in one thread");
      return WalkResult::interrupt();
    });
    if (alone.wasInterrupted())
      return failure();
  }
  if (std::optional<uint32_t> regs = getRegs())
    if (*regs < 24 || *regs > 256 || *regs % 8)
      return emitOpError("expected regs in multiples of 8 from 24 to 256, got ")
             << *regs;
  return success();
}

LogicalResult ClusterRankOp::verify() {
  auto kernel = (*this)->getParentOfType<KernelOp>();
  if (kernel && !kernel.getCluster())
    return emitOpError("expected a kernel with cluster(2)");
  return success();
}

LogicalResult RasterOp::verify() {
  if (getGroup() < 1)
    return emitOpError("expected a positive group, got ")
           << int32_t(getGroup());
  return success();
}
