//===- ExportPlan.cpp - writes a planned step as JSON ---------------------===//
//
// Part of llmc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The schema is docs/plan-export.md.
//
//===----------------------------------------------------------------------===//

#include "passes/4_outline/StepFunction.h"
#include "passes/5_plan/MemoryPlan.h"
#include "passes/5_plan/Passes.h"

#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/ToolOutputFile.h"

namespace llmc {
#define GEN_PASS_DEF_LLMEXPORTPLAN
#include "passes/5_plan/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;
namespace json = llvm::json;

namespace {

// A buffer of the arena. Tied results are one buffer.
struct Buffer {
  std::string name;
  std::string dtype;
  json::Array shape;
  int64_t offset = 0;
  int64_t bytes = 0;
  int64_t firstLaunch = 0;
  int64_t lastLaunch = 0;

  json::Value toJSON() const {
    return json::Object{{"name", name},
                        {"dtype", dtype},
                        {"shape", json::Array(shape)},
                        {"offset", offset},
                        {"bytes", bytes},
                        {"live", json::Array{firstLaunch, lastLaunch}}};
  }
};

class Exporter {
public:
  Exporter(func::FuncOp step, StepLimits limits)
      : step(step), limits(limits), sizes(step) {}

  FailureOr<json::Object> run();

private:
  LogicalResult addLaunch(llm::LaunchOp launch);
  FailureOr<int64_t> addResult(llm::LaunchOp launch, OpResult result);
  FailureOr<json::Value> argument(llm::LaunchOp launch, Value value);
  void noteWindows(llm::LaunchOp launch);

  FailureOr<json::Object> outputs();
  FailureOr<json::Object> cache();
  FailureOr<json::Object> arena();
  json::Array inputs();
  json::Array kernelList();

  func::FuncOp step;
  StepLimits limits;
  StepSizes sizes;
  std::vector<Buffer> buffers;
  llvm::DenseMap<Value, int64_t> bufferOf;
  llvm::SetVector<Operation *> kernels;
  json::Array launches;
  // Sliding window of each cache layer that has one.
  llvm::DenseMap<int64_t, int64_t> windows;
};

} // namespace

// The name of an element type in the engine format.
static FailureOr<std::string> dtypeName(Operation *op, Type type) {
  StringRef name = llvm::TypeSwitch<Type, StringRef>(type)
                       .Case([](Float32Type) { return "f32"; })
                       .Case([](Float16Type) { return "f16"; })
                       .Case([](BFloat16Type) { return "bf16"; })
                       .Case([](Float8E4M3FNType) { return "f8e4m3"; })
                       .Case([](Float8E5M2Type) { return "f8e5m2"; })
                       .Default([](Type) { return ""; });
  if (type.isInteger(8))
    name = type.isUnsignedInteger() ? "u8" : "i8";
  else if (type.isInteger(32))
    name = "i32";
  else if (type.isInteger(64))
    name = type.isUnsignedInteger() ? "u64" : "i64";
  if (name.empty())
    return op->emitError() << "the engine format has no name for the type "
                           << type;
  return name.str();
}

static json::Value sizeExpression(StepSize size) {
  if (!size.symbol)
    return size.factor;
  std::string symbol(1, size.symbol);
  if (size.factor == 1)
    return symbol;
  return json::Array{"mul", symbol, size.factor};
}

//===----------------------------------------------------------------------===//
// Launches and their buffers
//===----------------------------------------------------------------------===//

FailureOr<json::Value> Exporter::argument(llm::LaunchOp launch, Value value) {
  if (auto known = bufferOf.find(value); known != bufferOf.end()) {
    buffers[known->second].lastLaunch = launches.size();
    return json::Value(json::Object{{"buffer", known->second}});
  }
  if (auto weight = value.getDefiningOp<llm::WeightOp>())
    return json::Value(json::Object{{"weight", weight.getName()}});
  if (auto layer = value.getDefiningOp<llm::KvLayerOp>())
    return json::Value(json::Object{{"kv", int64_t(layer.getLayer())}});
  if (auto blockArgument = dyn_cast<BlockArgument>(value)) {
    if (const StepInput *input = stepInput(blockArgument.getArgNumber()))
      return json::Value(json::Object{{"input", input->name}});
    if (isa<llm::BatchType>(value.getType()))
      return json::Value(json::Object{{"batch", true}});
  }
  return launch.emitError() << "cannot pass a value of type " << value.getType()
                            << " to @" << launch.getKernel();
}

// A tied result goes on using the buffer of its operand.
FailureOr<int64_t> Exporter::addResult(llm::LaunchOp launch, OpResult result) {
  unsigned number = result.getResultNumber();
  if (std::optional<unsigned> operand = tiedOperand(launch, number)) {
    auto known = bufferOf.find(launch.getOperands()[*operand]);
    if (known == bufferOf.end())
      return launch.emitError() << "ties result #" << number << " to operand #"
                                << *operand << ", which has no buffer";
    return bufferOf[result] = known->second;
  }
  FailureOr<int64_t> bytes = bytesAtLimits(result, sizes, limits);
  if (failed(bytes))
    return failure();
  auto dtype = dtypeName(
      launch, cast<RankedTensorType>(result.getType()).getElementType());
  if (failed(dtype))
    return failure();
  Buffer buffer;
  buffer.name = llvm::formatv("{0}.{1}", launch.getKernel(), launches.size());
  if (launch.getNumResults() > 1)
    buffer.name += "#" + std::to_string(number);
  buffer.dtype = *dtype;
  SmallVector<StepSize> shape = *sizes.shape(result);
  for (StepSize size : shape)
    buffer.shape.push_back(sizeExpression(size));
  buffer.offset = (*launch.getOffsets())[number];
  buffer.bytes = *bytes;
  buffer.firstLaunch = buffer.lastLaunch = launches.size();
  buffers.push_back(std::move(buffer));
  return bufferOf[result] = buffers.size() - 1;
}

void Exporter::noteWindows(llm::LaunchOp launch) {
  kernelOf(launch).walk([&](llm::PagedAttentionOp attention) {
    auto argument = dyn_cast<BlockArgument>(attention.getKv());
    if (!argument || !attention.getWindow())
      return;
    Value cache = launch.getOperands()[argument.getArgNumber()];
    if (auto layer = cache.getDefiningOp<llm::KvLayerOp>())
      windows[layer.getLayer()] = *attention.getWindow();
  });
}

LogicalResult Exporter::addLaunch(llm::LaunchOp launch) {
  if (!launch.getOffsets())
    return launch.emitError("has no arena offsets; run llm-plan-memory first");
  json::Array operands, results;
  for (Value value : launch.getOperands()) {
    FailureOr<json::Value> operand = argument(launch, value);
    if (failed(operand))
      return failure();
    operands.push_back(std::move(*operand));
  }
  for (OpResult result : launch->getResults()) {
    FailureOr<int64_t> buffer = addResult(launch, result);
    if (failed(buffer))
      return failure();
    results.push_back(*buffer);
  }
  llm::KernelOp kernel = kernelOf(launch);
  json::Value workspace = nullptr;
  int64_t index = launches.size();
  if (IntegerAttr offset = launch.getWorkspaceOffsetAttr())
    workspace =
        json::Object{{"offset", offset.getInt()},
                     {"bytes", int64_t(kernel.getWorkspace().value_or(0))},
                     {"live", json::Array{index, index}}};
  kernels.insert(kernel);
  noteWindows(launch);
  launches.push_back(json::Object{{"kernel", kernel.getSymName()},
                                  {"operands", std::move(operands)},
                                  {"results", std::move(results)},
                                  {"workspace", std::move(workspace)}});
  return success();
}

//===----------------------------------------------------------------------===//
// The sections of the plan
//===----------------------------------------------------------------------===//

FailureOr<json::Object> Exporter::outputs() {
  static constexpr StringLiteral names[] = {"logits", "next_tokens"};
  json::Object result;
  auto ret = cast<func::ReturnOp>(step.getBody().front().getTerminator());
  if (ret.getNumOperands() < 1 || ret.getNumOperands() > std::size(names))
    return ret.emitError() << "expected @step to return logits and maybe next "
                              "tokens, got "
                           << ret.getNumOperands() << " values";
  for (auto [name, value] : llvm::zip(names, ret.getOperands())) {
    auto known = bufferOf.find(value);
    if (known == bufferOf.end())
      return ret.emitError() << "expected the output " << name
                             << " to be the result of a launch";
    buffers[known->second].lastLaunch = launches.size() - 1;
    result[name] = known->second;
  }
  return result;
}

FailureOr<json::Object> Exporter::cache() {
  auto type = cast<llm::KvCacheType>(step.getArgumentTypes()[kCacheArgument]);
  json::Array layers;
  for (auto [index, layer] : llvm::enumerate(type.getLayers())) {
    if (layer.getBlock() != type.getLayers().front().getBlock())
      return step.emitError() << "expected one block size in all layers of the "
                                 "cache, got "
                              << type.getLayers().front().getBlock() << " and "
                              << layer.getBlock();
    auto dtype = dtypeName(step, layer.getElement());
    if (failed(dtype))
      return failure();
    auto window = windows.find(index);
    layers.push_back(json::Object{
        {"heads", layer.getHeads()},
        {"head_dim", layer.getHeadDim()},
        {"v_head_dim", layer.getVHeadDim()},
        {"dtype", *dtype},
        {"window", window == windows.end() ? json::Value(nullptr)
                                           : json::Value(window->second)}});
  }
  json::Value blockSize = nullptr;
  if (!type.getLayers().empty())
    blockSize = type.getLayers().front().getBlock();
  return json::Object{{"block_size", std::move(blockSize)},
                      {"layers", std::move(layers)}};
}

FailureOr<json::Object> Exporter::arena() {
  json::Object result;
  std::pair<StringRef, StringRef> fields[] = {
      {"bytes", plan_attr::arenaBytes},
      {"peak", plan_attr::arenaPeak},
      {"lower_bound", plan_attr::arenaLowerBound},
      {"alignment", plan_attr::arenaAlignment}};
  for (auto [key, name] : fields) {
    FailureOr<int64_t> value = readPlanAttr(step, name);
    if (failed(value))
      return failure();
    result[key] = *value;
  }
  json::Array list;
  for (const Buffer &buffer : buffers)
    list.push_back(buffer.toJSON());
  result["buffers"] = std::move(list);
  return result;
}

json::Array Exporter::inputs() {
  json::Array result;
  auto add = [&](StringRef name, StringRef dtype, json::Array shape) {
    result.push_back(json::Object{
        {"name", name}, {"dtype", dtype}, {"shape", std::move(shape)}});
  };
  auto addArgument = [&](const StepInput &input) {
    add(input.name, input.dtype, json::Array{std::string(1, input.rows)});
  };
  llvm::for_each(modelInputs(), addArgument);
  // What !llm.batch stands for.
  add("query_start", "i32", json::Array{json::Array{"add", "S", 1}});
  add("kv_len", "i32", json::Array{"S"});
  add("block_table", "i32", json::Array{"S", "B"});
  add("slots", "i32", json::Array{"T"});
  if (step.getNumArguments() > kNumModelArguments)
    llvm::for_each(samplingInputs(), addArgument);
  return result;
}

json::Array Exporter::kernelList() {
  json::Array result;
  for (Operation *op : kernels) {
    auto kernel = cast<llm::KernelOp>(op);
    result.push_back(json::Object{
        {"name", kernel.getSymName()},
        {"anchor", kernel.getAnchor()},
        {"workspace", int64_t(kernel.getWorkspace().value_or(0))}});
  }
  return result;
}

FailureOr<json::Object> Exporter::run() {
  for (llm::LaunchOp launch : step.getBody().front().getOps<llm::LaunchOp>())
    if (failed(addLaunch(launch)))
      return failure();
  FailureOr<json::Object> outputMap = outputs();
  FailureOr<json::Object> cacheMap = cache();
  FailureOr<json::Object> arenaMap = arena();
  if (failed(outputMap) || failed(cacheMap) || failed(arenaMap))
    return failure();
  int64_t vocabulary =
      cast<RankedTensorType>(step.getResultTypes().front()).getShape().back();
  return json::Object{
      {"plan_version", 1},
      {"constants", json::Object{{"vocab_size", vocabulary},
                                 {"max_num_tokens", limits.maxNumTokens},
                                 {"max_batch_size", limits.maxBatchSize}}},
      {"inputs", inputs()},
      {"outputs", std::move(*outputMap)},
      {"kv_cache", std::move(*cacheMap)},
      {"arena", std::move(*arenaMap)},
      {"kernels", kernelList()},
      {"launches", std::move(launches)}};
}

namespace {
struct ExportPlanPass : llmc::impl::LlmExportPlanBase<ExportPlanPass> {
  using LlmExportPlanBase::LlmExportPlanBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> step = findPagedStep(getOperation());
    if (failed(step))
      return signalPassFailure();
    FailureOr<StepLimits> limits = readLimits(*step);
    if (failed(limits))
      return signalPassFailure();
    FailureOr<json::Object> plan = Exporter(*step, *limits).run();
    // Objects are printed with sorted keys: equal plans are equal bytes.
    if (failed(plan) ||
        failed(write(llvm::formatv("{0:2}", json::Value(std::move(*plan))))))
      signalPassFailure();
  }

  LogicalResult write(std::string text) {
    if (output.empty()) {
      getOperation()->setAttr("llm.plan", StringAttr::get(&getContext(), text));
      return success();
    }
    std::string error;
    auto file = openOutputFile(output, &error);
    if (!file)
      return getOperation().emitError() << "cannot write the plan: " << error;
    file->os() << text << "\n";
    file->keep();
    return success();
  }
};
} // namespace
