#include "manifest.h"

#include "error.h"
#include "json_view.h"

#include <nlohmann/json.hpp>

#include <set>

namespace llmc {

namespace {

constexpr int64_t kMaxInt = INT32_MAX;

std::string read_sha256(const JsonView &json) {
  std::string hex = json.string();
  if (hex.size() != 64 ||
      hex.find_first_not_of("0123456789abcdef") != std::string::npos)
    json.expected("64 lower-case hex digits");
  return hex;
}

// Part paths come from a file that may be hostile: they must stay inside the
// engine.
std::string read_part_path(const JsonView &json) {
  std::string path = json.string();
  if (path.empty() || path.front() == '/' ||
      path.find("..") != std::string::npos ||
      path.find('\\') != std::string::npos)
    json.expected("a relative path inside the engine");
  return path;
}

ModelInfo read_model(const JsonView &json) {
  ModelInfo model;
  model.architecture = json.at("architecture").string();
  if (auto name = json.find("name"))
    model.name = name->string();
  model.vocab_size =
      static_cast<int>(json.at("vocab_size").integer(1, kMaxInt));
  if (auto bos = json.find("bos_token_id"))
    model.bos_token_id = static_cast<int>(bos->integer(0, kMaxInt));
  if (auto eos = json.find("eos_token_ids"))
    for (const JsonView &id : eos->elements())
      model.eos_token_ids.push_back(
          static_cast<int32_t>(id.integer(0, kMaxInt)));
  return model;
}

Limits read_limits(const JsonView &json) {
  Limits limits;
  limits.max_batch_size =
      static_cast<int>(json.at("max_batch_size").integer(1, 1 << 20));
  limits.max_num_tokens =
      static_cast<int>(json.at("max_num_tokens").integer(1, 1 << 24));
  limits.max_seq_len =
      static_cast<int>(json.at("max_seq_len").integer(1, kMaxInt));
  limits.block_size =
      static_cast<int>(json.at("block_size").integer(1, 1 << 20));
  limits.max_blocks_per_seq =
      static_cast<int>(json.at("max_blocks_per_seq").integer(1, kMaxInt));
  int64_t reach = int64_t{limits.max_blocks_per_seq} * limits.block_size;
  if (reach < limits.max_seq_len)
    json.at("max_blocks_per_seq")
        .expected(concat("at least ceildiv(max_seq_len = ", limits.max_seq_len,
                         ", block_size = ", limits.block_size, ")"));
  return limits;
}

std::vector<WeightInfo> read_weights(const JsonView &json) {
  std::vector<WeightInfo> weights;
  std::set<std::string> names;
  for (const JsonView &row : json.elements()) {
    WeightInfo weight;
    weight.name = row.at("name").string();
    if (!names.insert(weight.name).second)
      row.at("name").expected("a name that occurs once");
    weight.dtype = row.at("dtype").dtype();
    for (const JsonView &dim : row.at("shape").elements())
      weight.shape.push_back(dim.integer(0, INT64_C(1) << 40));
    if (auto hash = row.find("sha256"))
      weight.sha256 = read_sha256(*hash);
    weights.push_back(std::move(weight));
  }
  return weights;
}

} // namespace

size_t WeightInfo::bytes() const {
  size_t n = info(dtype).bytes;
  for (int64_t dim : shape)
    if (__builtin_mul_overflow(n, static_cast<size_t>(dim), &n))
      fail(LLMC_BAD_ENGINE, "manifest.json: the shape of weight ", name,
           " overflows 64 bits; recompile the engine");
  return n;
}

Manifest parse_manifest(std::span<const std::byte> text) {
  nlohmann::json document = parse_json(text, "manifest.json");
  JsonView root(document, "manifest.json: ");
  Manifest manifest;

  // Before anything else: another version may spell the rest differently.
  manifest.format_version =
      static_cast<int>(root.at("format_version").integer(0, kMaxInt));
  JsonView compiler = root.at("compiler");
  manifest.compiler = concat(compiler.at("name").string(), " ",
                             compiler.at("version").string());
  if (manifest.format_version < kFormatVersionMin ||
      manifest.format_version > kFormatVersionMax)
    fail(LLMC_UNSUPPORTED, "the engine has format version ",
         manifest.format_version, " (written by ", manifest.compiler,
         "), this runtime reads version ", kFormatVersionMin,
         kFormatVersionMin == kFormatVersionMax
             ? std::string()
             : concat(" to ", kFormatVersionMax),
         manifest.format_version > kFormatVersionMax
             ? "; install a newer llmc or recompile the engine with this one"
             : "; recompile the engine with this llmc");

  JsonView target = root.at("target");
  manifest.target.name = target.at("name").string();
  manifest.target.arch = target.at("arch").string();
  if (auto features = target.find("features"))
    for (const JsonView &feature : features->elements())
      manifest.target.features.push_back(feature.string());
  manifest.model = read_model(root.at("model"));
  manifest.limits = read_limits(root.at("limits"));
  JsonView weights = root.at("weights");
  manifest.weights_bound = weights.at("bound").boolean();
  manifest.weights = read_weights(weights.at("tensors"));
  for (const JsonView &row : root.at("parts").elements())
    manifest.parts.push_back(
        {read_part_path(row.at("path")),
         static_cast<uint64_t>(row.at("bytes").integer(0, INT64_MAX)),
         read_sha256(row.at("sha256"))});
  return manifest;
}

} // namespace llmc
