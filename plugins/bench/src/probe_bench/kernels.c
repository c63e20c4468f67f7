/* One loop that stays in registers, for one type; compiled for the instructions that the CPU has.

   CHAINS independent sums hide the latency of an instruction (4 cycles at two a cycle on x86, so
   eight at least); more than the registers hold would measure the stack. Each sum has the value 1
   and stays there (1 * 0.5 + 0.5), so the result says whether all of them were computed. */
#include <stdint.h>
#if defined(DOT_BF16) || defined(DOT_INT8)
#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <arm_neon.h>
#endif
#endif

#if defined(__x86_64__)
#define REGISTER(x) "+v"(x)
#else
#define REGISTER(x) "+w"(x)
#endif

/* Without this a compiler may see that all sums are equal, and compute one. */
#define HOLD(x) __asm__ volatile("" : REGISTER(x));

/* Variables, not an array: gcc 12 keeps an array of vectors in memory. */
#if CHAINS == 16
#define EACH(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12) f(13) f(14) f(15)
#else
#define EACH(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11)
#endif

#if defined(CLOCK)

/* A dependent add takes one cycle on every core since the 1990s. Of a register: adds of constants
   are folded while they are renamed (Intel since Golden Cove). */
double run(uint64_t rounds, double factor, double term) {
  uint64_t sum = 0, one = 1;
  (void)factor;
  (void)term;
  for (uint64_t i = 0; i < rounds; i++) {
#define ADD4 ADD ADD ADD ADD
#if defined(__x86_64__)
#define ADD "add %1, %0\n\t"
#elif defined(__aarch64__)
#define ADD "add %0, %0, %1\n\t"
#else
#error no add for this architecture
#endif
    __asm__ volatile(ADD4 ADD4 ADD4 ADD4 ADD4 ADD4 ADD4 ADD4 : "+r"(sum) : "r"(one));
  }
  return (double)sum;
}

#elif defined(DOT_INT8) || defined(DOT_BF16)

#if defined(DOT_INT8) && defined(__AVX512VNNI__)
typedef __m512i sums;
typedef __m512i parts;
#define ZERO _mm512_setzero_si512()
#define PARTS(v) _mm512_set1_epi8((char)(v))
#define DOT(s, a, b) _mm512_dpbusd_epi32(s, a, b)
#define LANE int32_t
#elif defined(DOT_INT8) && defined(__AVXVNNI__)
typedef __m256i sums;
typedef __m256i parts;
#define ZERO _mm256_setzero_si256()
#define PARTS(v) _mm256_set1_epi8((char)(v))
#define DOT(s, a, b) _mm256_dpbusd_avx_epi32(s, a, b)
#define LANE int32_t
#elif defined(DOT_INT8)
typedef int32x4_t sums;
typedef int8x16_t parts;
#define ZERO vdupq_n_s32(0)
#define PARTS(v) vdupq_n_s8((int8_t)(v))
#define DOT(s, a, b) vdotq_s32(s, a, b)
#define LANE int32_t
#elif defined(__AVX512BF16__)
typedef __m512 sums;
typedef __m512bh parts;
#define ZERO _mm512_setzero_ps()
#define PARTS(v) _mm512_cvtne2ps_pbh(_mm512_set1_ps((float)(v)), _mm512_set1_ps((float)(v)))
#define DOT(s, a, b) _mm512_dpbf16_ps(s, a, b)
#define LANE float
#else
typedef float32x4_t sums;
typedef bfloat16x8_t parts;
#define ZERO vdupq_n_f32(0)
#define PARTS(v) vreinterpretq_bf16_u16(vdupq_n_u16((uint16_t)((v) ? 0x3f80 : 0)))
#define DOT(s, a, b) vbfdotq_f32(s, a, b)
#define LANE float
#endif

/* The products are 0, so that no sum overflows; the instruction takes no account of values. */
double run(uint64_t rounds, double factor, double term) {
  parts left = PARTS(factor), right = PARTS(term);
#define START(c) sums chain##c = ZERO;
  EACH(START)
  for (uint64_t i = 0; i < rounds; i++) {
#define STEP(c) chain##c = DOT(chain##c, left, right); HOLD(chain##c)
    EACH(STEP)
  }
  double result = 0;
  LANE lanes[sizeof(sums) / sizeof(LANE)];
#define ADD_UP(c) __builtin_memcpy(lanes, &chain##c, sizeof(sums)); \
  for (unsigned l = 0; l < sizeof(sums) / sizeof(LANE); l++) result += 1 + (double)lanes[l];
  EACH(ADD_UP)
  return result;
}

#else

typedef TYPE sums __attribute__((vector_size(BYTES)));

double run(uint64_t rounds, double factor, double term) {
  sums by, plus, first;
  for (unsigned l = 0; l < BYTES / sizeof(TYPE); l++) {
    by[l] = (TYPE)factor;
    plus[l] = (TYPE)term;
    first[l] = (TYPE)1;
  }
#define START(c) sums chain##c = first;
  EACH(START)
  for (uint64_t i = 0; i < rounds; i++) {
#define STEP(c) chain##c = chain##c * by + plus; HOLD(chain##c)
    EACH(STEP)
  }
  double result = 0;
#define ADD_UP(c) for (unsigned l = 0; l < BYTES / sizeof(TYPE); l++) result += (double)chain##c[l];
  EACH(ADD_UP)
  return result;
}

#endif
