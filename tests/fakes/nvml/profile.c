/* Reads a profile: one `keyword value…` a line, so that no parser stands between a test and C.
 *
 * Lines before the first `gpu` are the system's; `gpu` opens a device, `mig INDEX` an instance of
 * the device before it; `#` starts a comment line. README.md lists the keywords.
 */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake fake;

static struct gpu *current; /* the device that the next lines describe; NULL: the system */

/* Copy text, turning \xNN into the byte: a name that is no UTF-8 must be writable. */
static void copy_text(char *out, const char *in)
{
    size_t n = 0;
    while (*in && n + 1 < TEXT) {
        unsigned byte;
        /* Without the look at the first character, sscanf() of each costs more than all calls. */
        if (*in == '\\' && sscanf(in, "\\x%2x", &byte) == 1) {
            out[n++] = (char)byte;
            in += 4;
        } else {
            out[n++] = *in++;
        }
    }
    out[n] = '\0';
}

/* `on CALL code|hang|crash|sleep MS` */
static int add_rule(struct rules *rules, const char *rest)
{
    struct rule *rule = &rules->list[rules->count];
    char act[TEXT];
    int value = 0, fields;
    if (rules->count == MAX_RULES)
        return 0;
    fields = sscanf(rest, "%127s %127s %d", rule->call, act, &value);
    if (fields < 2)
        return 0;
    if (!strcmp(act, "hang"))
        rule->act = ACT_HANG;
    else if (!strcmp(act, "crash"))
        rule->act = ACT_CRASH;
    else if (!strcmp(act, "sleep") && fields == 3)
        rule->act = ACT_SLEEP;
    else if (sscanf(act, "%d", &value) == 1)
        rule->act = ACT_CODE;
    else
        return 0;
    rule->value = value;
    rules->count++;
    return 1;
}

static int open_gpu(void)
{
    if (fake.count == MAX_GPUS)
        return 0;
    current = &fake.gpus[fake.count];
    current->used = 1;
    current->minor = fake.count++;
    return 1;
}

static int open_mig(const char *rest)
{
    struct gpu *parent = current && current->is_mig ? current->parent : current;
    unsigned index;
    if (!parent || sscanf(rest, "%u", &index) != 1 || index >= MAX_MIG || parent->mig[index])
        return 0;
    current = parent->mig[index] = calloc(1, sizeof *current);
    if (!current)
        return 0;
    current->used = current->is_mig = 1;
    current->parent = parent;
    return 1;
}

/* `pci DOMAIN:BUS:DEVICE.F PCI_ID SUBSYSTEM`, the numbers as NVML packs them: 0xDEVICEVENDOR */
static int read_pci(struct gpu *g, const char *rest)
{
    g->has_pci = 1;
    return sscanf(rest, "%31s %x %x", g->busid, &g->pci_id, &g->subsystem) == 3 &&
           sscanf(g->busid, "%x:%x:%x", &g->domain, &g->bus, &g->device) == 3;
}

/* `nvlink FIRST-LAST up|down gpu|npu|switch DOMAIN:BUS:DEVICE.F` */
static int read_nvlink(struct gpu *g, const char *rest)
{
    struct nvlink link = {.present = 1};
    unsigned first, last;
    char state[TEXT], to[TEXT], peer[TEXT];
    if (sscanf(rest, "%u-%u %127s %127s %127s", &first, &last, state, to, peer) != 5)
        return 0;
    if (last >= MAX_LINKS || sscanf(peer, "%x:%x:%x", &link.domain, &link.bus, &link.device) != 3)
        return 0;
    link.active = !strcmp(state, "up");
    link.to = !strcmp(to, "gpu") ? 0 : !strcmp(to, "npu") ? 1 : 2;
    for (unsigned i = first; i <= last; i++)
        g->link[i] = link;
    return 1;
}

/* `memory TOTAL RESERVED FREE USED`, all in bytes */
static int read_memory(struct gpu *g, const char *rest)
{
    g->has_memory = 1;
    return sscanf(rest, "%llu %llu %llu %llu", &g->total, &g->reserved, &g->free, &g->busy) == 4;
}

static int read_shape(struct gpu *g, const char *key, const char *rest)
{
    if (!strcmp(key, "clocks")) { /* graphics, SM, memory, video: the maxima in MHz */
        unsigned *c = g->max_clock;
        return sscanf(rest, "%u %u %u %u", c, c + 1, c + 2, c + 3) == 4;
    }
    if (!strcmp(key, "pcie"))
        return sscanf(rest, "%u %u %u %u", &g->pcie_gen, &g->pcie_width, &g->pcie_max_gen,
                      &g->pcie_max_width) == 4;
    if (!strcmp(key, "nvlinks"))
        return sscanf(rest, "%u %u", &g->nvlink_count, &g->nvlink_mbps) == 2;
    if (!strcmp(key, "fabric")) {
        g->fabric_known = 1;
        return sscanf(rest, "%u %u", &g->fabric_state, &g->fabric_status) >= 1;
    }
    if (!strcmp(key, "nvlink"))
        return read_nvlink(g, rest);
    if (!strcmp(key, "mig-mode")) {
        g->mig_known = 1;
        return sscanf(rest, "%d %d %d", &g->mig_now, &g->mig_next, &g->mig_max) == 3;
    }
    if (!strcmp(key, "instance"))
        return sscanf(rest, "%u %u", &g->gi, &g->ci) == 2;
    if (!strcmp(key, "attributes"))
        return sscanf(rest, "%u %llu %u %u", &g->sms, &g->mig_mib, &g->gi_slices,
                      &g->ci_slices) == 4;
    return 0;
}

/* `power LIMIT DEFAULT MIN MAX [ENFORCED]`, in milliwatts; the limit is enforced, unless said */
static int read_power(struct gpu *g, const char *rest)
{
    int fields;
    fields = sscanf(rest, "%u %u %u %u %u", &g->power, &g->power_default, &g->power_min,
                    &g->power_max, &g->power_enforced);
    if (fields == 4)
        g->power_enforced = g->power;
    return fields >= 4;
}

static int read_health(struct gpu *g, const char *key, const char *rest)
{
    if (!strcmp(key, "power"))
        return read_power(g, rest);
    if (!strcmp(key, "throttle"))
        return g->has_throttle = sscanf(rest, "%llx", &g->throttle) == 1;
    if (!strcmp(key, "ecc"))
        return g->has_ecc = sscanf(rest, "%u %u", &g->ecc_now, &g->ecc_next) == 2;
    if (!strcmp(key, "persistence"))
        return g->has_persistence = sscanf(rest, "%u", &g->persistence) == 1;
    if (!strcmp(key, "remapped"))
        return g->has_remap = sscanf(rest, "%u %u %u %u", &g->remapped[0], &g->remapped[1],
                                     &g->remapped[2], &g->remapped[3]) == 4;
    return read_shape(g, key, rest);
}

int read_device(struct gpu *g, const char *key, const char *rest)
{
    if (!strcmp(key, "name"))
        return copy_text(g->name, rest), 1;
    if (!strcmp(key, "uuid"))
        return copy_text(g->uuid, rest), 1;
    if (!strcmp(key, "pci"))
        return read_pci(g, rest);
    if (!strcmp(key, "memory"))
        return read_memory(g, rest);
    if (!strcmp(key, "memory-v1-only"))
        return g->memory_v1_only = 1;
    if (!strcmp(key, "cc"))
        return sscanf(rest, "%d.%d", &g->cc_major, &g->cc_minor) == 2;
    if (!strcmp(key, "cores"))
        return sscanf(rest, "%u", &g->cores) == 1;
    if (!strcmp(key, "bus-width"))
        return sscanf(rest, "%u", &g->bus_width) == 1;
    if (!strcmp(key, "processes"))
        return sscanf(rest, "%u", &g->processes) == 1;
    if (!strcmp(key, "compute-mode"))
        return sscanf(rest, "%u", &g->compute_mode) == 1;
    if (!strcmp(key, "virtualization"))
        return sscanf(rest, "%d", &g->virtualization) == 1;
    if (!strcmp(key, "minor"))
        return sscanf(rest, "%d", &g->minor) == 1;
    if (!strcmp(key, "on"))
        return add_rule(&g->rules, rest);
    return read_live(g, key, rest) || read_health(g, key, rest);
}

static int read_line(const char *key, const char *rest)
{
    if (!strcmp(key, "gpu"))
        return open_gpu();
    if (!strcmp(key, "mig"))
        return open_mig(rest);
    if (current)
        return read_device(current, key, rest);
    if (!strcmp(key, "driver"))
        return copy_text(fake.driver, rest), 1;
    if (!strcmp(key, "cuda"))
        return sscanf(rest, "%d", &fake.cuda) == 1;
    if (!strcmp(key, "on"))
        return add_rule(&fake.rules, rest);
    return 0;
}

static int read_profile(FILE *file, const char *path)
{
    char line[512], key[TEXT];
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        int at = 0;
        line[strcspn(line, "\r\n")] = '\0';
        if (sscanf(line, "%127s %n", key, &at) < 1 || key[0] == '#')
            continue;
        if (!read_line(key, at ? line + at : "")) {
            fprintf(stderr, "fake NVML: %s:%d: cannot read %s\n", path, number, line);
            return INVALID_ARGUMENT;
        }
    }
    return SUCCESS;
}

int fake_load(void)
{
    const char *path = getenv("FAKE_NVML_PROFILE"), *log = getenv("FAKE_NVML_LOG");
    FILE *file;
    int result;
    if (log)
        snprintf(fake.log, sizeof fake.log, "%s", log);
    if (fake.count || fake.rules.count)
        return SUCCESS; /* initialised before */
    if (!path)
        return DRIVER_NOT_LOADED; /* as the real library says on a machine without the driver */
    file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "fake NVML: cannot open the profile %s\n", path);
        return INVALID_ARGUMENT;
    }
    result = read_profile(file, path);
    fclose(file);
    return result;
}
