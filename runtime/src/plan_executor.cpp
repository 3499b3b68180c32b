#include "plan_executor.h"

#include "error.h"

#include <algorithm>
#include <bit>

namespace llmc {

PlanExecutor::PlanExecutor(Backend &backend, const Plan &plan,
                           const StepInputs &inputs, const PlanMemory &memory,
                           const Sizes &fixed, int max_rows)
    : backend_(backend), plan_(plan), inputs_(inputs), memory_(memory),
      fixed_(fixed), max_rows_(max_rows) {
  for (const Kernel &kernel : plan.kernels)
    kernels_.push_back(backend.load_kernel(kernel));
  for (const Range &range : plan.ranges) {
    BoundRange bound{range.max_tokens, {}};
    for (const Launch &launch : range.launches)
      bound.launches.push_back(bind(launch));
    ranges_.push_back(std::move(bound));
  }
  logits_ = resolve(BufferRef{plan.logits});
  if (plan.next_tokens)
    next_tokens_ = resolve(BufferRef{*plan.next_tokens});
}

uint64_t PlanExecutor::resolve(const Address &address) const {
  struct Visitor {
    const PlanExecutor &self;
    uint64_t operator()(const BufferRef &ref) const {
      return self.memory_.arena + self.plan_.buffers[ref.index].offset;
    }
    uint64_t operator()(const WeightRef &ref) const {
      return self.memory_.weights.at(ref.name);
    }
    uint64_t operator()(const InputRef &ref) const {
      return self.memory_.step_block + self.inputs_.offset(ref.input);
    }
    uint64_t operator()(const KvRef &ref) const {
      return (ref.is_value ? self.memory_.values
                           : self.memory_.keys)[ref.layer];
    }
  };
  return std::visit(Visitor{*this}, address);
}

PlanExecutor::BoundLaunch PlanExecutor::bind(const Launch &launch) {
  BoundLaunch bound{&plan_.kernels[launch.kernel],
                    kernels_[launch.kernel],
                    launch.grid,
                    {},
                    {},
                    {},
                    {}};
  bound.slots.resize(launch.args.size());
  bound.params.resize(launch.args.size());
  for (size_t i = 0; i < launch.args.size(); ++i) {
    uint64_t &slot = bound.slots[i];
    bound.params[i] =
        &slot; // stable: the vector's storage moves with it, not its elements
    const Argument &argument = launch.args[i];
    if (auto *address = std::get_if<Address>(&argument)) {
      slot = resolve(*address);
    } else if (auto *integer = std::get_if<IntegerArg>(&argument)) {
      if (integer->value.depends_on_step())
        bound.dynamic.push_back({&slot, integer->value, integer->wide});
      else
        slot = static_cast<uint64_t>(integer->value.evaluate(fixed_));
    } else if (auto *number = std::get_if<FloatArg>(&argument)) {
      slot = std::bit_cast<uint32_t>(number->value);
    } else {
      auto &map = std::get<TensorMapArg>(argument);
      bound.maps.push_back(std::make_unique<EncodedTensorMap>(
          backend_.encode_tensor_map(map, resolve(map.base), fixed_)));
      bound.params[i] = bound.maps.back().get();
    }
  }
  return bound;
}

void PlanExecutor::run(const Sizes &sizes, const StepUpload &upload) {
  prepare(sizes);
  backend_.run(prepared_, upload);
}

int PlanExecutor::replay_rows(int rows) {
  int padded = rows <= 8 ? static_cast<int>(std::bit_ceil(unsigned(rows)))
                         : (rows + 7) / 8 * 8;
  // Never into the next range: its kernels may add up in another order, and a
  // request must get the same tokens with and without padding.
  padded = std::min({padded, max_rows_, range_of(rows).max_tokens});
  return backend_.has_graph(padded) || backend_.accepts_graphs() ? padded : 0;
}

void PlanExecutor::replay(int rows, const StepUpload &upload) {
  if (!backend_.has_graph(rows)) {
    prepare({.T = rows, .S = rows, .R = rows, .NB = 0, .B = 0});
    if (!backend_.record(rows, prepared_))
      return backend_.run(prepared_, upload);
  }
  backend_.replay(rows, upload);
}

StepProfile PlanExecutor::profile(const Sizes &sizes, size_t input_bytes,
                                  int repeats) {
  run(sizes, {input_bytes, {}}); // uploads the inputs and loads the code
  StepProfile profile;
  profile.seconds = backend_.time(prepared_, repeats);
  for (size_t i = 0; i < kernels_.size(); ++i) {
    std::vector<PreparedLaunch> launches, others;
    for (const PreparedLaunch &launch : prepared_)
      (launch.kernel == kernels_[i] ? launches : others).push_back(launch);
    if (launches.empty())
      continue;
    // Without them the step computes something else, in the same time.
    double rest = backend_.time(others, repeats);
    profile.kernels.push_back(
        {&plan_.kernels[i], static_cast<int>(launches.size()),
         backend_.time(launches, repeats), profile.seconds - rest});
  }
  return profile;
}

PlanExecutor::BoundRange &PlanExecutor::range_of(int64_t num_tokens) {
  auto range =
      std::find_if(ranges_.begin(), ranges_.end(), [&](const BoundRange &r) {
        return num_tokens <= r.max_tokens;
      });
  if (range == ranges_.end() || num_tokens < 1)
    fail(LLMC_INTERNAL, "no plan for a step of ", num_tokens, " tokens");
  return *range;
}

void PlanExecutor::prepare(Sizes sizes) {
  sizes.NB = fixed_.NB;
  sizes.B = fixed_.B;
  prepared_.clear();
  for (BoundLaunch &launch : range_of(sizes.T).launches) {
    PreparedLaunch prepared{
        launch.handle, {}, launch.slots.data(), launch.params.data()};
    int64_t blocks = 1;
    for (size_t i = 0; i < 3; ++i) {
      int64_t extent = std::max<int64_t>(0, launch.grid[i].evaluate(sizes));
      if (extent > INT32_MAX)
        fail(LLMC_BAD_ENGINE, "kernel ", launch.kernel->name, ": a grid of ",
             extent, " in dimension ", i);
      prepared.grid[i] = static_cast<uint32_t>(extent);
      blocks *= extent;
    }
    if (blocks == 0)
      continue; // a chunk of prefill has no logit rows, for example
    for (const DynamicArg &argument : launch.dynamic) {
      int64_t value = argument.value.evaluate(sizes);
      if (!argument.wide && value != static_cast<int32_t>(value))
        fail(LLMC_BAD_ENGINE, "kernel ", launch.kernel->name, ": ", value,
             " does not fit an i32 argument");
      *argument.slot = static_cast<uint64_t>(value);
    }
    prepared_.push_back(prepared);
  }
}

} // namespace llmc
