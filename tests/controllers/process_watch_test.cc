#include "controllers/run/process_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "tests/controllers/support.h"

namespace umpteenth::controllers::run {
namespace {

// A process that does nothing until it is ended.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ == 0) {
      pause();
      _exit(0);
    }
    pidfd_ = std::make_shared<Fd>(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  }
  ~Child() { end(); }
  ProcessWatch::Process process() const { return {pidfd_, pidfd_->get()}; }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_;
  std::shared_ptr<Fd> pidfd_;
};

TEST(ProcessWatch, tells_each_end_once) {
  ProcessWatch watch;
  Child first, second;
  std::atomic<int> firsts{0}, seconds{0};
  watch.add("first", first.process(), [&] { ++firsts; });
  watch.add("second", second.process(), [&] { ++seconds; });
  second.end();
  EXPECT_TRUE(eventually([&] { return seconds == 1; }));
  EXPECT_EQ(firsts, 0);
  first.end();
  EXPECT_TRUE(eventually([&] { return firsts == 1; }));
  watch.stop();
  EXPECT_EQ(firsts, 1);
  EXPECT_EQ(seconds, 1);
}

TEST(ProcessWatch, tells_of_one_that_had_ended_before) {
  ProcessWatch watch;
  Child child;
  child.end();
  std::atomic<bool> told{false};
  watch.add("it", child.process(), [&] { told = true; });
  EXPECT_TRUE(eventually([&] { return told.load(); }));
}

TEST(ProcessWatch, says_nothing_of_what_was_removed_or_replaced) {
  ProcessWatch watch;
  Child removed, replaced, last;
  std::atomic<int> wrong{0};
  std::atomic<bool> right{false};
  watch.add("removed", removed.process(), [&] { ++wrong; });
  watch.add("key", replaced.process(), [&] { ++wrong; });
  watch.remove("removed");
  watch.add("key", last.process(), [&] { right = true; });
  removed.end();
  replaced.end();
  last.end();
  EXPECT_TRUE(eventually([&] { return right.load(); }));
  EXPECT_EQ(wrong, 0);
}

TEST(ProcessWatch, the_callback_may_change_the_watch) {
  ProcessWatch watch;
  Child first, second;
  std::atomic<bool> told{false};
  watch.add("first", first.process(), [&] {
    watch.remove("first");
    watch.add("second", second.process(), [&] { told = true; });
  });
  first.end();
  second.end();
  EXPECT_TRUE(eventually([&] { return told.load(); }));
}

TEST(ProcessWatch, a_stopped_watch_takes_nothing_on) {
  ProcessWatch watch;
  watch.stop();
  Child child;
  watch.add("it", child.process(), [] { FAIL(); });
  child.end();
  watch.stop();
}

}  // namespace
}  // namespace umpteenth::controllers::run
