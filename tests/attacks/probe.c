// What the attacks need and busybox lacks, for the inside of a sandbox. Built statically by lib.sh.
//
//   probe reach ADDRESS…         TCP, UDP, ICMP, GRE and SCTP to each; prints `OPEN …` for whatever
//                                answered, and at the end how many tries there were
//   probe ports ADDRESS PORT…    TCP to these; prints `OPEN …` for each that answered
//   probe dns SERVER NAME        a DNS question by UDP; prints `OPEN` when an answer comes
//   probe serve FILE             listens where `reach` knocks; a line in FILE for each that came
//   probe frames                 raw Ethernet frames on every interface
//   probe calls                  system calls that would change the host or leave the sandbox
//   probe memory MIB | forks     takes memory; forks until it may not
//   probe as UID COMMAND…        what a root job can: another user runs the command
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <net/route.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int tried;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static socklen_t address(const char* text, int port, struct sockaddr_storage* out) {
  struct sockaddr_in* v4 = (struct sockaddr_in*)out;
  struct sockaddr_in6* v6 = (struct sockaddr_in6*)out;
  memset(out, 0, sizeof *out);
  if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons((uint16_t)port);
    return sizeof *v4;
  }
  if (inet_pton(AF_INET6, text, &v6->sin6_addr) != 1) exit(2);
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons((uint16_t)port);
  return sizeof *v6;
}

static size_t question(unsigned char* q, const char* name) {
  static const unsigned char kHead[12] = {0x12, 0x34, 1, 0, 0, 1};
  size_t at = 12;
  memcpy(q, kHead, 12);
  while (*name) {
    size_t n = strcspn(name, ".");
    q[at++] = (unsigned char)n;
    memcpy(q + at, name, n);
    at += n;
    name += n + (name[n] == '.');
  }
  memcpy(q + at, "\0\0\1\0\1", 5);
  return at + 5;
}

// Many tries at once: each has a socket that becomes readable (or, for TCP, writable without an
// error) when somebody answered.
struct Try {
  int fd, tcp;
  char what[96];
};
static struct Try tries[1024];
static int n_tries;

static void add(int fd, int tcp, const char* kind, const char* to, int port) {
  ++tried;
  if (fd < 0 || n_tries == 1024) return;
  struct Try* t = &tries[n_tries++];
  t->fd = fd;
  t->tcp = tcp;
  snprintf(t->what, sizeof t->what, "%s %s %d", kind, to, port);
}

static const int kTcp[] = {22, 53, 80, 443, 2375, 7777, 8080, 8443};

static int serve(const char* path) {
  struct pollfd p[10];
  int out = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
  for (int i = 0; i < 10; ++i) {
    struct sockaddr_storage a;
    socklen_t n = address("0.0.0.0", i < 8 ? kTcp[i] : i == 8 ? 53 : 7778, &a);
    int fd = socket(AF_INET, i < 8 ? SOCK_STREAM : SOCK_DGRAM, 0);
    if (bind(fd, (struct sockaddr*)&a, n) != 0 || (i < 8 && listen(fd, 64) != 0)) return 1;
    p[i] = (struct pollfd){fd, POLLIN, 0};
  }
  for (;;) {
    poll(p, 10, -1);
    for (int i = 0; i < 10; ++i) {
      char buffer[512];
      if (!(p[i].revents & POLLIN)) continue;
      if (i < 8) {
        close(accept(p[i].fd, 0, 0));
      } else if (recv(p[i].fd, buffer, sizeof buffer, 0) < 0) {
        continue;
      }
      dprintf(out, "%s\n", i < 8 ? "tcp" : "udp");
    }
  }
}

static void knock(const char* to, int port) {
  struct sockaddr_storage a;
  socklen_t n = address(to, port, &a);
  int fd = socket(a.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr*)&a, n) != 0 && errno != EINPROGRESS)
    close(fd), fd = -1;
  add(fd, 1, "tcp", to, port);
}

static void start(const char* to) {
  struct sockaddr_storage a;
  unsigned char q[300];
  char name[128];
  for (size_t i = 0; i < sizeof kTcp / sizeof *kTcp; ++i) knock(to, kTcp[i]);
  snprintf(name, sizeof name, "exfiltrated-data.attack.lab.test");
  for (int port = 53; port; port = port == 53 ? 7778 : 0) {
    socklen_t n = address(to, port, &a);
    int fd = socket(a.ss_family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    if (fd >= 0 && sendto(fd, q, question(q, name), 0, (struct sockaddr*)&a, n) < 0)
      close(fd), fd = -1;
    if (fd >= 0) sendto(fd, q, question(q, name), 0, (struct sockaddr*)&a, n);
    add(fd, 0, "udp", to, port);
  }
  socklen_t n = address(to, 0, &a);
  int v6 = a.ss_family == AF_INET6;
  unsigned char echo[16] = {v6 ? 128 : 8, 0, 0, 0, 0, 1, 0, 1};
  if (!v6) echo[2] = 0xf7, echo[3] = 0xfd;  // the sum of 0x0800 + 1 + 1, turned over
  int ping = socket(a.ss_family, SOCK_DGRAM | SOCK_NONBLOCK, v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
  if (ping >= 0 && sendto(ping, echo, 8, 0, (struct sockaddr*)&a, n) < 0) close(ping), ping = -1;
  add(ping, 0, "ping", to, 0);
  static const int kRaw[] = {IPPROTO_ICMP, IPPROTO_GRE, IPPROTO_SCTP, IPPROTO_RAW};
  for (size_t i = 0; i < 4; ++i) {
    int fd = socket(a.ss_family, SOCK_RAW | SOCK_NONBLOCK, v6 && !i ? IPPROTO_ICMPV6 : kRaw[i]);
    if (fd >= 0 && kRaw[i] != IPPROTO_RAW) sendto(fd, echo, 8, 0, (struct sockaddr*)&a, n);
    if (fd >= 0) printf("raw socket %d was given\n", kRaw[i]);
    add(fd, 0, "raw", to, kRaw[i]);
  }
}

// Until all have been answered or refused, at most so long.
static void finish(double seconds) {
  struct pollfd p[1024];
  double end = now() + seconds;
  int left = n_tries;
  for (int i = 0; i < n_tries; ++i)
    p[i] = (struct pollfd){tries[i].fd, tries[i].tcp ? POLLOUT : POLLIN, 0};
  while (left > 0 && now() < end) {
    if (poll(p, (nfds_t)n_tries, 50) <= 0) continue;
    for (int i = 0; i < n_tries; ++i) {
      if (!p[i].revents) continue;
      int error = 0;
      socklen_t n = sizeof error;
      getsockopt(p[i].fd, SOL_SOCKET, SO_ERROR, &error, &n);
      if (!error && !(p[i].revents & (POLLERR | POLLHUP))) printf("OPEN %s\n", tries[i].what);
      p[i].fd = -1;
      --left;
    }
  }
  printf("%d tries\n", tried);
}

static int frames(void) {
  struct if_nameindex* list = if_nameindex();
  for (struct if_nameindex* i = list; i && i->if_index; ++i) {
    if (strcmp(i->if_name, "lo") == 0) continue;
    int fd = socket(AF_PACKET, SOCK_RAW, htons(0x88b5));
    ++tried;
    if (fd < 0) {
      printf("no packet socket: %s\n", strerror(errno));
      continue;
    }
    unsigned char f[60] = {255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 0x88, 0xb5};
    struct sockaddr_ll to = {
        .sll_family = AF_PACKET, .sll_ifindex = (int)i->if_index, .sll_halen = 6};
    memset(to.sll_addr, 255, 6);
    printf("OPEN packet socket; sent %zd\n",
           sendto(fd, f, sizeof f, 0, (struct sockaddr*)&to, sizeof to));
  }
  printf("%d tries\n", tried);
  return 0;
}

static void refused(const char* what, long rc) {
  ++tried;
  if (rc >= 0) printf("OPEN %s\n", what);
}
static void in_child(const char* what, int (*f)(void)) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) _exit(f() >= 0 ? 0 : 1);
  int status = 1;
  if (pid > 0) waitpid(pid, &status, 0);
  refused(what, pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1);
}
static int new_net(void) { return unshare(CLONE_NEWNET); }
static int new_user(void) { return unshare(CLONE_NEWUSER); }
static int new_mount(void) { return unshare(CLONE_NEWNS); }
static int new_pid(void) { return unshare(CLONE_NEWPID); }
static int trace_init(void) { return (int)ptrace(PTRACE_ATTACH, 1, 0, 0); }
static int seize_init(void) { return (int)ptrace(PTRACE_SEIZE, 1, 0, 0); }
static int mount_proc(void) { return mount("proc", "/tmp", "proc", 0, 0); }
static int mount_tmp(void) { return mount("none", "/tmp", "tmpfs", 0, 0); }
static int mount_cgroup(void) { return mount("cgroup", "/tmp", "cgroup", 0, "memory"); }
static int bind_proc(void) { return mount("/proc", "/tmp", 0, MS_BIND, 0); }
static int remount_proc(void) { return mount(0, "/proc/sys", 0, MS_REMOUNT | MS_BIND, 0); }
static int remount_sys(void) { return mount(0, "/sys", 0, MS_REMOUNT | MS_BIND, 0); }
static int as_init_net(void) {
  int fd = open("/proc/1/ns/net", O_RDONLY);
  return fd < 0 ? -1 : setns(fd, CLONE_NEWNET);
}
static int new_user_by_clone(void) {
  return (int)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0) > 0 ? 0 : -1;
}
static int new_user_by_clone3(void) {
  uint64_t how[11] = {CLONE_NEWUSER | CLONE_NEWNET, 0, 0, 0, SIGCHLD};
  long pid = syscall(435, how, sizeof how);
  if (pid == 0) _exit(0);
  return pid > 0 ? 0 : -1;
}
static int read_init(void) {
  char byte;
  int fd = open("/proc/1/mem", O_RDONLY);
  return fd < 0 ? -1 : (int)pread(fd, &byte, 1, 0x400000);
}
// A machine's host may listen there, beside every network.
static int reach_vsock(void) {
  struct {
    uint16_t family, none;
    uint32_t port, cid;
    uint32_t rest;
  } host = {40, 0, 1024, 2, 0};
  int fd = socket(40, SOCK_STREAM, 0);
  return fd < 0 ? -1 : connect(fd, (struct sockaddr*)&host, sizeof host);
}
static int setuid_root(void) { return geteuid() == 0 ? -1 : setuid(0); }

static int calls(void) {
  struct rtentry route = {.rt_flags = RTF_UP};
  ((struct sockaddr_in*)&route.rt_dst)->sin_family = AF_INET;
  ((struct sockaddr_in*)&route.rt_genmask)->sin_family = AF_INET;
  route.rt_dev = (char*)"eth0";
  struct arpreq arp = {.arp_flags = ATF_COM | ATF_PERM};
  ((struct sockaddr_in*)&arp.arp_pa)->sin_family = AF_INET;
  inet_pton(AF_INET, "10.201.0.1", &((struct sockaddr_in*)&arp.arp_pa)->sin_addr);
  arp.arp_ha.sa_family = ARPHRD_ETHER;
  strcpy(arp.arp_dev, "eth0");
  struct ifreq up = {.ifr_flags = IFF_UP | IFF_PROMISC};
  strcpy(up.ifr_name, "eth0");
  int s = socket(AF_INET, SOCK_DGRAM, 0);
  refused("add a route", ioctl(s, SIOCADDRT, &route));
  refused("add a neighbour", ioctl(s, SIOCSARP, &arp));
  refused("promiscuous mode", ioctl(s, SIOCSIFFLAGS, &up));
  refused("netfilter socket", setsockopt(s, SOL_IP, 64, "x", 1));
  in_child("unshare net", new_net);
  in_child("unshare user", new_user);
  in_child("unshare mount", new_mount);
  in_child("unshare pid", new_pid);
  in_child("setns to init's net", as_init_net);
  in_child("ptrace attach to init", trace_init);
  in_child("ptrace seize init", seize_init);
  in_child("mount proc", mount_proc);
  in_child("mount tmpfs", mount_tmp);
  in_child("mount cgroup", mount_cgroup);
  in_child("bind /proc", bind_proc);
  in_child("remount /proc/sys", remount_proc);
  in_child("remount /sys", remount_sys);
  in_child("setuid 0", setuid_root);
  in_child("a user namespace by clone", new_user_by_clone);
  in_child("a user namespace by clone3", new_user_by_clone3);
  in_child("read init's memory", read_init);
  in_child("the machine's host by vsock", reach_vsock);
  refused("packet socket", socket(AF_PACKET, SOCK_RAW, htons(3)));
  refused("raw socket", socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
  refused("fsopen", syscall(430, "tmpfs", 0));
  refused("mount_setattr", syscall(442, AT_FDCWD, "/", 0, "", 0));
  refused("acct", syscall(SYS_acct, "/tmp/acct"));
  refused("quotactl", syscall(SYS_quotactl, 0x80000700, "/dev/vda", 0, &up));
  refused("kcmp with init", syscall(SYS_kcmp, getpid(), 1, 0, 0, 0));
  refused("pidfd_getfd of init", syscall(438, syscall(434, 1, 0), 0, 0));
  refused("umount /proc", umount2("/proc/sys", MNT_DETACH));
  refused("pivot_root", syscall(SYS_pivot_root, "/", "/tmp"));
  refused("bpf", syscall(SYS_bpf, 0, 0, 0));
  refused("init_module", syscall(SYS_init_module, "", 0, ""));
  refused("finit_module", syscall(SYS_finit_module, 0, "", 0));
  refused("kexec_load", syscall(SYS_kexec_load, 0, 0, 0, 0));
  refused("reboot", syscall(SYS_reboot, 0xfee1dead, 672274793, 0, 0));  // CAD off
  refused("swapon", swapon("/tmp/none", 0));
  refused("settimeofday", clock_settime(CLOCK_REALTIME, &(struct timespec){1, 0}));
  refused("keyctl", syscall(SYS_keyctl, 0, -3, 1));
  refused("add_key", syscall(SYS_add_key, "user", "x", "y", 1, -3));
  refused("perf_event_open", syscall(SYS_perf_event_open, 0, 0, -1, -1, 0));
  refused("userfaultfd", syscall(SYS_userfaultfd, 0));
  refused("open_by_handle_at", syscall(SYS_open_by_handle_at, AT_FDCWD, "", 0));
  refused("process_vm_readv of init", syscall(SYS_process_vm_readv, 1, &(struct {
                                                void* p;
                                                size_t n;
                                              }){&up, 8},
                                              1, &(struct {
                                                void* p;
                                                size_t n;
                                              }){&up, 8},
                                              1, 0));
  refused("sethostname", sethostname("x", 1));
  refused("chroot breakout by open_tree", syscall(428, AT_FDCWD, "/", 0x1));
  refused("iopl", syscall(SYS_iopl, 3));
  for (int major = 1; major <= 259; major += major == 1   ? 7
                                             : major == 8 ? 246
                                                          : 5) {  // mem, sd, virtblk, nvme
    char path[64];
    snprintf(path, sizeof path, "/tmp/dev%d", major);
    if (mknod(path, (major == 1 ? S_IFCHR : S_IFBLK) | 0600,
              makedev((unsigned)major, major == 1 ? 1 : 0)) == 0)
      refused(major == 1 ? "read /dev/mem" : "read a disk", open(path, O_RDWR));
    unlink(path);
  }
  printf("%d tries\n", tried);
  return 0;
}

static int forks(void) {
  int made = 0;
  for (; made < 100000; ++made) {
    pid_t pid = fork();
    if (pid < 0) break;
    if (pid == 0) {
      pause();
      _exit(0);
    }
  }
  printf("%d forks\n", made);
  signal(SIGTERM, SIG_IGN);
  kill(0, SIGTERM);
  return 0;
}

static int memory(long mib) {
  for (long i = 0; i < mib; ++i) {
    char* p = malloc(1 << 20);
    if (p) memset(p, 1, 1 << 20);
  }
  printf("OPEN took %ld MiB\n", mib);
  return 0;
}

int main(int argc, char** argv) {
  const char* verb = argc > 1 ? argv[1] : "";
  setvbuf(stdout, 0, _IOLBF, 0);
  if (!strcmp(verb, "reach")) {
    for (int i = 2; i < argc; ++i) start(argv[i]);
    finish(2);
    return 0;
  }
  if (!strcmp(verb, "ports") && argc > 3) {
    for (int i = 3; i < argc; ++i) knock(argv[2], atoi(argv[i]));
    finish(1);
    return 0;
  }
  if (!strcmp(verb, "dns") && argc == 4) {
    struct sockaddr_storage a;
    unsigned char q[300];
    socklen_t n = address(argv[2], 53, &a);
    int fd = socket(a.ss_family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    sendto(fd, q, question(q, argv[3]), 0, (struct sockaddr*)&a, n);
    add(fd, 0, "dns", argv[2], 53);
    finish(1);
    return 0;
  }
  if (!strcmp(verb, "serve") && argc == 3) return serve(argv[2]);
  if (!strcmp(verb, "frames")) return frames();
  if (!strcmp(verb, "calls")) return calls();
  if (!strcmp(verb, "forks")) return forks();
  if (!strcmp(verb, "as") && argc > 3) {
    uid_t uid = (uid_t)atoi(argv[2]);
    if (setgid(uid) != 0 || setuid(uid) != 0) return 1;
    execvp(argv[3], argv + 3);
    return 1;
  }
  if (!strcmp(verb, "memory") && argc == 3) return memory(atol(argv[2]));
  fprintf(stderr, "probe: unknown use\n");
  return 2;
}
