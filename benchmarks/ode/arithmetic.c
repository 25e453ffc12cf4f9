/* What an operation costs when it waits for the one before, as in a scalar run, and when many are under way, as in lanes.
   `one_after_the_other` takes n operations on x[0], `side_by_side` n on each of the 64 numbers of x: eight vectors of
   eight, which gcc splits where the processor's are shorter. */
#include <math.h>

typedef double vec __attribute__((vector_size(64)));

#define OPERATION(name, value)                                                                                         \
    static inline double name(double a) { return value; }                                                              \
    void name##_one_after_the_other(long n, double *x) {                                                               \
        double a = x[0];                                                                                               \
        for (long i = 0; i < n; i++) a = name(a);                                                                      \
        x[0] = a;                                                                                                      \
    }                                                                                                                  \
    void name##_side_by_side(long n, double *x) {                                                                      \
        double all[64];                                                                                                \
        __builtin_memcpy(all, x, sizeof all);                                                                          \
        for (long i = 0; i < n; i++)                                                                                   \
            for (int k = 0; k < 64; k++) all[k] = name(all[k]);                                                        \
        __builtin_memcpy(x, all, sizeof all);                                                                          \
    }

OPERATION(multiply_add, 0.7 * a + 0.9)
OPERATION(divide, 1.7 / a)
OPERATION(root, sqrt(a + 1.3))
OPERATION(exponential, exp(-a))
