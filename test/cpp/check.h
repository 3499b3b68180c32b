// The whole test harness of the C++ tests: a user needs no test library.
//
//   #include "check.h"
//   TEST(block_pool_frees_in_order) { CHECK_EQ(pool.free(), 3); }
//   TEST_MAIN()
//
// A failed CHECK reports and goes on; REQUIRE leaves the test. The program
// takes parts of test names as arguments and then runs only those tests.
#pragma once

#include <cstdio>
#include <cstring>
#include <exception>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace llmc::check {

struct Test {
  const char *name;
  void (*body)();
};

inline std::vector<Test> &tests() {
  static std::vector<Test> all;
  return all;
}

inline int &failures() {
  static int count = 0;
  return count;
}

struct Register {
  Register(const char *name, void (*body)()) {
    tests().push_back({name, body});
  }
};

// Thrown by REQUIRE; not a std::exception, so that no test swallows it.
struct Stop {};

template <typename T> std::string show(const T &value) {
  if constexpr (requires(std::ostringstream &s) { s << value; }) {
    std::ostringstream text;
    text.precision(9);
    text << value;
    return text.str();
  } else if constexpr (std::is_enum_v<T>) {
    return show(static_cast<std::underlying_type_t<T>>(value));
  } else {
    return "<" + std::to_string(sizeof(T)) + " bytes>";
  }
}

inline bool report(bool ok, const char *file, int line,
                   const std::string &what) {
  if (!ok) {
    ++failures();
    std::printf("%s:%d: %s\n", file, line, what.c_str());
  }
  return ok;
}

// An integer literal beside a size_t is no reason for a warning.
template <typename A, typename B> bool equal(const A &a, const B &b) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B> &&
                !std::is_same_v<A, bool> && !std::is_same_v<B, bool>)
    return std::cmp_equal(a, b);
  else
    return a == b;
}

template <typename A, typename B>
bool check_eq(const A &a, const B &b, const char *text, const char *file,
              int line) {
  bool ok = equal(a, b);
  return report(ok, file, line,
                ok ? ""
                   : std::string(text) + ": " + show(a) + " is not " + show(b));
}

inline bool check_near(double a, double b, double tolerance, const char *text,
                       const char *file, int line) {
  // Written so that a NaN on either side fails.
  bool ok = (a - b <= tolerance) && (b - a <= tolerance);
  return report(ok, file, line,
                ok ? ""
                   : std::string(text) + ": " + show(a) + " differs from " +
                         show(b) + " by more than " + show(tolerance));
}

// Runs `body` and gives the message of the exception it throws, or fails.
template <typename E, typename F>
std::string thrown(F &&body, const char *text, const char *file, int line) {
  try {
    body();
  } catch (const E &error) {
    return error.what();
  }
  report(false, file, line, std::string(text) + ": nothing was thrown");
  return "";
}

inline bool selected(const char *name, int argc, char **argv) {
  for (int i = 1; i < argc; ++i)
    if (std::strstr(name, argv[i]))
      return true;
  return argc < 2;
}

inline int run(int argc, char **argv) {
  int ran = 0, failed = 0;
  for (const Test &test : tests()) {
    if (!selected(test.name, argc, argv))
      continue;
    int before = failures();
    try {
      test.body();
    } catch (const Stop &) { // reported where it was thrown
    } catch (const std::exception &error) {
      report(false, test.name, 0, std::string("exception: ") + error.what());
    }
    ++ran;
    bool ok = failures() == before;
    failed += !ok;
    std::printf("%s %s\n", ok ? "ok    " : "FAILED", test.name);
  }
  std::printf("%d passed, %d failed\n", ran - failed, failed);
  // A filter that selects nothing is a mistake of the caller.
  return failed || !ran;
}

} // namespace llmc::check

#define TEST(name)                                                             \
  static void name();                                                          \
  static ::llmc::check::Register register_##name{#name, name};                 \
  static void name()

#define CHECK(condition)                                                       \
  ::llmc::check::report(static_cast<bool>(condition), __FILE__, __LINE__,      \
                        #condition)
#define CHECK_EQ(a, b) ::llmc::check::check_eq((a), (b), #a, __FILE__, __LINE__)
#define CHECK_NEAR(a, b, tolerance)                                            \
  ::llmc::check::check_near((a), (b), (tolerance), #a, __FILE__, __LINE__)
#define REQUIRE(condition)                                                     \
  do {                                                                         \
    if (!CHECK(condition))                                                     \
      throw ::llmc::check::Stop{};                                             \
  } while (false)
// The message of what the expression throws: CHECK(THROWN(Error,
// f()).find("expected") ...).
#define THROWN(exception, ...)                                                 \
  ::llmc::check::thrown<exception>([&] { (void)(__VA_ARGS__); }, #__VA_ARGS__, \
                                   __FILE__, __LINE__)

#define TEST_MAIN()                                                            \
  int main(int argc, char **argv) { return ::llmc::check::run(argc, argv); }
