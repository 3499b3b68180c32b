#include "engine_file.h"

#include "archive.h"
#include "error.h"
#include "sha256.h"

#include <atomic>
#include <filesystem>
#include <thread>

namespace llmc {

namespace {

constexpr const char *kWeights = "weights.safetensors";

std::string shape_text(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

} // namespace

EngineFile EngineFile::open(const std::string &path) {
  namespace fs = std::filesystem;
  EngineFile engine;
  engine.path_ = path;
  std::error_code ec;
  if (!fs::exists(path, ec))
    fail(LLMC_NOT_FOUND, "no engine at ", path, ": no such file or folder");
  if (fs::is_directory(path, ec)) {
    if (!fs::exists(fs::path(path) / "manifest.json", ec))
      fail(LLMC_NOT_FOUND, path,
           " is not an engine: it has no manifest.json; make one with `llmc "
           "compile MODEL -o ENGINE`");
  } else {
    engine.archive_ = MappedFile::open(path);
    engine.members_ = read_archive(engine.archive_->bytes(), path);
  }
  engine.manifest_ = parse_manifest(engine.part("manifest.json").bytes);
  return engine;
}

Part EngineFile::part(const std::string &name) const {
  if (archive_) {
    auto it = members_.find(name);
    if (it == members_.end())
      fail(LLMC_NOT_FOUND, "the archive ", path_, " has no member ", name);
    return {archive_, it->second, ""};
  }
  std::string file = (std::filesystem::path(path_) / name).string();
  auto mapped = MappedFile::open(file);
  return {mapped, mapped->bytes(), file};
}

void EngineFile::verify_parts() const {
  for (const PartInfo &expected : manifest_.parts) {
    Part found;
    if (expected.path == kWeights && !manifest_.weights_bound)
      continue;
    try {
      found = part(expected.path);
    } catch (const Error &error) {
      fail(LLMC_BAD_ENGINE, "the engine is incomplete: ", error.what(),
           "; copy it again or recompile it");
    }
    if (found.bytes.size() != expected.bytes)
      fail(LLMC_BAD_ENGINE, expected.path, ": expected ", expected.bytes,
           " bytes, found ", found.bytes.size(),
           "; the part is truncated or was changed: copy the engine again or "
           "recompile it");
    if (expected.path == kWeights)
      continue; // by tensor, see verify_weights
    std::string hash = sha256_hex(found.bytes);
    if (hash != expected.sha256)
      fail(LLMC_BAD_ENGINE, expected.path, ": expected sha256 ",
           expected.sha256, ", found ", hash,
           "; the part is damaged: copy the engine again or recompile it");
  }
}

Plan EngineFile::read_plan() const {
  return parse_plan(part("plan.json").bytes, manifest_);
}

std::map<std::string, TensorView> EngineFile::read_weights() {
  if (!manifest_.weights_bound)
    fail(LLMC_STRIPPED, "the engine ", path_,
         " is stripped: it has no weights for its ", manifest_.weights.size(),
         " tensors; bind them with `llmc refit ENGINE CHECKPOINT`");
  if (manifest_.weights.empty())
    return {};
  weights_ = part(kWeights);
  auto tensors = read_safetensors(weights_.bytes, kWeights);
  for (const WeightInfo &expected : manifest_.weights) {
    auto it = tensors.find(expected.name);
    if (it == tensors.end())
      fail(LLMC_BAD_ENGINE, kWeights, ": tensor ", expected.name,
           " is missing; run `llmc refit` or recompile the engine");
    if (it->second.dtype != expected.dtype ||
        it->second.shape != expected.shape)
      fail(LLMC_BAD_ENGINE, kWeights, ": tensor ", expected.name, ": expected ",
           info(expected.dtype).name, " ", shape_text(expected.shape),
           ", found ", info(it->second.dtype).name, " ",
           shape_text(it->second.shape),
           "; run `llmc refit` or recompile the engine");
  }
  if (tensors.size() != manifest_.weights.size())
    fail(LLMC_BAD_ENGINE, kWeights, ": expected the manifest's ",
         manifest_.weights.size(), " tensors, found ", tensors.size(),
         "; run `llmc refit` or recompile the engine");
  return tensors;
}

void EngineFile::verify_weights(
    const Manifest &manifest, const std::map<std::string, TensorView> &tensors,
    int num_threads) {
  std::atomic<size_t> next = 0, first_bad = SIZE_MAX;
  auto work = [&] {
    for (size_t i; (i = next++) < manifest.weights.size();) {
      const WeightInfo &weight = manifest.weights[i];
      if (weight.sha256.empty() ||
          sha256_hex(tensors.at(weight.name).bytes) == weight.sha256)
        continue;
      size_t seen = first_bad;
      while (i < seen && !first_bad.compare_exchange_weak(seen, i)) {
      }
    }
  };
  std::vector<std::thread> helpers;
  for (int i = 1; i < num_threads; ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread &helper : helpers)
    helper.join();
  if (first_bad != SIZE_MAX)
    fail(LLMC_BAD_ENGINE, kWeights, ": tensor ",
         manifest.weights[first_bad].name,
         " does not have the sha256 of the manifest (",
         manifest.weights[first_bad].sha256,
         "); the weights are damaged: copy them again or run `llmc refit`");
}

} // namespace llmc
