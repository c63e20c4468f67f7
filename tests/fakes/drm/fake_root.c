/*
 * Shows a process another /sys, /dev/dri and /dev/nvidia*, so that real client libraries run without hardware.
 *
 * Preloaded (LD_PRELOAD) with FAKE_ROOT set to a folder: every path below /sys,
 * /proc/driver/nvidia, /dev/dri and
 * /usr/share/libdrm, and /dev/nvidia*, is looked up below that folder instead. An *empty* file below
 * FAKE_ROOT/dev/dri stands for a DRM device: stat says character device 226:N, N from its name
 * (renderD128 is 226:128). A file with content stays what it is, a plain file.
 * ioctl() on such a node goes to fake_ioctl(), which a driver's fake defines.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DRM_MAJOR 226

int fake_ioctl(const char *node, unsigned long request, void *argument);

/* Looked up once at each place: what this library costs must not count in a benchmark. */
#define REAL(name) ({ static __typeof__(&name) real_; \
    if (!real_) real_ = (__typeof__(&name))dlsym(RTLD_NEXT, #name); real_; })

static const char *root(void) {
    const char *folder = getenv("FAKE_ROOT");
    return folder ? folder : "";
}

static int below(const char *path, const char *folder) {
    size_t length = strlen(folder);
    return !strncmp(path, folder, length) && (path[length] == '/' || !path[length]);
}

/* Returns where `path` lies: itself, or in `room` the place below FAKE_ROOT. */
static const char *shift(const char *path, char *room) {
    if (!path || !*root() || !(below(path, "/sys") || below(path, "/dev/dri") ||
                               !strncmp(path, "/dev/nvidia", strlen("/dev/nvidia")) ||
                               below(path, "/proc/driver/nvidia") || below(path, "/dev/kfd") ||
                               below(path, "/usr/share/libdrm")))
        return path;
    snprintf(room, PATH_MAX, "%s%s", root(), path);
    return room;
}

/* Returns the name of the fake DRM node at host `path` ("renderD128"), or NULL. */
static const char *drm_node(const char *path) {
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s/dev/dri/", root());
    return *root() && !strncmp(path, folder, strlen(folder)) ? path + strlen(folder) : NULL;
}

static unsigned minor_of(const char *node) {
    return (unsigned)atoi(node + strcspn(node, "0123456789"));
}

/* struct stat and struct stat64 are the same on 64-bit Linux. */
static int dress(int result, const char *path, struct stat *buffer) {
    const char *node = result ? NULL : drm_node(path);
    if (node && S_ISREG(buffer->st_mode) && !buffer->st_size) {
        buffer->st_mode = S_IFCHR | (buffer->st_mode & 07777);
        buffer->st_rdev = makedev(DRM_MAJOR, minor_of(node));
    }
    return result;
}

static const char *path_of(int fd, char *room) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = REAL(readlink)(link, room, PATH_MAX - 1);
    room[length < 0 ? 0 : length] = 0;
    return room;
}

#define SHIFTED char room[PATH_MAX]; const char *there = shift(path, room)
#define MODE mode_t mode = 0; \
    if (flags & (O_CREAT | __O_TMPFILE)) { va_list more; va_start(more, flags); \
        mode = va_arg(more, mode_t); va_end(more); }

int open(const char *path, int flags, ...) { MODE; SHIFTED; return REAL(open)(there, flags, mode); }
int open64(const char *path, int flags, ...) { MODE; SHIFTED; return REAL(open64)(there, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE; SHIFTED; return REAL(openat)(at, there, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE; SHIFTED; return REAL(openat64)(at, there, flags, mode); }
FILE *fopen(const char *path, const char *mode) { SHIFTED; return REAL(fopen)(there, mode); }
FILE *fopen64(const char *path, const char *mode) { SHIFTED; return REAL(fopen64)(there, mode); }
DIR *opendir(const char *path) { SHIFTED; return REAL(opendir)(there); }
int access(const char *path, int mode) { SHIFTED; return REAL(access)(there, mode); }
int faccessat(int at, const char *path, int mode, int flags) { SHIFTED; return REAL(faccessat)(at, there, mode, flags); }
ssize_t readlink(const char *path, char *buffer, size_t size) { SHIFTED; return REAL(readlink)(there, buffer, size); }

int stat(const char *path, struct stat *b) { SHIFTED; return dress(REAL(stat)(there, b), there, b); }
int lstat(const char *path, struct stat *b) { SHIFTED; return dress(REAL(lstat)(there, b), there, b); }
int fstat(int fd, struct stat *b) {
    char room[PATH_MAX];
    int result = REAL(fstat)(fd, b);
    /* Only an empty file may stand for a device: the path of others is not asked for. */
    return result || b->st_size ? result : dress(result, path_of(fd, room), b);
}
int fstatat(int at, const char *path, struct stat *b, int flags) { SHIFTED; return dress(REAL(fstatat)(at, there, b, flags), there, b); }
int stat64(const char *path, struct stat64 *b) { return stat(path, (struct stat *)b); }
int lstat64(const char *path, struct stat64 *b) { return lstat(path, (struct stat *)b); }
int fstat64(int fd, struct stat64 *b) { return fstat(fd, (struct stat *)b); }
int fstatat64(int at, const char *path, struct stat64 *b, int flags) { return fstatat(at, path, (struct stat *)b, flags); }
/* What programs built against a C library before 2.33 call. */
int __xstat(int version, const char *path, struct stat *b) { (void)version; return stat(path, b); }
int __xstat64(int version, const char *path, struct stat64 *b) { (void)version; return stat64(path, b); }
int __lxstat64(int version, const char *path, struct stat64 *b) { (void)version; return lstat64(path, b); }
int __fxstat64(int version, int fd, struct stat64 *b) { (void)version; return fstat64(fd, b); }

char *realpath(const char *path, char *resolved) {
    SHIFTED;
    char *found = REAL(realpath)(there, resolved);
    char host[PATH_MAX];
    if (found && *root() && REAL(realpath)(root(), host) && below(found, host))
        memmove(found, found + strlen(host), strlen(found) - strlen(host) + 1);
    return found;
}

int ioctl(int fd, unsigned long request, ...) {
    va_list more;
    va_start(more, request);
    void *argument = va_arg(more, void *);
    va_end(more);
    char room[PATH_MAX];
    const char *node = drm_node(path_of(fd, room));
    struct stat seen;
    if (!node || fstat(fd, &seen) || !S_ISCHR(seen.st_mode))
        return REAL(ioctl)(fd, request, argument);
    int error = fake_ioctl(node, request, argument);
    errno = error;
    return error ? -1 : 0;
}
