#include "passes/host/LinearEpilogue.h"

#include "passes/linalg/Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

using Vectors = LinearEpilogue::Vectors;

ArrayRef<Value> LinearEpilogue::columnsOf(Value value) {
  int64_t width = cast<RankedTensorType>(value.getType()).getShape().back();
  return linear.glu && width == linear.outputColumns() ? columns.output
                                                       : columns.product;
}

// The columns of a cut vector that exist.
Value LinearEpilogue::mask(Value memref, Value column) {
  if (linear.isWhole())
    return {};
  int64_t width = cast<MemRefType>(memref.getType()).getShape().back();
  Value left = arith::SubIOp::create(
      b, loc, arith::ConstantIndexOp::create(b, loc, width), column);
  return vector::CreateMaskOp::create(b, loc, vectorOf(b.getI1Type()), left);
}

Vectors LinearEpilogue::load(Value memref, ValueRange leading,
                             ArrayRef<Value> at) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  Vectors result;
  for (Value column : at) {
    SmallVector<Value> indices(leading);
    indices.push_back(column);
    if (Value exists = mask(memref, column)) {
      Value zero = floatConstant(b, loc, vectorOf(element), 0.0);
      result.push_back(vector::MaskedLoadOp::create(
          b, loc, vectorOf(element), memref, indices, exists, zero));
    } else {
      result.push_back(
          vector::LoadOp::create(b, loc, vectorOf(element), memref, indices));
    }
  }
  return result;
}

void LinearEpilogue::store(Value value, Value into) {
  for (auto [vector, column] :
       llvm::zip_equal(evaluate(value), columnsOf(value))) {
    SmallVector<Value> indices{row, column};
    if (Value exists = mask(into, column))
      vector::MaskedStoreOp::create(b, loc, into, indices, exists, vector);
    else
      vector::StoreOp::create(b, loc, vector, into, indices);
  }
}

Vectors LinearEpilogue::evaluate(Value value) {
  auto found = known.find(value);
  if (found != known.end())
    return found->second;
  Vectors result = compute(value);
  known[value] = result;
  return result;
}

Vectors LinearEpilogue::compute(Value value) {
  if (isa<BlockArgument>(value))
    return load(entry.operandOf(value), row, columnsOf(value));
  Type element = getElementTypeOrSelf(value.getType());
  Operation *op = value.getDefiningOp();
  auto mapped = [&](Value operand, auto fn) {
    Vectors result;
    for (Value vector : evaluate(operand))
      result.push_back(convertElement(
          b, loc, fn(convertElement(b, loc, vector, vectorOf(b.getF32Type()))),
          vectorOf(element)));
    return result;
  };
  if (op == linear.linear) {
    Vectors result = product;
    if (Value inputScale = linear.inputScale())
      for (auto [sum, scale] :
           llvm::zip_equal(result, broadcast(inputScale, columns.product)))
        sum = arith::MulFOp::create(b, loc, sum, scale);
    if (linear.bias())
      for (auto [sum, bias] :
           llvm::zip_equal(result, broadcast(linear.bias(), columns.product)))
        sum = arith::AddFOp::create(
            b, loc, sum,
            convertElement(b, loc, bias, vectorOf(b.getF32Type())));
    for (Value &vector : result)
      vector = convertElement(b, loc, vector, vectorOf(element));
    return result;
  }
  if (auto glu = dyn_cast<PackedGluOp>(op))
    return packedGlu(glu);
  if (auto activation = dyn_cast<ActivationOp>(op))
    return mapped(activation.getInput(), [&](Value x) {
      return emitActivation(b, loc, activation.getKind(), x);
    });
  if (auto glu = dyn_cast<GluOp>(op)) {
    Vectors ups = evaluate(glu.getUp());
    auto up = ups.begin();
    return mapped(glu.getGate(), [&](Value gate) -> Value {
      Value wide = convertElement(b, loc, *up++, vectorOf(b.getF32Type()));
      return arith::MulFOp::create(
          b, loc, emitActivation(b, loc, glu.getKind(), gate), wide);
    });
  }
  if (auto cast = dyn_cast<tensor::CastOp>(op))
    return evaluate(cast.getSource());
  if (auto spread = dyn_cast<BroadcastOp>(op))
    return broadcast(spread.getInput(), columnsOf(value));
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto splat = mlir::cast<SplatElementsAttr>(constant.getValue());
    auto attr = DenseElementsAttr::get(vectorOf(element),
                                       splat.getSplatValue<Attribute>());
    Value vector = arith::ConstantOp::create(b, loc, attr);
    return Vectors(columnsOf(value).size(), vector);
  }
  if (auto splat = dyn_cast<tensor::SplatOp>(op)) {
    Value scalar = splat.getInput();
    if (Operation *source = scalar.getDefiningOp())
      scalar = b.clone(*source)->getResult(0);
    Value vector =
        vector::BroadcastOp::create(b, loc, vectorOf(element), scalar);
    return Vectors(columnsOf(value).size(), vector);
  }
  return elementwise(op);
}

// A [C], [1, C], [rows, 1] or one-element argument along the columns.
Vectors LinearEpilogue::broadcast(Value source, ArrayRef<Value> at) {
  Value memref = entry.operandOf(source);
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<Value> leading;
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  for (int64_t size : type.getShape().drop_back())
    leading.push_back(ShapedType::isDynamic(size) ? row : zero);
  if (type.getRank() && type.getShape().back() != 1)
    return load(memref, leading, at);
  if (type.getRank())
    leading.push_back(zero);
  Value scalar = memref::LoadOp::create(b, loc, memref, leading);
  Value vector = vector::BroadcastOp::create(
      b, loc, vectorOf(type.getElementType()), scalar);
  return Vectors(at.size(), vector);
}

Vectors LinearEpilogue::elementwise(Operation *op) {
  SmallVector<Vectors> operands;
  for (Value operand : op->getOperands())
    operands.push_back(evaluate(operand));
  Vectors result;
  for (size_t v = 0; v < operands.front().size(); ++v) {
    OperationState state(loc, op->getName());
    for (Vectors &vectors : operands)
      state.operands.push_back(vectors[v]);
    state.addTypes(vectorOf(getElementTypeOrSelf(op->getResult(0).getType())));
    state.addAttributes(op->getAttrs());
    result.push_back(b.create(state)->getResult(0));
  }
  return result;
}

Vectors LinearEpilogue::packedGlu(PackedGluOp op) {
  Vectors packed = evaluate(op.getInput()), gates, ups;
  if (linear.isSplitGlu()) {
    gates.append(packed.begin(), packed.begin() + packed.size() / 2);
    ups.append(packed.begin() + packed.size() / 2, packed.end());
  } else {
    // Output i stands at (i / block) * 2 * block + i % block of the panel, its
    // up `block` further: both lie in one pair of vectors.
    int64_t block = op.getBlock(), lanes = shape.lanes;
    for (int64_t first = 0; first < linear.panelRows / 2; first += lanes) {
      for (bool isUp : {false, true}) {
        SmallVector<int64_t> at;
        for (int64_t i = first; i < first + lanes; ++i)
          at.push_back(i / block * 2 * block + i % block + (isUp ? block : 0));
        int64_t low = at.front() / lanes, high = at.back() / lanes;
        for (int64_t &lane : at)
          lane = lane / lanes == low ? lane % lanes : lane % lanes + lanes;
        (isUp ? ups : gates)
            .push_back(low == high ? packed[low]
                                   : vector::ShuffleOp::create(
                                         b, loc, packed[low], packed[high], at)
                                         .getResult());
      }
    }
  }
  Type element = getElementTypeOrSelf(op.getType());
  auto f32 = vectorOf(b.getF32Type());
  Vectors result;
  for (auto [gate, up] : llvm::zip_equal(gates, ups)) {
    Value wide = convertElement(b, loc, gate, f32);
    Value y = arith::MulFOp::create(b, loc,
                                    emitActivation(b, loc, op.getKind(), wide),
                                    convertElement(b, loc, up, f32));
    result.push_back(convertElement(b, loc, y, vectorOf(element)));
  }
  return result;
}
