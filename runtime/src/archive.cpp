#include "archive.h"

#include "error.h"

#include <cstdint>
#include <cstring>

namespace llmc {

namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50,
                   kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kLocator64 = 0x07064b50;

// Bounds-checked little-endian reads: every offset in the file may be a lie.
class Reader {
public:
  Reader(std::span<const std::byte> file, const std::string &name)
      : file_(file), name_(name) {}

  template <class T> T read(uint64_t offset) const {
    T value;
    std::memcpy(&value, bytes(offset, sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::span<const std::byte> bytes(uint64_t offset, uint64_t size) const {
    if (offset > file_.size() || size > file_.size() - offset)
      bad("it is truncated");
    return file_.subspan(offset, size);
  }
  [[noreturn]] void bad(const char *why) const {
    fail(LLMC_BAD_ENGINE, name_, " is not an engine archive: ", why,
         "; expected an engine folder or an uncompressed .llmc zip: copy it "
         "again or recompile it");
  }
  uint64_t size() const { return file_.size(); }

private:
  std::span<const std::byte> file_;
  const std::string &name_;
};

uint64_t find_end(const Reader &r) {
  if (r.size() < 22)
    r.bad("it is too short");
  uint64_t lowest = r.size() > 22 + 65535 ? r.size() - 22 - 65535 : 0;
  for (uint64_t at = r.size() - 22;; --at) {
    if (r.read<uint32_t>(at) == kEnd)
      return at;
    if (at == lowest)
      r.bad("it has no zip directory");
  }
}

} // namespace

std::map<std::string, std::span<const std::byte>>
read_archive(std::span<const std::byte> file, const std::string &name) {
  Reader r(file, name);
  uint64_t end = find_end(r);
  uint64_t count = r.read<uint16_t>(end + 10), at = r.read<uint32_t>(end + 16);
  if (end >= 20 && r.read<uint32_t>(end - 20) == kLocator64) {
    uint64_t end64 = r.read<uint64_t>(end - 20 + 8);
    if (r.read<uint32_t>(end64) != kEnd64)
      r.bad("its zip64 directory is damaged");
    count = r.read<uint64_t>(end64 + 32);
    at = r.read<uint64_t>(end64 + 48);
  }
  std::map<std::string, std::span<const std::byte>> members;
  for (uint64_t i = 0; i < count; ++i) {
    if (r.read<uint32_t>(at) != kCentralHeader)
      r.bad("its zip directory is damaged");
    uint16_t method = r.read<uint16_t>(at + 10);
    uint64_t size = r.read<uint32_t>(at + 24),
             local = r.read<uint32_t>(at + 42);
    uint16_t name_size = r.read<uint16_t>(at + 28),
             extra_size = r.read<uint16_t>(at + 30),
             comment = r.read<uint16_t>(at + 32);
    auto raw = r.bytes(at + 46, name_size);
    std::string member(reinterpret_cast<const char *>(raw.data()), raw.size());
    // Zip64 extra field: 8-byte values for exactly those header fields that are
    // saturated, in a fixed order.
    for (uint64_t extra = at + 46 + name_size, stop = extra + extra_size;
         extra + 4 <= stop;) {
      uint16_t id = r.read<uint16_t>(extra),
               length = r.read<uint16_t>(extra + 2);
      if (id == 1) {
        uint64_t field = extra + 4;
        if (size == UINT32_MAX)
          size = r.read<uint64_t>(field), field += 8;
        if (r.read<uint32_t>(at + 20) == UINT32_MAX)
          field += 8;
        if (local == UINT32_MAX)
          local = r.read<uint64_t>(field);
      }
      extra += 4 + length;
    }
    if (method != 0)
      r.bad(concat("its member ", member, " is compressed").c_str());
    if (r.read<uint32_t>(local) != kLocalHeader)
      r.bad("its members are damaged");
    uint64_t data = local + 30 + r.read<uint16_t>(local + 26) +
                    r.read<uint16_t>(local + 28);
    if (!member.empty() && member.back() != '/')
      members.emplace(member, r.bytes(data, size));
    at += 46 + name_size + extra_size + comment;
  }
  return members;
}

} // namespace llmc
