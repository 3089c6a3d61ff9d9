#include "models/model_client.h"

#include <algorithm>
#include <cmath>

namespace umpteenth::models {

std::string Answer::text() const {
  std::string joined;
  for (const Part& part : parts)
    if (part.type == Part::Type::text) joined += part.text;
  return joined;
}

std::vector<ToolCall> Answer::tool_calls() const {
  std::vector<ToolCall> calls;
  for (const Part& part : parts)
    if (part.type == Part::Type::tool_call) calls.push_back(part.call);
  return calls;
}

// USD per million tokens is micro-USD per token. Rounded up, so that a budget is never overdrawn
// by fractions.
int64_t cost_micro_usd(const Usage& usage, const Price& price) {
  const double micro = static_cast<double>(usage.input_tokens) * price.input +
                       static_cast<double>(usage.output_tokens) * price.output +
                       static_cast<double>(usage.cache_read_tokens) * price.cache_read +
                       static_cast<double>(usage.cache_write_tokens) * price.cache_write;
  if (!(micro > 0)) return 0;
  constexpr double kMost = 1e15;  // a billion dollars: a lying usage figure cannot overflow
  return static_cast<int64_t>(std::ceil(std::min(micro, kMost) - 1e-9));
}

}  // namespace umpteenth::models
