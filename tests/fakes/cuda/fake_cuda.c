/* A libcuda.so.1 and a libamdhip64.so for tests: it shows what FAKE_GPUS lists.
 *
 * FAKE_GPUS="<32 hex digits>/<pci>;…" in the order of the driver. FAKE_GPU_MODE: "hang", "crash",
 * or a number that the first call returns. Only calls that probe-core makes are here; their
 * signatures are facts of the CUDA driver API and the HIP runtime API.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 64, NO_DEVICE = 100, INVALID = 1 };

static char uuids[MOST][33], buses[MOST][64];
static int count;

static int start(void) {
  const char *mode = getenv("FAKE_GPU_MODE"), *list = getenv("FAKE_GPUS");
  if (mode && !strcmp(mode, "hang")) for (;;) pause();
  if (mode && !strcmp(mode, "crash")) abort();
  if (mode && *mode) return atoi(mode);
  count = 0;
  while (list && *list && count < MOST) {
    if (sscanf(list, "%32[0-9a-f]/%63[^;]", uuids[count], buses[count]) != 2) break;
    count++;
    list = strchr(list, ';');
    if (list) list++;
  }
  return count ? 0 : NO_DEVICE;
}

static int bus(char *text, int size, int device) {
  if (device < 0 || device >= count) return INVALID;
  snprintf(text, (size_t)size, "%s", buses[device]);
  return 0;
}

int cuInit(unsigned flags) { (void)flags; return start(); }
int cuDeviceGetCount(int *found) { *found = count; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetPCIBusId(char *text, int size, int device) { return bus(text, size, device); }

int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
  if (device < 0 || device >= count) return INVALID;
  for (int at = 0; at < 16; at++) {
    unsigned byte;
    if (sscanf(uuids[device] + 2 * at, "%2x", &byte) != 1) return INVALID;
    uuid[at] = (unsigned char)byte;
  }
  return 0;
}

int hipInit(unsigned flags) { (void)flags; return start(); }
int hipGetDeviceCount(int *found) { *found = count; return 0; }
int hipDeviceGetPCIBusId(char *text, int size, int device) { return bus(text, size, device); }
