#include "src/machine/lost_time.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace sluice {
namespace {

// "12345 678 9": ran, was ready, how often; ns. False: the file says nothing (any more).
bool ReadReady(int file, uint64_t* ready_ns) {
  char text[96];
  const ssize_t n = pread(file, text, sizeof(text) - 1, 0);
  if (n <= 0) return false;
  text[n] = 0;
  return std::sscanf(text, "%*u %" SCNu64, ready_ns) == 1;
}

}  // namespace

LostCauses SplitLost(double lost_s, const LostEvidence& e) {
  LostCauses causes;
  const bool disk = e.major_faults > 0 || e.disk_reads > 0;
  causes.throttled_s = std::min(lost_s, e.throttling.seconds);
  const double rest = lost_s - causes.throttled_s;
  const double ready =
      e.ready_s < 0 ? 0 : std::min(rest, std::max(0.0, e.ready_s - causes.throttled_s));
  causes.page_faults_s = disk ? rest - ready : 0;
  causes.preempted_s = rest - causes.page_faults_s;
  return causes;
}

LostTime::LostTime(const std::string& root) : root_(root), throttle_(root) { (void)Next({}); }

LostTime::~LostTime() {
  for (const auto& [tid, thread] : threads_) {
    if (thread.file >= 0) close(thread.file);
  }
}

double LostTime::ReadySeconds(std::span<const int> tids) {
  uint64_t grown = 0;
  for (const int tid : tids) {
    Thread& thread = threads_[tid];
    uint64_t now = 0;
    if (thread.file < 0 || !ReadReady(thread.file, &now)) {
      // New, or another thread under the number of one that has gone.
      if (thread.file >= 0) close(thread.file);
      const std::string path = root_ + "/proc/self/task/" + std::to_string(tid) + "/schedstat";
      thread.file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
      if (thread.file < 0 || !ReadReady(thread.file, &now)) return -1;
      thread.ready_ns = now;
    }
    grown += now - std::min(now, thread.ready_ns);
    thread.ready_ns = now;
  }
  return 1e-9 * static_cast<double>(grown);
}

LostEvidence LostTime::Next(std::span<const int> threads) {
  LostEvidence e;
  e.ready_s = ReadySeconds(threads);
  e.throttling = throttle_.Next();
  rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return e;
  const auto faults = static_cast<uint64_t>(usage.ru_majflt);
  const auto reads = static_cast<uint64_t>(usage.ru_inblock);
  e.major_faults = faults - major_faults_;
  e.disk_reads = reads - disk_reads_;
  major_faults_ = faults;
  disk_reads_ = reads;
  return e;
}

}  // namespace sluice
