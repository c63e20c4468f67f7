/* What the fake NVML knows: the devices of a profile, and how each call shall behave.
 *
 * The layouts that a caller sees (in device.c and topology.c) are facts of NVML's binary interface, written
 * down here anew: no header of NVIDIA is used or copied.
 */
#ifndef FAKE_NVML_H
#define FAKE_NVML_H

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    TIMEOUT = 10,
    NO_DATA = 21,
};

enum { MAX_RUNNING = 64, MAX_GPUS = 64, MAX_MIG = 8, MAX_LINKS = 36, MAX_RULES = 48, MAX_XIDS = 16, TEXT = 128 };

/* What a named call does instead of its work: fail with `code`, or one of the kinds below. */
enum { ACT_CODE, ACT_HANG, ACT_CRASH, ACT_SLEEP };

struct rule {
    char call[TEXT];
    int act;
    int value; /* the error code, or milliseconds */
};

struct rules {
    struct rule list[MAX_RULES];
    int count;
};

struct nvlink {
    int present, active, to; /* to: 0 a GPU, 1 an IBM NPU, 2 an NVSwitch */
    unsigned domain, bus, device;
};

struct gpu {
    int used;              /* set once the profile names it */
    struct gpu *parent;    /* of a MIG instance */
    char name[TEXT], uuid[TEXT], busid[32];
    unsigned domain, bus, device, pci_id, subsystem;
    int has_pci;
    unsigned long long total, reserved, free, busy;
    int has_memory, memory_v1_only;
    int cc_major, cc_minor;
    unsigned cores, bus_width, max_clock[4], current_clock[4];
    unsigned pcie_gen, pcie_width, pcie_max_gen, pcie_max_width;
    unsigned nvlink_count, nvlink_mbps;
    int fabric_known;
    unsigned fabric_state, fabric_status;
    struct nvlink link[MAX_LINKS];
    int mig_known, mig_now, mig_next, mig_max;
    struct gpu *mig[MAX_MIG]; /* sparse: an instance keeps its index */
    unsigned gi, ci, sms, gi_slices, ci_slices;
    unsigned long long mig_mib;
    int is_mig;
    unsigned processes, compute_mode;
    int virtualization, minor;
    int has_throttle, has_ecc, has_persistence, has_remap;
    unsigned power, power_default, power_min, power_max, power_enforced; /* milliwatts */
    unsigned long long throttle;                                         /* why clocks are low */
    unsigned ecc_now, ecc_next, persistence;
    unsigned remapped[4]; /* correctable, uncorrectable, pending, failed */
    int has_utilization, has_temperature, has_usage, has_traffic, has_nvlink_traffic, has_gpm;
    unsigned utilization[2], temperature, usage; /* percent of GPU and memory; °C; milliwatts */
    unsigned clock_now[4];
    int has_tally, has_nvlink_errors, has_violation;
    unsigned long long tally[4], nvlink_errors[4]; /* mJ, ECC 1 bit, 2 bits, replays; see README */
    unsigned long long violation[2];               /* nanoseconds: power, heat */
    unsigned xids, xid[MAX_XIDS];
    struct counter {
        unsigned long long rate, grown; /* per second; so far */
        long long since;                /* microseconds; 0 before the first reading */
    } traffic[2], nvlink_traffic[2];    /* sent and received: bytes; KiB */
    double gpm[3];                                    /* percent of SM, tensor, DRAM */
    unsigned running;
    struct running {
        unsigned pid, gi, ci;
        unsigned long long memory;
        int graphics;
    } list[MAX_RUNNING];
    struct rules rules;
};

struct fake {
    char driver[TEXT];
    int cuda;
    int count;
    struct gpu gpus[MAX_GPUS];
    struct rules rules; /* of calls without a device, and of init */
    char log[512];
};

extern struct fake fake;

/* Read the file named by FAKE_NVML_LIVE again, if it has changed since the last call. */
void refresh_live(void);

/* What a counter has grown to at a time in microseconds. */
unsigned long long count_up(struct counter *counter, long long now);

/* Take one line of what a device does now; 0 where the keyword is another. */
int read_live(struct gpu *g, const char *key, const char *rest);

/* Take one line that describes a device; 0 where it cannot be read. */
int read_device(struct gpu *g, const char *key, const char *rest);

/* Read the profile named by FAKE_NVML_PROFILE; 0, or an NVML error code with words on stderr. */
int fake_load(void);

#endif
