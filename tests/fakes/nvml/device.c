/* Handles, identity, memory and figures of a device. */
#include "calls.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct memory {
    unsigned long long total, free, used;
};
struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
API nvmlDeviceGetCount_v2(unsigned *out)
{
    BEGIN(NULL);
    *out = (unsigned)fake.count;
    return SUCCESS;
}

API nvmlDeviceGetHandleByIndex_v2(unsigned index, struct gpu **out)
{
    BEGIN(NULL);
    if (index >= (unsigned)fake.count)
        return INVALID_ARGUMENT;
    *out = &fake.gpus[index];
    return obey(&(*out)->rules, "handle");
}

API nvmlDeviceGetHandleByUUID(const char *uuid, struct gpu **out)
{
    BEGIN(NULL);
    for (int i = 0; i < fake.count; i++)
        if (!strcmp(fake.gpus[i].uuid, uuid))
            return *out = &fake.gpus[i], obey(&(*out)->rules, "handle");
    return NOT_FOUND;
}

API nvmlDeviceGetHandleByPciBusId_v2(const char *busid, struct gpu **out)
{
    BEGIN(NULL);
    for (int i = 0; i < fake.count; i++)
        if (!strcasecmp(fake.gpus[i].busid, busid))
            return *out = &fake.gpus[i], obey(&(*out)->rules, "handle");
    return NOT_FOUND;
}

API nvmlDeviceGetIndex(struct gpu *g, unsigned *out)
{
    BEGIN(g);
    *out = (unsigned)(g - fake.gpus);
    return g->is_mig ? NOT_SUPPORTED : SUCCESS;
}

API nvmlDeviceGetMinorNumber(struct gpu *g, unsigned *out)
{
    BEGIN(g);
    *out = (unsigned)g->minor;
    return g->is_mig ? NOT_SUPPORTED : SUCCESS;
}

API nvmlDeviceGetName(struct gpu *g, char *out, unsigned size)
{
    BEGIN(g);
    return text(out, size, g->name);
}

API nvmlDeviceGetUUID(struct gpu *g, char *out, unsigned size)
{
    BEGIN(g);
    return text(out, size, g->uuid);
}

API nvmlDeviceGetPciInfo_v3(struct gpu *g, struct pci_info *out)
{
    BEGIN(g);
    if (!g->has_pci)
        return NOT_SUPPORTED;
    fill_pci(out, g->domain, g->bus, g->device);
    out->pci_id = g->pci_id;
    out->subsystem = g->subsystem;
    snprintf(out->busid, sizeof out->busid, "%s", g->busid);
    return SUCCESS;
}

API nvmlDeviceGetMemoryInfo(struct gpu *g, struct memory *out)
{
    BEGIN(g);
    memset(out, 0, sizeof *out);
    if (!g->has_memory)
        return NOT_SUPPORTED;
    out->total = g->total;
    out->free = g->free;
    out->used = g->busy + g->reserved; /* version 1 counts the reserved bytes as used */
    return SUCCESS;
}

API nvmlDeviceGetMemoryInfo_v2(struct gpu *g, struct memory_v2 *out)
{
    BEGIN(g);
    if (g->memory_v1_only)
        return 13; /* the function is not in drivers before 510 */
    if (out->version != (sizeof *out | 2u << 24))
        return 25;
    if (!g->has_memory)
        return NOT_SUPPORTED;
    out->total = g->total;
    out->reserved = g->reserved;
    out->free = g->free;
    out->used = g->busy;
    return SUCCESS;
}

API nvmlDeviceGetCudaComputeCapability(struct gpu *g, int *major, int *minor)
{
    BEGIN(g);
    *major = g->cc_major;
    *minor = g->cc_minor;
    return g->cc_major ? SUCCESS : NOT_SUPPORTED;
}

API nvmlDeviceGetNumGpuCores(struct gpu *g, unsigned *out)
{
    BEGIN(g);
    return number(out, g->cores);
}

API nvmlDeviceGetMaxClockInfo(struct gpu *g, unsigned type, unsigned *out)
{
    BEGIN(g);
    return type < 4 ? number(out, g->max_clock[type]) : INVALID_ARGUMENT;
}

API nvmlDeviceGetMemoryBusWidth(struct gpu *g, unsigned *out)
{
    BEGIN(g);
    return number(out, g->bus_width);
}

API nvmlDeviceGetComputeMode(struct gpu *g, unsigned *out)
{
    BEGIN(g);
    *out = g->compute_mode;
    return SUCCESS;
}

API nvmlDeviceGetVirtualizationMode(struct gpu *g, unsigned long long *out)
{
    BEGIN(g);
    *out = (unsigned long long)g->virtualization;
    return SUCCESS;
}
