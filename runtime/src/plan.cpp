#include "plan.h"

#include "error.h"
#include "json_view.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace llmc {

namespace {

constexpr int64_t kMaxInt = INT32_MAX;

class PlanReader {
public:
  PlanReader(const Manifest &manifest, Plan &plan)
      : manifest_(manifest), plan_(plan) {
    for (const WeightInfo &weight : manifest.weights)
      weights_.insert(weight.name);
  }

  void read(const JsonView &root) {
    root.at("plan_version").integer(1, 1);
    read_kv_cache(root.at("kv_cache"));
    read_arena(root.at("arena"));
    read_inputs(root.at("inputs"));
    read_outputs(root.at("outputs"));
    read_code(root.at("code"));
    for (const JsonView &row : root.at("kernels").elements())
      plan_.kernels.push_back(read_kernel(row));
    read_ranges(root.at("ranges"));
    check_buffers_fit(root.at("arena").at("buffers"));
  }

private:
  void read_kv_cache(const JsonView &json) {
    plan_.block_size =
        static_cast<int>(json.at("block_size").integer(1, 1 << 20));
    if (plan_.block_size != manifest_.limits.block_size)
      json.at("block_size")
          .expected(concat("the manifest's block_size ",
                           manifest_.limits.block_size));
    for (const JsonView &row : json.at("layers").elements()) {
      KvLayer layer{};
      layer.heads = static_cast<int>(row.at("heads").integer(1, 1 << 20));
      layer.head_dim = static_cast<int>(row.at("head_dim").integer(1, 1 << 20));
      layer.v_head_dim =
          static_cast<int>(row.at("v_head_dim").integer(0, 1 << 20));
      layer.dtype = row.at("dtype").dtype();
      if (auto window = row.find("window"))
        layer.window = static_cast<int>(window->integer(1, kMaxInt));
      plan_.kv_layers.push_back(layer);
    }
  }

  void read_arena(const JsonView &json) {
    plan_.arena_bytes =
        static_cast<uint64_t>(json.at("bytes").integer(0, INT64_MAX));
    for (const JsonView &row : json.at("buffers").elements()) {
      ArenaBuffer buffer{};
      buffer.name = row.at("name").string();
      buffer.dtype = row.at("dtype").dtype();
      for (const JsonView &dim : row.at("shape").elements())
        buffer.shape.push_back(Expr::parse(dim));
      buffer.offset =
          static_cast<uint64_t>(row.at("offset").integer(0, INT64_MAX));
      buffer.bytes =
          static_cast<uint64_t>(row.at("bytes").integer(0, INT64_MAX));
      if (buffer.offset % 256 != 0)
        row.at("offset").expected("a multiple of 256");
      if (buffer.offset > plan_.arena_bytes ||
          buffer.bytes > plan_.arena_bytes - buffer.offset)
        row.expected(concat("a buffer inside the arena of ", plan_.arena_bytes,
                            " bytes"));
      plan_.buffers.push_back(std::move(buffer));
    }
    buffer_max_tokens_.assign(plan_.buffers.size(), 0);
  }

  void read_inputs(const JsonView &json) {
    for (const JsonView &row : json.elements()) {
      auto input = step_input_from_name(row.at("name").string());
      if (!input)
        row.at("name").expected("the name of a step input");
      if (row.at("dtype").dtype() != info(*input).dtype)
        row.at("dtype").expected(std::string(info(info(*input).dtype).name));
      // Shapes are compared by value at sizes that no two different shapes
      // share.
      const Sizes probe{.T = 1009, .S = 101, .R = 47, .NB = 0, .B = 13};
      int64_t elements = 1;
      for (const JsonView &dim : row.at("shape").elements())
        elements *= Expr::parse(dim).evaluate(probe);
      if (elements != info(*input).elements(probe))
        row.at("shape").expected("the shape given in engine-format.md");
      plan_.inputs.push_back(*input);
    }
  }

  void read_outputs(const JsonView &json) {
    plan_.logits = index(json.at("logits"), plan_.buffers.size());
    const ArenaBuffer &logits = plan_.buffers[plan_.logits];
    uint64_t row_bytes = uint64_t{4} * manifest_.model.vocab_size;
    if (logits.dtype != DType::F32 || logits.bytes < row_bytes)
      json.at("logits").expected(concat("an f32 buffer of rows of ",
                                        manifest_.model.vocab_size, " logits"));
    plan_.max_logit_rows = static_cast<int>(std::min<uint64_t>(
        logits.bytes / row_bytes, manifest_.limits.max_num_tokens));
    if (auto next = json.find("next_tokens")) {
      plan_.next_tokens = index(*next, plan_.buffers.size());
      const ArenaBuffer &tokens = plan_.buffers[*plan_.next_tokens];
      if (tokens.dtype != DType::I32 ||
          tokens.bytes < 4u * plan_.max_logit_rows)
        next->expected(
            concat("an i32 buffer of ", plan_.max_logit_rows, " token ids"));
    }
  }

  void read_code(const JsonView &json) {
    for (const JsonView &row : json.elements()) {
      CodeObject code{row.at("path").string(), row.at("kind").string()};
      bool is_part = std::any_of(
          manifest_.parts.begin(), manifest_.parts.end(),
          [&](const PartInfo &part) { return part.path == code.path; });
      if (!is_part)
        row.at("path").expected("the path of a part of the manifest");
      const char *kind = manifest_.target.name == "host" ? "host" : "cubin";
      if (code.kind != kind)
        row.at("kind").expected(
            concat("\"", kind, "\" for target ", manifest_.target.name));
      plan_.code.push_back(std::move(code));
    }
  }

  Kernel read_kernel(const JsonView &row) {
    Kernel kernel{};
    kernel.name = row.at("name").string();
    kernel.code = index(row.at("code"), plan_.code.size());
    kernel.entry = row.at("entry").string();
    for (size_t i = 0; i < 3; ++i) {
      kernel.block[i] =
          static_cast<uint32_t>(row.at("block").at(i).integer(1, 1024));
      kernel.cluster[i] =
          static_cast<uint32_t>(row.at("cluster").at(i).integer(1, 16));
    }
    kernel.shared_bytes =
        static_cast<uint32_t>(row.at("shared_bytes").integer(0, 1 << 20));
    kernel.pdl = row.at("pdl").boolean();
    return kernel;
  }

  void read_ranges(const JsonView &json) {
    int next = 1;
    for (const JsonView &row : json.elements()) {
      Range range{};
      range.min_tokens =
          static_cast<int>(row.at("min_tokens").integer(1, kMaxInt));
      if (range.min_tokens != next)
        row.at("min_tokens")
            .expected(concat(
                next, " (ranges are ordered, disjoint and leave no gap)"));
      range.max_tokens = static_cast<int>(
          row.at("max_tokens").integer(range.min_tokens, kMaxInt));
      next = range.max_tokens + 1;
      range_max_tokens_ = range.max_tokens;
      for (const JsonView &launch : row.at("launches").elements())
        range.launches.push_back(read_launch(launch));
      plan_.ranges.push_back(std::move(range));
    }
    if (next <= manifest_.limits.max_num_tokens)
      json.expected(concat("ranges up to max_num_tokens ",
                           manifest_.limits.max_num_tokens,
                           ", but they end at ", next - 1));
  }

  Launch read_launch(const JsonView &json) {
    Launch launch{};
    launch.kernel = index(json.at("kernel"), plan_.kernels.size());
    for (size_t i = 0; i < 3; ++i)
      launch.grid[i] = Expr::parse(json.at("grid").at(i));
    for (const JsonView &arg : json.at("args").elements())
      launch.args.push_back(read_argument(arg));
    return launch;
  }

  Argument read_argument(const JsonView &json) {
    if (auto value = json.find("i32"))
      return IntegerArg{Expr::parse(*value), false};
    if (auto value = json.find("i64"))
      return IntegerArg{Expr::parse(*value), true};
    if (auto value = json.find("f32"))
      return FloatArg{static_cast<float>(value->number())};
    if (auto value = json.find("tensor_map"))
      return read_tensor_map(*value);
    return read_address(json);
  }

  Address read_address(const JsonView &json) {
    if (auto value = json.find("buffer")) {
      int i = index(*value, plan_.buffers.size());
      buffer_max_tokens_[i] = range_max_tokens_;
      return BufferRef{i};
    }
    if (auto value = json.find("weight")) {
      if (!weights_.count(value->string()))
        value->expected("the name of a weight of the manifest");
      return WeightRef{value->string()};
    }
    if (auto value = json.find("input")) {
      auto input = step_input_from_name(value->string());
      if (!input || std::find(plan_.inputs.begin(), plan_.inputs.end(),
                              *input) == plan_.inputs.end())
        value->expected("the name of one of the plan's inputs");
      return InputRef{*input};
    }
    if (auto value = json.find("kv")) {
      std::string which = value->string();
      if (which != "k" && which != "v")
        value->expected("\"k\" or \"v\"");
      return KvRef{which == "v",
                   index(json.at("layer"), plan_.kv_layers.size())};
    }
    json.expected(
        "an argument (buffer, weight, input, kv, i32, i64, f32 or tensor_map)");
  }

  TensorMapArg read_tensor_map(const JsonView &json) {
    if (manifest_.target.name == "host")
      json.expected("no tensor map in a host engine");
    TensorMapArg map{read_address(json.at("base")),
                     json.at("dtype").dtype(),
                     {},
                     {},
                     {},
                     0,
                     0};
    auto read_exprs = [](const JsonView &list, std::vector<Expr> &out) {
      for (const JsonView &row : list.elements()) {
        out.push_back(Expr::parse(row));
        if (out.back().depends_on_step())
          row.expected("an expression without T, S and R: maps are built once "
                       "after load");
      }
    };
    read_exprs(json.at("shape"), map.shape);
    read_exprs(json.at("strides"), map.strides);
    for (const JsonView &row : json.at("box").elements())
      map.box.push_back(static_cast<uint32_t>(row.integer(1, 256)));
    if (map.shape.empty() || map.shape.size() > 5)
      json.at("shape").expected("1 to 5 dimensions");
    if (map.box.size() != map.shape.size())
      json.at("box").expected(
          concat(map.shape.size(), " dimensions, as in shape"));
    if (map.strides.size() + 1 != map.shape.size())
      json.at("strides").expected(
          concat(map.shape.size() - 1, " strides, one less than dimensions"));
    map.swizzle = one_of(json.at("swizzle"), {0, 32, 64, 128});
    map.l2_promotion = one_of(json.at("l2_promotion"), {0, 64, 128, 256});
    if (json.at("fill").string() != "zero")
      json.at("fill").expected("\"zero\"");
    return map;
  }

  // The runtime trusts `bytes`: a shape that outgrows it at the limits would
  // let kernels write over a neighbour. A buffer used only by ranges of few
  // tokens needs room for those alone.
  void check_buffers_fit(const JsonView &json) {
    const Limits &limits = manifest_.limits;
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      const ArenaBuffer &buffer = plan_.buffers[i];
      const Sizes sizes{
          .T = std::min(buffer_max_tokens_[i], limits.max_num_tokens),
          .S = limits.max_batch_size,
          .R = plan_.max_logit_rows,
          .NB = 0,
          .B = limits.max_blocks_per_seq};
      int64_t bytes = static_cast<int64_t>(info(buffer.dtype).bytes);
      for (const Expr &dim : buffer.shape)
        if (__builtin_mul_overflow(bytes, dim.evaluate(sizes), &bytes))
          json.at(i).expected("a shape below 2^63 bytes");
      if (sizes.T > 0 &&
          (bytes < 0 || static_cast<uint64_t>(bytes) > buffer.bytes))
        json.at(i).at("bytes").expected(
            concat("at least ", bytes,
                   ", the size of the shape at the engine's limits"));
    }
  }

  static int index(const JsonView &json, size_t size) {
    if (size == 0)
      json.expected("no reference: the list it points into is empty");
    return static_cast<int>(json.integer(0, static_cast<int64_t>(size) - 1));
  }

  static int one_of(const JsonView &json, std::initializer_list<int> values) {
    int64_t v = json.integer(0, 256);
    if (std::find(values.begin(), values.end(), v) == values.end())
      json.expected("a size in bytes the hardware has");
    return static_cast<int>(v);
  }

  const Manifest &manifest_;
  Plan &plan_;
  std::set<std::string> weights_;
  int range_max_tokens_ =
      0; // of the range being read; ranges come in ascending order
  std::vector<int>
      buffer_max_tokens_; // largest step that touches the buffer, 0: none
};

} // namespace

size_t Plan::kv_bytes_per_block() const {
  size_t bytes = 0;
  for (const KvLayer &layer : kv_layers)
    bytes += size_t(layer.heads) * block_size *
             (layer.head_dim + layer.v_head_dim) * info(layer.dtype).bytes;
  return bytes;
}

Plan parse_plan(std::span<const std::byte> text, const Manifest &manifest) {
  nlohmann::json document = parse_json(text, "plan.json");
  Plan plan{};
  PlanReader(manifest, plan).read(JsonView(document, "plan.json: "));
  return plan;
}

} // namespace llmc
