// RAII for C library handles: Handle<git_tree, git_tree_free> tree; git_tree_lookup(out(tree), …).
#pragma once

#include <memory>

namespace umpteenth {

template <auto free_fn>
struct HandleDeleter {
  template <typename T>
  void operator()(T* p) const {
    free_fn(p);
  }
};

template <typename T, auto free_fn>
using Handle = std::unique_ptr<T, HandleDeleter<free_fn>>;

// For T** out-parameters; the handle takes the pointer when the full expression ends.
template <typename H>
class Out {
 public:
  explicit Out(H& handle) : handle_(handle) {}
  Out(const Out&) = delete;
  Out& operator=(const Out&) = delete;
  ~Out() { handle_.reset(raw_); }
  operator typename H::pointer *() { return &raw_; }  // NOLINT(google-explicit-constructor)

 private:
  H& handle_;
  typename H::pointer raw_ = nullptr;
};

template <typename H>
Out<H> out(H& handle) {
  return Out<H>(handle);
}

}  // namespace umpteenth
