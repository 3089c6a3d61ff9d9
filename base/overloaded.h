// One visitor of a std::variant from several lambdas.
#pragma once

namespace umpteenth {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;  // clang 16 does not deduce aggregates by itself

}  // namespace umpteenth
