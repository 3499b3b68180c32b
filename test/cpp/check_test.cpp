// The harness itself: passing checks pass and each failing one is counted.
#include "check.h"

#include <cmath>
#include <stdexcept>

// Counts the failures of `body` and takes them back.
template <typename F> static int failures_of(F &&body) {
  int before = llmc::check::failures();
  try {
    body();
  } catch (const llmc::check::Stop &) {
  }
  int count = llmc::check::failures() - before;
  llmc::check::failures() = before;
  return count;
}

TEST(true_conditions_pass) {
  CHECK(1 + 1 == 2);
  CHECK_EQ(std::string("a"), "a");
  CHECK_EQ(sizeof(char), 1);
  CHECK_NEAR(0.1 + 0.2, 0.3, 1e-12);
}

TEST(false_conditions_are_counted) {
  CHECK_EQ(failures_of([] {
             CHECK(false);
             CHECK_EQ(1, 2);
             CHECK_NEAR(1.0, NAN, 1.0);
           }),
           3);
}

TEST(require_leaves_the_test) {
  bool reached = false;
  CHECK_EQ(failures_of([&] {
             REQUIRE(false);
             reached = true;
           }),
           1);
  CHECK(!reached);
}

TEST(thrown_gives_the_message) {
  auto fails = []() -> int { throw std::runtime_error("no block left"); };
  CHECK_EQ(THROWN(std::runtime_error, fails()), "no block left");
  CHECK_EQ(failures_of([] { THROWN(std::runtime_error, 1 + 1); }), 1);
}

TEST_MAIN()
