/*
 * Answers the ioctls of the amdgpu kernel driver that libdrm_amdgpu needs to describe a card.
 *
 * Numbers come from FAKE_ROOT/fake/<node>, lines of "name number" (see `value` below); structure
 * layouts from the kernel's uapi/drm/amdgpu_drm.h and drm.h, written here as offsets.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 0x00   /* DRM_IOCTL_VERSION */
#define GET_CLIENT 0x05
#define AMDGPU_INFO 0x45 /* DRM_COMMAND_BASE + DRM_AMDGPU_INFO */

enum query {
    ACCEL_WORKING = 0x00, VRAM_USAGE = 0x10, GTT_USAGE = 0x11, VRAM_GTT = 0x14,
    READ_MMR_REG = 0x15, DEV_INFO = 0x16, SENSOR = 0x1d,
};

struct version {
    int major, minor, patch;
    size_t name_length; char *name;
    size_t date_length; char *date;
    size_t text_length; char *text;
};

struct info {
    uint64_t answer;
    uint32_t size, query;
    uint32_t sensor, more[3];
};

/* Returns the number that the card's file gives for `name`, else `otherwise`. */
static uint64_t value(const char *node, const char *name, uint64_t otherwise) {
    char path[4096], key[64];
    unsigned long long number;
    snprintf(path, sizeof path, "%s/fake/%s", getenv("FAKE_ROOT"), node);
    FILE *file = fopen(path, "r");
    if (!file)
        return otherwise;
    while (fscanf(file, "%63s %llu", key, &number) == 2)
        if (!strcmp(key, name)) {
            otherwise = number;
            break;
        }
    fclose(file);
    return otherwise;
}

static void put_text(char *room, size_t *length, const char *text) {
    size_t size = strlen(text);
    if (room)
        memcpy(room, text, *length < size ? *length : size);
    *length = size;
}

static int version(const char *node, struct version *said) {
    said->major = (int)value(node, "major", 3);
    said->minor = 60;
    put_text(said->name, &said->name_length, value(node, "other", 0) ? "i915" : "amdgpu");
    put_text(said->date, &said->date_length, "20261121");
    put_text(said->text, &said->text_length, "fake");
    return 0;
}

static void dev_info(const char *node, unsigned char *room) {
    uint32_t device = (uint32_t)value(node, "device", 0x744c);
    uint32_t revision = (uint32_t)value(node, "revision", 0xc8);
    uint32_t family = 145; /* AMDGPU_FAMILY_GC_11_0_0 */
    uint64_t engine = value(node, "sclk_khz", 2482000), memory = value(node, "mclk_khz", 1249000);
    memcpy(room + 0, &device, 4);
    memcpy(room + 12, &revision, 4);
    memcpy(room + 16, &family, 4);
    memcpy(room + 32, &engine, 8);
    memcpy(room + 40, &memory, 8);
}

static int info(const char *node, struct info *asked) {
    unsigned char room[1024] = {0};
    uint64_t *number = (uint64_t *)room;
    switch (asked->query) {
    case ACCEL_WORKING: number[0] = value(node, "accel", 1); break;
    case VRAM_USAGE: number[0] = value(node, "vram_used", 0); break;
    case GTT_USAGE: number[0] = value(node, "gtt_used", 0); break;
    case VRAM_GTT:
        number[0] = value(node, "vram", 0);
        number[1] = value(node, "visible", number[0]);
        number[2] = value(node, "gtt", 0);
        break;
    case READ_MMR_REG: break;
    case DEV_INFO: dev_info(node, room); break;
    default: return EINVAL;
    }
    if (asked->query == value(node, "fail_query", ~0ull))
        return (int)value(node, "errno", EIO);
    memcpy((void *)(uintptr_t)asked->answer, room,
           asked->size < sizeof room ? asked->size : sizeof room);
    return 0;
}

int fake_ioctl(const char *node, unsigned long request, void *argument) {
    if ((request >> 8 & 0xff) != 'd')
        return ENOTTY;
    switch (request & 0xff) {
    case VERSION: return version(node, argument);
    case AMDGPU_INFO: return info(node, argument);
    case GET_CLIENT: return EINVAL;
    default: return ENOTTY;
    }
}
