/* What every call of the fake NVML shares. */
#ifndef FAKE_NVML_CALLS_H
#define FAKE_NVML_CALLS_H

#include "fake.h"

#define API __attribute__((visibility("default"))) int

struct pci_info {
    char legacy[16];
    unsigned domain, bus, device, pci_id, subsystem;
    char busid[32];
};

/* Every call passes here: log it, refuse it before init, do what the profile says of it. */
int enter(const struct gpu *g, const char *call);

/* What the profile says that `call` shall do: its error code, or never return. */
int obey(const struct rules *rules, const char *call);

/* The error code that the profile has for `call` itself, without any other of its rules. */
int obey_code(const struct rules *rules, const char *call);

int number(unsigned *out, unsigned value);
int text(char *out, unsigned size, const char *value);
void fill_pci(struct pci_info *out, unsigned domain, unsigned bus, unsigned device);

#define BEGIN(g)                                                                                  \
    do {                                                                                          \
        int result_ = enter((g), __func__);                                                       \
        if (result_)                                                                              \
            return result_;                                                                       \
    } while (0)

#endif
