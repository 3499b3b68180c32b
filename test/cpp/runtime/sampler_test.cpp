#include "check.h"
TEST(placeholder) { CHECK(true); }
TEST_MAIN()
