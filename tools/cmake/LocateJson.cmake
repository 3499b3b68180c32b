# nlohmann::json: from the Python package nlohmann-json, else from the system.
find_package(Python 3.10 COMPONENTS Interpreter)
if(Python_EXECUTABLE)
  execute_process(
    COMMAND
      ${Python_EXECUTABLE} -c
      "import importlib.util as u; print(u.find_spec('nlohmann_json').submodule_search_locations[0])"
    OUTPUT_VARIABLE json_package
    OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_QUIET
  )
endif()
if(NOT EXISTS "${LLMC_JSON_INCLUDE_DIR}/nlohmann/json.hpp")
  unset(LLMC_JSON_INCLUDE_DIR CACHE)
endif()
find_path(LLMC_JSON_INCLUDE_DIR nlohmann/json.hpp HINTS ${json_package}/include)
if(NOT LLMC_JSON_INCLUDE_DIR)
  message(
    FATAL_ERROR
    "nlohmann/json.hpp is missing. Install it with: pip install nlohmann-json\n"
    "or pass -DLLMC_JSON_INCLUDE_DIR=..."
  )
endif()
if(NOT TARGET nlohmann_json::nlohmann_json)
  add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED GLOBAL)
  target_include_directories(nlohmann_json::nlohmann_json SYSTEM INTERFACE ${LLMC_JSON_INCLUDE_DIR})
endif()
