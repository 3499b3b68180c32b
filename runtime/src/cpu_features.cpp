#include "cpu_features.h"

#include <array>
#include <cstdint>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace llmc {

namespace {

#if defined(__x86_64__)

enum Register { EAX, EBX, ECX, EDX };
enum class State {
  None,
  Avx,
  Avx512
}; // register state that the operating system must save

struct Feature {
  std::string_view name;
  uint32_t leaf, subleaf;
  Register reg;
  int bit;
  State state;
};

constexpr Feature kFeatures[] = {
    {"sse3", 1, 0, ECX, 0, State::None},
    {"pclmul", 1, 0, ECX, 1, State::None},
    {"ssse3", 1, 0, ECX, 9, State::None},
    {"fma", 1, 0, ECX, 12, State::Avx},
    {"cx16", 1, 0, ECX, 13, State::None},
    {"sse4.1", 1, 0, ECX, 19, State::None},
    {"sse4.2", 1, 0, ECX, 20, State::None},
    {"movbe", 1, 0, ECX, 22, State::None},
    {"popcnt", 1, 0, ECX, 23, State::None},
    {"aes", 1, 0, ECX, 25, State::None},
    {"avx", 1, 0, ECX, 28, State::Avx},
    {"f16c", 1, 0, ECX, 29, State::Avx},
    {"cx8", 1, 0, EDX, 8, State::None},
    {"cmov", 1, 0, EDX, 15, State::None},
    {"mmx", 1, 0, EDX, 23, State::None},
    {"fxsr", 1, 0, EDX, 24, State::None},
    {"sse", 1, 0, EDX, 25, State::None},
    {"sse2", 1, 0, EDX, 26, State::None},
    {"bmi", 7, 0, EBX, 3, State::None},
    {"avx2", 7, 0, EBX, 5, State::Avx},
    {"bmi2", 7, 0, EBX, 8, State::None},
    {"avx512f", 7, 0, EBX, 16, State::Avx512},
    {"avx512dq", 7, 0, EBX, 17, State::Avx512},
    {"avx512ifma", 7, 0, EBX, 21, State::Avx512},
    {"avx512cd", 7, 0, EBX, 28, State::Avx512},
    {"avx512bw", 7, 0, EBX, 30, State::Avx512},
    {"avx512vl", 7, 0, EBX, 31, State::Avx512},
    {"avx512vbmi", 7, 0, ECX, 1, State::Avx512},
    {"avx512vbmi2", 7, 0, ECX, 6, State::Avx512},
    {"gfni", 7, 0, ECX, 8, State::None},
    {"vaes", 7, 0, ECX, 9, State::Avx},
    {"vpclmulqdq", 7, 0, ECX, 10, State::Avx},
    {"avx512vnni", 7, 0, ECX, 11, State::Avx512},
    {"avx512bitalg", 7, 0, ECX, 12, State::Avx512},
    {"avx512vpopcntdq", 7, 0, ECX, 14, State::Avx512},
    {"avx512vp2intersect", 7, 0, EDX, 8, State::Avx512},
    {"avx512fp16", 7, 0, EDX, 23, State::Avx512},
    {"avxvnni", 7, 1, EAX, 4, State::Avx},
    {"avx512bf16", 7, 1, EAX, 5, State::Avx512},
    {"avxifma", 7, 1, EAX, 23, State::Avx},
    {"avxvnniint8", 7, 1, EDX, 4, State::Avx},
    {"avxneconvert", 7, 1, EDX, 5, State::Avx},
    {"sahf", 0x80000001, 0, ECX, 0, State::None},
    {"lzcnt", 0x80000001, 0, ECX, 5, State::None},
    {"sse4a", 0x80000001, 0, ECX, 6, State::None},
    {"prfchw", 0x80000001, 0, ECX, 8, State::None},
};

uint64_t enabled_register_state() {
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27)))
    return 0; // no OSXSAVE
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

bool cpu_has(std::string_view name) {
  static const uint64_t xcr0 = enabled_register_state();
  for (const Feature &feature : kFeatures) {
    if (feature.name != name)
      continue;
    std::array<uint32_t, 4> regs{};
    if (!__get_cpuid_count(feature.leaf, feature.subleaf, &regs[0], &regs[1],
                           &regs[2], &regs[3]))
      return false;
    uint64_t state = feature.state == State::None  ? 0
                     : feature.state == State::Avx ? 0x6
                                                   : 0xe6;
    return (regs[feature.reg] >> feature.bit & 1) && (xcr0 & state) == state;
  }
  return false;
}

#elif defined(__aarch64__) && defined(__linux__)

bool cpu_has(std::string_view name) {
  struct Feature {
    std::string_view name;
    unsigned type;
    unsigned long mask;
  };
  static constexpr Feature kFeatures[] = {
      {"neon", AT_HWCAP, 1ul << 1},     {"fullfp16", AT_HWCAP, 1ul << 10},
      {"dotprod", AT_HWCAP, 1ul << 20}, {"sve", AT_HWCAP, 1ul << 22},
      {"sve2", AT_HWCAP2, 1ul << 1},    {"i8mm", AT_HWCAP2, 1ul << 13},
      {"bf16", AT_HWCAP2, 1ul << 14},
  };
  for (const Feature &feature : kFeatures)
    if (feature.name == name)
      return getauxval(feature.type) & feature.mask;
  return false;
}

#else
bool cpu_has(std::string_view) { return false; }
#endif

} // namespace

std::string host_arch() {
#if defined(__x86_64__)
  return "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

std::vector<std::string>
missing_cpu_features(const std::vector<std::string> &wanted) {
  std::vector<std::string> missing;
  for (const std::string &feature : wanted) {
    std::string_view name = feature;
    if (name.starts_with('+'))
      name.remove_prefix(1);
    if (name.starts_with("amx") || !cpu_has(name))
      missing.emplace_back(name);
  }
  return missing;
}

} // namespace llmc
