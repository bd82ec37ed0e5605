// How the measuring programs take and sum up times.
#pragma once
#include <algorithm>
#include <chrono>
#include <vector>

template <class Work>
double seconds(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double best(const std::vector<double>& times_s) {
  return *std::min_element(times_s.begin(), times_s.end());
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}
