// Index arithmetic and addresses of the lowering.
#include "passes/tile/Lowering.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace llmc::tile;

const ThreadPlace &KernelLowering::place(Operation *op) const {
  Operation *scope = op->getParentOfType<RoleOp>();
  if (!scope)
    scope = op->getParentOfType<KernelOp>();
  return places.find(scope)->second;
}

//===----------------------------------------------------------------------===//
// Emitter
//===----------------------------------------------------------------------===//

Value Emitter::i32(int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 32);
}
Value Emitter::i64(int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 64);
}
Value Emitter::f32(float value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
}
Value Emitter::add(Value x, Value y) {
  return arith::AddIOp::create(b, loc, x, y);
}
Value Emitter::add(Value x, int64_t y) { return y ? add(x, i32(y)) : x; }
Value Emitter::mul(Value x, int64_t y) {
  if (y == 1)
    return x;
  return arith::MulIOp::create(b, loc, x, i32(y));
}
Value Emitter::div(Value x, int64_t y) {
  if (y == 1)
    return x;
  if (llvm::isPowerOf2_64(y))
    return arith::ShRUIOp::create(b, loc, x, i32(llvm::Log2_64(y)));
  return arith::DivUIOp::create(b, loc, x, i32(y));
}
Value Emitter::rem(Value x, int64_t y) {
  if (llvm::isPowerOf2_64(y))
    return arith::AndIOp::create(b, loc, x, i32(y - 1));
  return arith::RemUIOp::create(b, loc, x, i32(y));
}
Value Emitter::bitXor(Value x, Value y) {
  return arith::XOrIOp::create(b, loc, x, y);
}
Value Emitter::bitXor(Value x, int64_t y) { return y ? bitXor(x, i32(y)) : x; }
Value Emitter::shl(Value x, int64_t y) {
  return y ? Value(arith::ShLIOp::create(b, loc, x, i32(y))) : x;
}
Value Emitter::equal(Value x, int64_t y) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x, i32(y));
}
Value Emitter::below(Value x, int64_t y) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, x, i32(y));
}

Value Emitter::offset(Value pointer, int64_t bytes) {
  if (!bytes)
    return pointer;
  return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{int32_t(bytes)});
}
Value Emitter::offset(Value pointer, Value bytes) {
  return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{bytes});
}

Value Emitter::extract(Value aggregate, int64_t index) {
  return LLVM::ExtractValueOp::create(b, loc, aggregate, index);
}
Value Emitter::insert(Value aggregate, Value value, int64_t index) {
  return LLVM::InsertValueOp::create(b, loc, aggregate, value, index);
}
Value Emitter::undef(Type type) { return LLVM::UndefOp::create(b, loc, type); }

Value Emitter::pair(Value x, Value y) {
  Value v = undef(VectorType::get({2}, x.getType()));
  v = LLVM::InsertElementOp::create(b, loc, v, x, i32(0));
  return LLVM::InsertElementOp::create(b, loc, v, y, i32(1));
}
Value Emitter::element(Value vector, int64_t index) {
  return LLVM::ExtractElementOp::create(b, loc, vector, i32(index));
}

Value Emitter::shuffleXor(Value value, int64_t mask) {
  return NVVM::ShflOp::create(b, loc, value.getType(), i32(-1), value,
                              i32(mask), i32(31), NVVM::ShflKind::bfly,
                              UnitAttr());
}
void Emitter::barrier(Value id, int64_t threads) {
  NVVM::BarrierOp::create(b, loc, Type(), id, i32(threads),
                          NVVM::BarrierReductionAttr(), Value());
}
void Emitter::blockBarrier() {
  NVVM::BarrierOp::create(b, loc, Type(), Value(), Value(),
                          NVVM::BarrierReductionAttr(), Value());
}

void Emitter::when(Value condition, llvm::function_ref<void(Emitter &)> body) {
  auto op = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.thenBlock());
  body(*this);
}

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

SmallVector<Value> llmc::tile::slotAddresses(Emitter &e, RingType type,
                                             Value ring, Value stage) {
  Value data = e.offset(ring, e.mul(stage, type.getStageBytes()));
  SmallVector<Value> slots;
  for (unsigned slot = 0; slot < type.getSlots().size(); ++slot)
    slots.push_back(e.offset(data, type.getSlotOffset(slot)));
  return slots;
}

Value llmc::tile::fullBarrier(Emitter &e, RingType type, Value ring,
                              Value stage) {
  return e.offset(e.offset(ring, type.getStages() * type.getStageBytes()),
                  e.mul(stage, 8));
}
Value llmc::tile::emptyBarrier(Emitter &e, RingType type, Value ring,
                               Value stage) {
  return e.offset(e.offset(ring, type.getStages() * (type.getStageBytes() + 8)),
                  e.mul(stage, 8));
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

bool llmc::tile::isPacked(FragType type) {
  return type.getLayout() != Layout::Rows &&
         type.getElementType().getIntOrFloatBitWidth() == 16;
}

Type llmc::tile::fragmentStorage(FragType type) {
  Type element = type.getElementType();
  int64_t count = type.getThreadElements();
  if (isPacked(type)) {
    element = VectorType::get({2}, element);
    count /= 2;
  }
  return LLVM::LLVMStructType::getLiteral(type.getContext(),
                                          SmallVector<Type>(count, element));
}
