#pragma once
// Reader of `.llmc` archives: zip files whose members are stored, not
// compressed, so that they can be used in place.

#include <cstddef>
#include <map>
#include <span>
#include <string>

namespace llmc {

// Member name to bytes. Throws LLMC_BAD_ENGINE when `file` is not such an
// archive. Zip64 is understood.
std::map<std::string, std::span<const std::byte>>
read_archive(std::span<const std::byte> file, const std::string &name);

} // namespace llmc
