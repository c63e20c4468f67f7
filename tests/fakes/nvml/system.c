/* A stand-in for libnvidia-ml.so.1, so that the real nvidia-ml-py can be tested without a GPU.
 *
 * It answers the calls that probers and monitoring scripts make, from the profile named by the
 * environment variable FAKE_NVML_PROFILE. With FAKE_NVML_LOG every call appends its name to that
 * file, which proves what was asked. Here: init, shutdown, versions, and what all calls share.
 */
#include "calls.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int initialised;

static void nap(long ms)
{
    struct timespec span = {ms / 1000, (ms % 1000) * 1000000L};
    while (nanosleep(&span, &span))
        ;
}

static void log_call(const char *call)
{
    char line[TEXT + 2];
    int length, fd;
    if (!fake.log[0])
        return;
    length = snprintf(line, sizeof line, "%s\n", call);
    fd = open(fake.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) {
        if (write(fd, line, (size_t)length) < 0)
            perror("fake NVML: log");
        close(fd);
    }
}

int obey(const struct rules *rules, const char *call)
{
    for (int i = 0; i < rules->count; i++) {
        const struct rule *rule = &rules->list[i];
        if (strcmp(rule->call, call) && strcmp(rule->call, "*"))
            continue;
        if (rule->act == ACT_CRASH)
            raise(SIGSEGV);
        if (rule->act == ACT_HANG)
            for (;;)
                nap(1000000);
        if (rule->act == ACT_CODE)
            return rule->value;
        nap(rule->value);
    }
    return SUCCESS;
}

int obey_code(const struct rules *rules, const char *call)
{
    for (int i = 0; i < rules->count; i++)
        if (!strcmp(rules->list[i].call, call) && rules->list[i].act == ACT_CODE)
            return rules->list[i].value;
    return SUCCESS;
}

int enter(const struct gpu *g, const char *call)
{
    log_call(call);
    if (!initialised)
        return UNINITIALIZED;
    refresh_live();
    return obey(g ? &g->rules : &fake.rules, call);
}

/* A figure of 0 means that the profile does not have it: the real library says so too. */
int number(unsigned *out, unsigned value)
{
    *out = value;
    return value ? SUCCESS : NOT_SUPPORTED;
}

int text(char *out, unsigned size, const char *value)
{
    if (!value[0])
        return NOT_SUPPORTED;
    if (strlen(value) >= size)
        return INSUFFICIENT_SIZE;
    strcpy(out, value);
    return SUCCESS;
}

void fill_pci(struct pci_info *out, unsigned domain, unsigned bus, unsigned device)
{
    memset(out, 0, sizeof *out);
    out->domain = domain;
    out->bus = bus;
    out->device = device;
    /* The old field has room for four digits of the domain, the new one for eight. */
    snprintf(out->legacy, sizeof out->legacy, "%04X:%02X:%02X.0", domain & 0xffff, bus & 0xff,
             device & 0xff);
    snprintf(out->busid, sizeof out->busid, "%08X:%02X:%02X.0", domain, bus, device);
}

API nvmlInitWithFlags(unsigned flags)
{
    int result = fake_load();
    (void)flags;
    log_call("nvmlInit");
    if (!result)
        result = obey(&fake.rules, "nvmlInit");
    initialised = !result;
    return result;
}

API nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

API nvmlShutdown(void)
{
    BEGIN(NULL);
    initialised = 0;
    return SUCCESS;
}

__attribute__((visibility("default"))) const char *nvmlErrorString(int code)
{
    return code == SUCCESS ? "Success" : "an error of the fake NVML";
}

API nvmlSystemGetDriverVersion(char *out, unsigned size)
{
    BEGIN(NULL);
    return text(out, size, fake.driver);
}

API nvmlSystemGetNVMLVersion(char *out, unsigned size)
{
    BEGIN(NULL);
    return text(out, size, fake.driver);
}

API nvmlSystemGetCudaDriverVersion_v2(int *out)
{
    BEGIN(NULL);
    *out = fake.cuda;
    return fake.cuda ? SUCCESS : NOT_SUPPORTED;
}

API nvmlSystemGetCudaDriverVersion(int *out) { return nvmlSystemGetCudaDriverVersion_v2(out); }
