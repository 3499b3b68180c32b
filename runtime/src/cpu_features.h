#pragma once
// CPU features by their LLVM names, as host engines record them.

#include <string>
#include <vector>

namespace llmc {

std::string host_arch(); // "x86-64", "aarch64"

// Features of `wanted` that this CPU (or its operating system) does not offer.
// A name this runtime does not know counts as missing. AMX counts as missing
// always: some virtual machines list it in CPUID and fault on its first
// instruction.
std::vector<std::string>
missing_cpu_features(const std::vector<std::string> &wanted);

} // namespace llmc
