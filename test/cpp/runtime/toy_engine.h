#pragma once
// Writes the toy engine (toy/host.c with its plan and manifest) into a
// temporary folder.

#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <string>

namespace llmc::test {

class ToyEngine {
public:
  // `edit` may change manifest and plan before hashes are taken.
  using Edit =
      std::function<void(nlohmann::json &manifest, nlohmann::json &plan)>;
  explicit ToyEngine(const Edit &edit = {});
  ~ToyEngine();
  ToyEngine(const ToyEngine &) = delete;
  ToyEngine &operator=(const ToyEngine &) = delete;

  std::string path() const { return folder_.string(); }
  std::filesystem::path file(const std::string &part) const {
    return folder_ / part;
  }

  // Damage after the hashes were taken.
  void flip_byte(const std::string &part, long offset_from_end);
  void truncate(const std::string &part, long bytes_less);

private:
  std::filesystem::path folder_;
};

std::string read_file(const std::filesystem::path &path);
void write_file(const std::filesystem::path &path, const std::string &bytes);

} // namespace llmc::test
