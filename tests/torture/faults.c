// Lets calls that write, name or sync files fail: the call number NESTAR_FAULT_AT of the process, and all behind it if
// NESTAR_FAULT_LASTS is 1, with the error NESTAR_FAULT_ERROR. NESTAR_FAULT_COUNT names a file that takes the number of calls
// at the end. Writes to the standard streams are left alone.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long calls;

static long number(const char *name) {
  const char *text = getenv(name);
  return text ? atol(text) : 0;
}

static int fails(void) {
  static long at = -1, lasts, error;
  if (at < 0) {
    lasts = number("NESTAR_FAULT_LASTS");
    error = number("NESTAR_FAULT_ERROR");
    at = number("NESTAR_FAULT_AT");
  }
  long call = atomic_fetch_add(&calls, 1) + 1;
  if (at > 0 && (call == at || (lasts && call > at))) {
    errno = (int)error;
    return 1;
  }
  return 0;
}

__attribute__((destructor)) static void tell(void) {
  const char *path = getenv("NESTAR_FAULT_COUNT");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (file) {
    fprintf(file, "%ld\n", atomic_load(&calls));
    fclose(file);
  }
}

#define REAL(type, name, ...) \
  static type (*real)(__VA_ARGS__); \
  if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name);

ssize_t write(int file, const void *bytes, size_t count) {
  REAL(ssize_t, "write", int, const void *, size_t)
  return file > 2 && fails() ? -1 : real(file, bytes, count);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) {
  REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t)
  return fails() ? -1 : real(file, bytes, count, at);
}

int fsync(int file) {
  REAL(int, "fsync", int)
  return fails() ? -1 : real(file);
}

int fdatasync(int file) {
  REAL(int, "fdatasync", int)
  return fails() ? -1 : real(file);
}

int rename(const char *from, const char *to) {
  REAL(int, "rename", const char *, const char *)
  return fails() ? -1 : real(from, to);
}

int mkdir(const char *path, mode_t mode) {
  REAL(int, "mkdir", const char *, mode_t)
  return fails() ? -1 : real(path, mode);
}

int unlink(const char *path) {
  REAL(int, "unlink", const char *)
  return fails() ? -1 : real(path);
}

int ftruncate64(int file, off64_t length) {
  REAL(int, "ftruncate64", int, off64_t)
  return fails() ? -1 : real(file, length);
}

int open64(const char *path, int flags, ...) {
  REAL(int, "open64", const char *, int, ...)
  mode_t mode = 0;
  if (flags & (O_CREAT | O_TMPFILE)) {
    va_list list;
    va_start(list, flags);
    mode = va_arg(list, mode_t);
    va_end(list);
  }
  // files of the system, such as limits of memory, are left alone
  return (flags & (O_WRONLY | O_RDWR)) && fails() ? -1 : real(path, flags, mode);
}
