#include "controllers/run/spend.h"

#include <array>
#include <cstdio>
#include <cstdlib>

namespace umpteenth::controllers::run {
namespace {
constexpr char kSpace[] = "spend";
constexpr size_t kDateLength = 10;
}  // namespace

std::string Spend::key(const std::string& ns) const {
  return ns + "/" + format_time(clock_.now()).substr(0, kDateLength);
}

int64_t Spend::today(const std::string& ns) const {
  auto row = store_.row_get(kSpace, key(ns));
  return row ? std::strtoll(row->c_str(), nullptr, 10) : 0;
}

void Spend::add(const std::string& ns, int64_t micro_usd) {
  if (micro_usd <= 0) return;
  std::lock_guard lock(mutex_);
  std::string today_key = key(ns);
  store_.row_put(kSpace, today_key, std::to_string(today(ns) + micro_usd));
}

std::string dollars(double usd) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "$%.2f", usd);
  return text.data();
}

std::string spend_problem(int64_t spent_micro_usd, double limit_usd) {
  if (limit_usd <= 0 || static_cast<double>(spent_micro_usd) < limit_usd * 1e6) return "";
  return "The workspace reached its daily spend limit of " + dollars(limit_usd);
}

}  // namespace umpteenth::controllers::run
