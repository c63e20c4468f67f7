"""Names the columns of the built table once, for those who write it and those who read it."""

CHIP = (
    "id",
    "name",
    "kind",
    "vendor",
    "arch",
    "family",
    "codename",
    "year",
    "units",
    "clock",
    "memory",
    "power",
    "boards",
    "pci",
    "dt",
    "gpu_id",
    "aliases",
    "published",
    "override",
    "explain",
    "source",
    "confidence",
    "note",
)

ARCH = (
    "id",
    "name",
    "family",
    "vendor",
    "unit",
    "cores_per_unit",
    "derive",
    "rates",
    "sparse",
    "isa",
    "compute_capability",
    "gfx",
    "platform",
    "metal_family",
    "pci",
    "dt",
    "gpu_id",
    "product",
    "prefix",
    "suffix",
    "exact",
    "cpuid",
    "midr",
    "brand",
    "generic",
    "source",
    "confidence",
    "note",
)

SOURCE = ("key", "title", "publisher", "ref", "status")

CLOCK = ("base", "boost", "matrix", "boost_low")  # MHz
MEMORY = ("gib", "type", "bus", "gbs")
PUBLISHED = ("rate", "sparsity", "tflops", "source", "clock")
OVERRIDE = ("rate", "sparsity", "tflops", "reason", "source", "confidence")
CPUID = ("name", "vendor", "family", "models", "brand", "efficient")
MIDR = ("name", "implementer", "part", "efficient")
BRAND = ("name", "prefix", "efficient", "pattern")
