/* What a device is connected to, and what it is divided into: PCIe, NVLink, MIG. */
#include "calls.h"

#include <string.h>
#include <time.h>

struct attributes {
    unsigned sms, copy, decoder, encoder, jpeg, ofa, gi_slices, ci_slices;
    unsigned long long mib;
};
struct fabric_info {
    unsigned char cluster[16];
    unsigned status, clique;
    unsigned char state;
};
struct field_value {
    unsigned field, scope;
    long long timestamp, latency;
    unsigned type, result;
    union {
        double d;
        unsigned u;
        unsigned long long ull;
    } value;
};
enum {
    FIELD_ECC_CURRENT = 1,
    FIELD_ECC_PENDING = 2,
    FIELD_ECC_SINGLE = 3,
    FIELD_ECC_DOUBLE = 4,
    FIELD_NVLINK_FLIT = 38, /* data, replay and recovery each seven on */
    FIELD_VIOLATION = 74, /* power, heat */
    FIELD_ENERGY = 83,
    FIELD_NVLINK_SPEED = 90,
    FIELD_NVLINK_COUNT = 91,
    FIELD_REPLAYS = 94,
    FIELD_NVLINK_SENT = 138,
    FIELD_NVLINK_RECEIVED = 139,
    FIELD_REMAPPED = 142, /* correctable, uncorrectable, pending, failed */
    FIELD_NVLINK_STATE = 165,
    FIELD_POWER_MIN = 187,
    FIELD_POWER_MAX = 188,
    FIELD_POWER_DEFAULT = 189,
    FIELD_POWER_ENFORCED = 190,
    FIELD_PCIE_SENT = 197,
    FIELD_PCIE_RECEIVED = 198,
    TYPE_UNSIGNED = 1,
    TYPE_UNSIGNED_LONG_LONG = 3,
};

API nvmlDeviceGetCurrPcieLinkGeneration(struct gpu *g, unsigned *out)
{
    BEGIN(g);
    return number(out, g->pcie_gen);
}

API nvmlDeviceGetCurrPcieLinkWidth(struct gpu *g, unsigned *out)
{
    BEGIN(g);
    return number(out, g->pcie_width);
}

API nvmlDeviceGetMaxPcieLinkGeneration(struct gpu *g, unsigned *out)
{
    BEGIN(g);
    return number(out, g->pcie_max_gen);
}

API nvmlDeviceGetMaxPcieLinkWidth(struct gpu *g, unsigned *out)
{
    BEGIN(g);
    return number(out, g->pcie_max_width);
}

static struct counter *counter_of(struct gpu *g, unsigned field)
{
    if (field == FIELD_PCIE_SENT || field == FIELD_PCIE_RECEIVED)
        return g->has_traffic ? &g->traffic[field - FIELD_PCIE_SENT] : NULL;
    if (field == FIELD_NVLINK_SENT || field == FIELD_NVLINK_RECEIVED)
        return g->has_nvlink_traffic ? &g->nvlink_traffic[field - FIELD_NVLINK_SENT] : NULL;
    return NULL;
}

/* What has been counted for a field; NULL where the device does not count it. */
static unsigned long long *tally_of(struct gpu *g, unsigned field)
{
    switch (field) {
    case FIELD_VIOLATION:
    case FIELD_VIOLATION + 1:
        return g->has_violation ? &g->violation[field - FIELD_VIOLATION] : NULL;
    case FIELD_ENERGY:
        return g->has_tally ? &g->tally[0] : NULL;
    case FIELD_ECC_SINGLE:
    case FIELD_ECC_DOUBLE:
        return g->has_tally ? &g->tally[field - FIELD_ECC_SINGLE + 1] : NULL;
    case FIELD_REPLAYS:
        return g->has_tally ? &g->tally[3] : NULL;
    case FIELD_NVLINK_FLIT:
    case FIELD_NVLINK_FLIT + 7:
    case FIELD_NVLINK_FLIT + 14:
    case FIELD_NVLINK_FLIT + 21:
        return g->has_nvlink_errors ? &g->nvlink_errors[(field - FIELD_NVLINK_FLIT) / 7] : NULL;
    }
    return NULL;
}

/* Answer one field as its function does, with what the profile says of that function. */
static int read_field(struct gpu *g, unsigned field, unsigned scope, unsigned *out)
{
    const struct rules *rules = &g->rules;
    int result;
    switch (field) {
    case FIELD_NVLINK_SPEED:
    case FIELD_NVLINK_COUNT:
        *out = field == FIELD_NVLINK_SPEED ? g->nvlink_mbps : g->nvlink_count;
        return g->nvlink_count ? SUCCESS : NOT_SUPPORTED;
    case FIELD_NVLINK_STATE:
        result = obey_code(rules, "nvmlDeviceGetNvLinkState");
        if (result || scope >= g->nvlink_count)
            return result ? result : INVALID_ARGUMENT;
        *out = (unsigned)g->link[scope].active;
        return SUCCESS;
    case FIELD_ECC_CURRENT:
    case FIELD_ECC_PENDING:
        result = obey_code(rules, "nvmlDeviceGetEccMode");
        *out = field == FIELD_ECC_CURRENT ? g->ecc_now : g->ecc_next;
        return result ? result : g->has_ecc ? SUCCESS : NOT_SUPPORTED;
    case FIELD_REMAPPED:
    case FIELD_REMAPPED + 1:
    case FIELD_REMAPPED + 2:
    case FIELD_REMAPPED + 3:
        result = obey_code(rules, "nvmlDeviceGetRemappedRows");
        *out = g->remapped[field - FIELD_REMAPPED];
        return result ? result : g->has_remap ? SUCCESS : NOT_SUPPORTED;
    case FIELD_POWER_MIN:
    case FIELD_POWER_MAX:
        result = obey_code(rules, "nvmlDeviceGetPowerManagementLimitConstraints");
        return result ? result : number(out, field == FIELD_POWER_MIN ? g->power_min : g->power_max);
    case FIELD_POWER_DEFAULT:
        result = obey_code(rules, "nvmlDeviceGetPowerManagementDefaultLimit");
        return result ? result : number(out, g->power_default);
    case FIELD_POWER_ENFORCED:
        result = obey_code(rules, "nvmlDeviceGetEnforcedPowerLimit");
        return result ? result : number(out, g->power_enforced);
    }
    return NOT_SUPPORTED;
}

API nvmlDeviceGetFieldValues(struct gpu *g, int count, struct field_value *values)
{
    struct timespec now;
    BEGIN(g);
    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; i < count; i++) {
        struct field_value *v = &values[i];
        struct counter *counter = counter_of(g, v->field);
        unsigned long long *tally = tally_of(g, v->field);
        v->timestamp = now.tv_sec * 1000000LL + now.tv_nsec / 1000;
        if (counter || tally) {
            v->type = TYPE_UNSIGNED_LONG_LONG;
            v->value.ull = tally ? *tally : count_up(counter, v->timestamp);
            v->result = SUCCESS;
            continue;
        }
        v->type = TYPE_UNSIGNED;
        v->result = read_field(g, v->field, v->scope, &v->value.u);
    }
    return SUCCESS;
}

static int find_link(struct gpu *g, unsigned link)
{
    if (!g->nvlink_count)
        return NOT_SUPPORTED;
    return link < g->nvlink_count ? SUCCESS : INVALID_ARGUMENT;
}

API nvmlDeviceGetNvLinkState(struct gpu *g, unsigned link, unsigned *out)
{
    BEGIN(g);
    if (!find_link(g, link))
        *out = (unsigned)g->link[link].active;
    return find_link(g, link);
}

API nvmlDeviceGetNvLinkRemotePciInfo_v2(struct gpu *g, unsigned link, struct pci_info *out)
{
    struct nvlink *l;
    BEGIN(g);
    if (find_link(g, link))
        return find_link(g, link);
    l = &g->link[link];
    fill_pci(out, l->domain, l->bus, l->device);
    return l->present ? SUCCESS : NOT_SUPPORTED;
}

API nvmlDeviceGetNvLinkRemoteDeviceType(struct gpu *g, unsigned link, unsigned *out)
{
    BEGIN(g);
    if (find_link(g, link))
        return find_link(g, link);
    *out = (unsigned)g->link[link].to;
    return g->link[link].present ? SUCCESS : NOT_SUPPORTED;
}

API nvmlDeviceGetGpuFabricInfo(struct gpu *g, struct fabric_info *out)
{
    BEGIN(g);
    memset(out, 0, sizeof *out);
    out->status = g->fabric_status;
    out->state = (unsigned char)g->fabric_state;
    return g->fabric_known ? SUCCESS : NOT_SUPPORTED;
}

API nvmlDeviceGetMigMode(struct gpu *g, unsigned *now, unsigned *next)
{
    BEGIN(g);
    *now = (unsigned)g->mig_now;
    *next = (unsigned)g->mig_next;
    return g->mig_known ? SUCCESS : NOT_SUPPORTED;
}

API nvmlDeviceGetMaxMigDeviceCount(struct gpu *g, unsigned *out)
{
    BEGIN(g);
    *out = (unsigned)g->mig_max;
    return SUCCESS;
}

API nvmlDeviceGetMigDeviceHandleByIndex(struct gpu *g, unsigned index, struct gpu **out)
{
    BEGIN(g);
    if (index >= MAX_MIG || !g->mig[index])
        return NOT_FOUND;
    *out = g->mig[index];
    return obey(&(*out)->rules, "handle");
}

API nvmlDeviceGetGpuInstanceId(struct gpu *g, unsigned *out)
{
    BEGIN(g);
    *out = g->gi;
    return g->is_mig ? SUCCESS : NOT_SUPPORTED;
}

API nvmlDeviceGetComputeInstanceId(struct gpu *g, unsigned *out)
{
    BEGIN(g);
    *out = g->ci;
    return g->is_mig ? SUCCESS : NOT_SUPPORTED;
}

API nvmlDeviceGetAttributes_v2(struct gpu *g, struct attributes *out)
{
    BEGIN(g);
    memset(out, 0, sizeof *out);
    out->sms = g->sms;
    out->mib = g->mig_mib;
    out->gi_slices = g->gi_slices;
    out->ci_slices = g->ci_slices;
    return g->is_mig ? SUCCESS : NOT_SUPPORTED;
}
