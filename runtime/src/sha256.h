#pragma once
// SHA-256 (FIPS 180-4), used to verify the parts of an engine.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace llmc {

class Sha256 {
public:
  void update(std::span<const std::byte> data);
  std::string hex_digest(); // 64 lower-case hex digits; the object must not be
                            // used afterwards

private:
  void compress(const std::byte *block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                    0xa54ff53a, 0x510e527f, 0x9b05688c,
                                    0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> pending_{};
  size_t num_pending_ = 0;
  uint64_t num_bytes_ = 0;
};

std::string sha256_hex(std::span<const std::byte> data);

} // namespace llmc
