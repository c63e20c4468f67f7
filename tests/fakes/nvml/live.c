/* What a device does now: figures that change while a process watches.
 *
 * They come from the profile, and from the file that FAKE_NVML_LIVE names: lines `INDEX KEYWORD
 * VALUES`, where the keywords are those of a profile. The file is read again when it has changed,
 * so a test moves figures, or makes a device hang, under a running process. Replace it by rename.
 */
#include "calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct process {
    unsigned pid;
    unsigned long long memory;
    unsigned gi, ci;
};
struct utilization {
    unsigned gpu, memory;
};
struct gpm_support {
    unsigned version, supported;
};
struct gpm_metric {
    unsigned id;
    int result;
    double value;
    struct {
        char *short_name, *long_name, *unit;
    } info;
};
struct gpm_get {
    unsigned version, count;
    void *first, *second;
    struct gpm_metric metrics[];
};
struct gpm_sample {
    struct gpu *of;
};
struct event_set {
    struct gpu *of;
};
struct event {
    struct gpu *of;
    unsigned long long type, data;
    unsigned gi, ci;
};

int read_live(struct gpu *g, const char *key, const char *rest)
{
    struct running *r = &g->list[g->running];
    char kind[TEXT] = "";
    int fields;
    if (!strcmp(key, "utilization"))
        return g->has_utilization = sscanf(rest, "%u %u", g->utilization, g->utilization + 1) == 2;
    if (!strcmp(key, "temperature"))
        return g->has_temperature = sscanf(rest, "%u", &g->temperature) == 1;
    if (!strcmp(key, "usage"))
        return g->has_usage = sscanf(rest, "%u", &g->usage) == 1;
    if (!strcmp(key, "clocks-now")) {
        unsigned *c = g->clock_now;
        return sscanf(rest, "%u %u %u %u", c, c + 1, c + 2, c + 3) == 4;
    }
    if (!strcmp(key, "traffic"))
        return g->has_traffic =
                   sscanf(rest, "%llu %llu", &g->traffic[0].rate, &g->traffic[1].rate) == 2;
    if (!strcmp(key, "nvlink-traffic"))
        return g->has_nvlink_traffic =
                   sscanf(rest, "%llu %llu", &g->nvlink_traffic[0].rate,
                          &g->nvlink_traffic[1].rate) == 2;
    if (!strcmp(key, "tally")) {
        unsigned long long *t = g->tally;
        return g->has_tally =
                   sscanf(rest, "%llu %llu %llu %llu", t, t + 1, t + 2, t + 3) == 4;
    }
    if (!strcmp(key, "nvlink-errors")) {
        unsigned long long *e = g->nvlink_errors;
        return g->has_nvlink_errors =
                   sscanf(rest, "%llu %llu %llu %llu", e, e + 1, e + 2, e + 3) == 4;
    }
    if (!strcmp(key, "violation"))
        return g->has_violation =
                   sscanf(rest, "%llu %llu", g->violation, g->violation + 1) == 2;
    if (!strcmp(key, "xid"))
        return g->xids < MAX_XIDS && sscanf(rest, "%u", &g->xid[g->xids]) == 1 && ++g->xids;
    if (!strcmp(key, "gpm"))
        return g->has_gpm = sscanf(rest, "%lf %lf %lf", g->gpm, g->gpm + 1, g->gpm + 2) == 3;
    if (strcmp(key, "process") || g->running == MAX_RUNNING)
        return 0;
    memset(r, 0, sizeof *r);
    r->gi = r->ci = ~0u;
    fields = sscanf(rest, "%u %llu %127s %u %u", &r->pid, &r->memory, kind, &r->gi, &r->ci);
    r->graphics = !strcmp(kind, "graphics");
    return fields >= 2 ? (g->running++, 1) : 0;
}

unsigned long long count_up(struct counter *counter, long long now)
{
    if (counter->since)
        counter->grown += counter->rate * (unsigned long long)(now - counter->since) / 1000000;
    counter->since = now;
    return counter->grown;
}

void refresh_live(void)
{
    static struct timespec seen;
    static int base[MAX_GPUS], ready;
    static unsigned base_running[MAX_GPUS];
    static const char *path;
    static int asked;
    char line[512], key[TEXT];
    struct stat now;
    FILE *file;
    if (!asked) { /* once: each call of the library comes here */
        path = getenv("FAKE_NVML_LIVE");
        asked = 1;
    }
    if (!path || stat(path, &now))
        return;
    if (ready && now.st_mtim.tv_sec == seen.tv_sec && now.st_mtim.tv_nsec == seen.tv_nsec)
        return;
    file = fopen(path, "r");
    if (!file)
        return;
    seen = now.st_mtim;
    for (int i = 0; i < fake.count; i++) {
        if (!ready) {
            base[i] = fake.gpus[i].rules.count;
            base_running[i] = fake.gpus[i].running;
        }
        fake.gpus[i].rules.count = base[i];
        fake.gpus[i].running = base_running[i];
    }
    ready = 1;
    while (fgets(line, sizeof line, file)) {
        int index, at = 0;
        line[strcspn(line, "\r\n")] = '\0';
        if (sscanf(line, "%d %127s %n", &index, key, &at) < 2 || index >= fake.count)
            continue;
        if (!read_device(&fake.gpus[index], key, at ? line + at : ""))
            fprintf(stderr, "fake NVML: %s: cannot read %s\n", path, line);
    }
    fclose(file);
}

API nvmlDeviceGetUtilizationRates(struct gpu *g, struct utilization *out)
{
    BEGIN(g);
    out->gpu = g->utilization[0];
    out->memory = g->utilization[1];
    return g->has_utilization ? SUCCESS : NOT_SUPPORTED;
}

API nvmlDeviceGetTemperature(struct gpu *g, unsigned sensor, unsigned *out)
{
    BEGIN(g);
    *out = g->temperature;
    return sensor ? INVALID_ARGUMENT : g->has_temperature ? SUCCESS : NOT_SUPPORTED;
}

API nvmlDeviceGetPowerUsage(struct gpu *g, unsigned *out)
{
    BEGIN(g);
    *out = g->usage;
    return g->has_usage ? SUCCESS : NOT_SUPPORTED;
}

API nvmlDeviceGetClockInfo(struct gpu *g, unsigned type, unsigned *out)
{
    BEGIN(g);
    return type < 4 ? number(out, g->clock_now[type]) : INVALID_ARGUMENT;
}

static int list_running(struct gpu *g, int graphics, unsigned *count, struct process *out)
{
    unsigned room = *count, n = 0;
    for (unsigned i = 0; i < g->running; i++)
        n += g->list[i].graphics == graphics;
    if (!graphics)
        n += g->processes;
    *count = n;
    if (n > room)
        return INSUFFICIENT_SIZE;
    n = 0;
    if (!graphics)
        for (unsigned i = 0; i < g->processes; i++)
            out[n++] = (struct process){.pid = 1000 + i, .memory = 1u << 20, .gi = ~0u, .ci = ~0u};
    for (unsigned i = 0; i < g->running; i++)
        if (g->list[i].graphics == graphics)
            out[n++] = (struct process){.pid = g->list[i].pid,
                                        .memory = g->list[i].memory,
                                        .gi = g->list[i].gi,
                                        .ci = g->list[i].ci};
    return SUCCESS;
}

API nvmlDeviceGetComputeRunningProcesses_v3(struct gpu *g, unsigned *count, struct process *out)
{
    BEGIN(g);
    return list_running(g, 0, count, out);
}

API nvmlDeviceGetGraphicsRunningProcesses_v3(struct gpu *g, unsigned *count, struct process *out)
{
    BEGIN(g);
    return list_running(g, 1, count, out);
}

API nvmlGpmQueryDeviceSupport(struct gpu *g, struct gpm_support *out)
{
    BEGIN(g);
    if (out->version != 1)
        return 25;
    out->supported = g->has_gpm;
    return SUCCESS;
}

API nvmlGpmSampleAlloc(struct gpm_sample **out)
{
    BEGIN(NULL);
    *out = calloc(1, sizeof **out);
    return *out ? SUCCESS : 20;
}

API nvmlGpmSampleFree(struct gpm_sample *sample)
{
    BEGIN(NULL);
    free(sample);
    return SUCCESS;
}

API nvmlGpmSampleGet(struct gpu *g, struct gpm_sample *out)
{
    BEGIN(g);
    out->of = g;
    return g->has_gpm ? SUCCESS : NOT_SUPPORTED;
}

API nvmlGpmMigSampleGet(struct gpu *g, unsigned instance, struct gpm_sample *out)
{
    BEGIN(g);
    for (int i = 0; i < MAX_MIG; i++)
        if (g->mig[i] && g->mig[i]->gi == instance)
            return out->of = g->mig[i], SUCCESS;
    return INVALID_ARGUMENT;
}

API nvmlGpmMetricsGet(struct gpm_get *asked)
{
    struct gpm_sample *sample = asked->second;
    BEGIN(NULL);
    if (asked->version != 1)
        return 25;
    for (unsigned i = 0; i < asked->count; i++) {
        struct gpm_metric *m = &asked->metrics[i];
        int place = m->id == 2 ? 0 : m->id == 5 ? 1 : m->id == 10 ? 2 : -1;
        m->result = place < 0 ? NOT_SUPPORTED : SUCCESS;
        m->value = place < 0 ? 0 : sample->of->gpm[place];
    }
    return SUCCESS;
}

API nvmlEventSetCreate(struct event_set **out)
{
    BEGIN(NULL);
    *out = calloc(1, sizeof **out);
    return *out ? SUCCESS : 20;
}

API nvmlEventSetFree(struct event_set *set)
{
    BEGIN(NULL);
    free(set);
    return SUCCESS;
}

API nvmlDeviceRegisterEvents(struct gpu *g, unsigned long long types, struct event_set *set)
{
    BEGIN(g);
    set->of = g;
    return types == 8 ? SUCCESS : INVALID_ARGUMENT;
}

API nvmlEventSetWait_v2(struct event_set *set, struct event *out, unsigned milliseconds)
{
    struct gpu *g = set->of;
    BEGIN(g);
    (void)milliseconds;
    if (!g->xids)
        return TIMEOUT;
    memset(out, 0, sizeof *out);
    out->of = g;
    out->type = 8;
    out->data = g->xid[0];
    memmove(g->xid, g->xid + 1, --g->xids * sizeof *g->xid);
    return SUCCESS;
}
