// The functions behind tycho.drawing.
#include "bindings/run/drawing.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bindings/run/tensor_text.h"
#include "trainer/metrics/curve.h"
#include "trainer/metrics/format.h"
#include "trainer/metrics/plot.h"

namespace tycho {
namespace {

constexpr int kWidest = 100;

PlotOptions plot_options() {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return {.width = std::min((known ? size.ws_col : 80) - 2, kWidest), .unicode = locale_is_utf8()};
}

int push_drawing(lua_State* L, const std::string& text) {
  return lua_pushlstring(L, text.data(), text.size()), 1;
}

std::vector<double> listed_numbers(lua_State* L, int index) {
  std::vector<double> list(lua_objlen(L, index));
  for (size_t i = 0; i < list.size(); ++i) {
    lua_rawgeti(L, index, static_cast<int>(i) + 1);
    list[i] = lua_tonumber(L, -1);
    lua_pop(L, 1);
  }
  return list;
}

/// plot(x, list of y, their names)
int plot_lists(lua_State* L) {
  return protect(L, [&] {
    std::vector<NamedCurve> curves(lua_objlen(L, 2));
    for (size_t i = 0; i < curves.size(); ++i) {
      lua_rawgeti(L, 2, static_cast<int>(i) + 1);
      lua_rawgeti(L, 3, static_cast<int>(i) + 1);
      curves[i] = {string_argument(L, -1), {listed_numbers(L, 1), listed_numbers(L, lua_gettop(L) - 1)}};
      lua_pop(L, 2);
    }
    return push_drawing(L, overlay(curves, plot_options()));
  });
}

/// plot_metrics(path, name, ...). Each plot of a prompt reads only what its run has added since the last one.
int plot_metrics(lua_State* L) {
  static std::map<std::vector<std::string>, CurveFile> files;  // by path and names
  return protect(L, [&] {
    std::vector<std::string> words;
    for (int i = 1; i <= lua_gettop(L); ++i) words.push_back(string_argument(L, i));
    const std::vector<std::string> names(words.begin() + 1, words.end());
    std::vector<Curve> read = files.try_emplace(words, words[0], names).first->second.read();
    std::vector<NamedCurve> curves;
    for (size_t i = 0; i < names.size(); ++i) curves.push_back({names[i], std::move(read[i])});
    PlotOptions options = plot_options();
    options.x_label = "step";
    return push_drawing(L, overlay(curves, options));
  });
}

int histogram(lua_State* L) {
  return protect(L, [&] {
    std::vector<double> list = listed_numbers(L, 1);
    std::erase_if(list, [](double x) { return !std::isfinite(x); });
    const double bins = luaL_checknumber(L, 2);
    if (!(bins >= 1 && bins <= 1000)) throw ScriptError("E_ARGUMENT", "hist: bins expects 1 to 1000");
    if (list.empty()) throw ScriptError("E_ARGUMENT", "hist: there are no finite numbers");
    Histogram counted;
    counted.counts.resize(static_cast<size_t>(bins));
    const auto [low, high] = std::minmax_element(list.begin(), list.end());
    counted.low = *low, counted.high = *high;
    for (const double x : list) {
      const double share = counted.high > counted.low ? (x - counted.low) / (counted.high - counted.low) : 0;
      const auto at = static_cast<size_t>(share * static_cast<double>(counted.counts.size()));
      ++counted.counts[std::min(at, counted.counts.size() - 1)];
    }
    return push_drawing(L, histogram_text(counted, locale_is_utf8()));
  });
}

int load_drawing(lua_State* L) {
  constexpr luaL_Reg kFunctions[] = {
      {"plot", plot_lists}, {"plot_metrics", plot_metrics}, {"histogram", histogram}};
  lua_newtable(L);
  for (const luaL_Reg& function : kFunctions) {
    lua_pushcfunction(L, function.func);
    lua_setfield(L, -2, function.name);
  }
  return 1;
}

}  // namespace

void open_drawing(lua_State* L) {
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "preload");
  lua_pushcfunction(L, load_drawing);
  lua_setfield(L, -2, "tycho.drawing");
  lua_pop(L, 2);
}

}  // namespace tycho
