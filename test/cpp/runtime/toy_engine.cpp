#include "toy_engine.h"

#include "cpu_features.h"
#include "sha256.h"

#include <cstring>
#include <fstream>
#include <span>
#include <sstream>
#include <stdexcept>
#include <unistd.h>

namespace llmc::test {

namespace fs = std::filesystem;
using nlohmann::json;

std::string read_file(const fs::path &path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw std::runtime_error("cannot read " + path.string());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void write_file(const fs::path &path, const std::string &bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << bytes;
  if (!out.flush())
    throw std::runtime_error("cannot write " + path.string());
}

static std::string hash(const std::string &bytes) {
  return sha256_hex(std::as_bytes(std::span(bytes)));
}

ToyEngine::ToyEngine(const Edit &edit) {
  std::string name = (fs::temp_directory_path() / "llmc-toy-XXXXXX").string();
  if (!mkdtemp(name.data()))
    throw std::runtime_error("cannot make a temporary folder");
  folder_ = name;
  fs::create_directories(folder_ / "kernels");
  fs::copy_file(LLMC_TOY_HOST_SO, folder_ / "kernels/host.so");

  json manifest =
      json::parse(read_file(fs::path(LLMC_TOY_DIR) / "manifest.json"));
  json plan = json::parse(read_file(fs::path(LLMC_TOY_DIR) / "plan.json"));
  manifest["target"]["arch"] = host_arch();

  float bias[64];
  for (int i = 0; i < 64; ++i)
    bias[i] = static_cast<float>(i % 7) * 0.25f;
  std::string data(reinterpret_cast<const char *>(bias), sizeof(bias));
  manifest["weights"]["tensors"] = {{{"name", "bias"},
                                     {"dtype", "f32"},
                                     {"shape", {64}},
                                     {"sha256", hash(data)}}};
  std::string header = json{{"bias",
                             {{"dtype", "F32"},
                              {"shape", {64}},
                              {"data_offsets", {0, sizeof(bias)}}}}}
                           .dump();
  uint64_t size = header.size();
  std::string prefix(8, '\0');
  std::memcpy(prefix.data(), &size, 8);
  write_file(folder_ / "weights.safetensors", prefix + header + data);

  if (edit)
    edit(manifest, plan);
  write_file(folder_ / "plan.json", plan.dump());
  for (const char *part :
       {"kernels/host.so", "plan.json", "weights.safetensors"}) {
    std::string bytes = read_file(folder_ / part);
    manifest["parts"].push_back(
        {{"path", part}, {"bytes", bytes.size()}, {"sha256", hash(bytes)}});
  }
  write_file(folder_ / "manifest.json", manifest.dump());
}

ToyEngine::~ToyEngine() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void ToyEngine::flip_byte(const std::string &part, long offset_from_end) {
  std::string bytes = read_file(file(part));
  bytes[bytes.size() - static_cast<size_t>(offset_from_end)] ^= 0x10;
  write_file(file(part), bytes);
}

void ToyEngine::truncate(const std::string &part, long bytes_less) {
  std::string bytes = read_file(file(part));
  write_file(file(part),
             bytes.substr(0, bytes.size() - static_cast<size_t>(bytes_less)));
}

} // namespace llmc::test
