#pragma once
// An engine on disk: a folder, or the same tree in one uncompressed zip
// archive.

#include "manifest.h"
#include "mapped_file.h"
#include "plan.h"
#include "safetensors.h"

#include <map>
#include <string>

namespace llmc {

class EngineFile {
public:
  // Reads and checks the manifest only, so that the target can be checked
  // before anything big is touched.
  static EngineFile open(const std::string &path);

  const std::string &path() const { return path_; }
  const Manifest &manifest() const { return manifest_; }

  // Every part exists, has its size and (weights aside) its hash.
  void verify_parts() const;
  Plan read_plan() const;

  // Weights by name, checked against the manifest. LLMC_STRIPPED when the
  // engine has none.
  std::map<std::string, TensorView> read_weights();

  // Compares the hashes of all weights, in parallel; throws with the name of
  // the first tensor that differs.
  static void verify_weights(const Manifest &manifest,
                             const std::map<std::string, TensorView> &tensors,
                             int num_threads);

  Part part(const std::string &name) const; // LLMC_NOT_FOUND

private:
  std::string path_;
  std::shared_ptr<MappedFile> archive_; // null for a folder
  std::map<std::string, std::span<const std::byte>> members_; // of the archive
  Manifest manifest_;
  Part weights_; // kept mapped while tensors are read
};

} // namespace llmc
