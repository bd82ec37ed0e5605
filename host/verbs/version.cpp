// tycho version: the exact version and build of the program.
#include <fmt/ranges.h>
#include <luajit.h>

#include "host/build_facts.h"
#include "host/engine.h"
#include "host/verb.h"

namespace tycho {

const VerbSpec kVersionSpec = {
    "version",
    "Prints versions; --engine adds LibTorch's and the route: which kernels and instruction sets compute.",
    "  tycho version --engine --json",
    {{"engine", "Also open the engine and print its versions."}, kJsonOption}};

namespace {

std::string text_of(const Json& value) {
  if (value.is_array())
    return value.empty() ? "-" : fmt::format("{}", fmt::join(value.get<std::vector<std::string>>(), ", "));
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

int run_version(const Arguments& arguments) {
  no_more_words(arguments, 0);
  const BuildFacts& built = build_facts();
  Json versions = {{"tycho", built.version},
                   {"commit", built.commit},
                   {"built_for", *built.cuda_major == '\0'
                                     ? fmt::format("torch {}", built.torch)
                                     : fmt::format("torch {}, CUDA {}", built.torch, built.cuda_major)},
                   {"luajit", LUAJIT_VERSION},
                   {"compiler", "g++ " __VERSION__}};
  if (arguments.has("engine")) {
    versions.update(parse_json(open_engine(0).versions(), "engine versions"));
  }
  if (arguments.has("json")) {
    fmt::print("{}\n", versions.dump(2));
    return 0;
  }
  for (const auto& [name, value] : versions.items()) fmt::print("{:<24}  {}\n", name, text_of(value));
  return 0;
}

}  // namespace tycho
