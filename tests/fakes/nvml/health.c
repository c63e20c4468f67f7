/* What a device may draw, how it is set, and how its memory is. */
#include "calls.h"

API nvmlDeviceGetPowerManagementLimit(struct gpu *g, unsigned *out)
{
    BEGIN(g);
    return number(out, g->power);
}

API nvmlDeviceGetEnforcedPowerLimit(struct gpu *g, unsigned *out)
{
    BEGIN(g);
    return number(out, g->power_enforced);
}

API nvmlDeviceGetPowerManagementDefaultLimit(struct gpu *g, unsigned *out)
{
    BEGIN(g);
    return number(out, g->power_default);
}

API nvmlDeviceGetPowerManagementLimitConstraints(struct gpu *g, unsigned *least, unsigned *most)
{
    BEGIN(g);
    *least = g->power_min;
    return number(most, g->power_max);
}

/* The name since driver 535; drivers before have it under the next one alone. */
API nvmlDeviceGetCurrentClocksEventReasons(struct gpu *g, unsigned long long *out)
{
    BEGIN(g);
    *out = g->throttle;
    return g->has_throttle ? SUCCESS : NOT_SUPPORTED;
}

API nvmlDeviceGetCurrentClocksThrottleReasons(struct gpu *g, unsigned long long *out)
{
    BEGIN(g);
    *out = g->throttle;
    return g->has_throttle ? SUCCESS : NOT_SUPPORTED;
}

API nvmlDeviceGetEccMode(struct gpu *g, unsigned *now, unsigned *next)
{
    BEGIN(g);
    *now = g->ecc_now;
    *next = g->ecc_next;
    return g->has_ecc ? SUCCESS : NOT_SUPPORTED;
}

API nvmlDeviceGetPersistenceMode(struct gpu *g, unsigned *out)
{
    BEGIN(g);
    *out = g->persistence;
    return g->has_persistence ? SUCCESS : NOT_SUPPORTED;
}

API nvmlDeviceGetRemappedRows(struct gpu *g, unsigned *correctable, unsigned *uncorrectable,
                              unsigned *pending, unsigned *failed)
{
    BEGIN(g);
    *correctable = g->remapped[0];
    *uncorrectable = g->remapped[1];
    *pending = g->remapped[2];
    *failed = g->remapped[3];
    return g->has_remap ? SUCCESS : NOT_SUPPORTED;
}
