#pragma once
// A file mapped read-only for its whole length.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace llmc {

class MappedFile {
public:
  // Throws LLMC_NOT_FOUND with the system's reason.
  static std::shared_ptr<MappedFile> open(const std::string &path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte *>(data_), size_};
  }

private:
  MappedFile(void *data, size_t size) : data_(data), size_(size) {}
  void *data_;
  size_t size_;
};

// One file of an engine, wherever its bytes lie.
struct Part {
  std::shared_ptr<MappedFile> file; // keeps `bytes` alive
  std::span<const std::byte> bytes;
  std::string path; // on disk; empty for a member of an archive
};

} // namespace llmc
