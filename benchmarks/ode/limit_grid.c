/* What compiled C reaches on a large system: adaptive DOPRI5, I law, on the 1-D Brusselator with diffusion, n grid points
   and 2n components, all x first, then all y (odelab/problems/method_of_lines.py). Every loop vectorises; the control is
   that of limit.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void interior(int n, double spread, double a, double b, const double *restrict x, const double *restrict y,
                     double *restrict dx, double *restrict dy) {
#pragma omp simd
    for (int i = 1; i < n - 1; i++) {
        double made = x[i] * x[i] * y[i];
        dx[i] = a + made - (b + 1.0) * x[i] + spread * (x[i - 1] - 2.0 * x[i] + x[i + 1]);
        dy[i] = b * x[i] - made + spread * (y[i - 1] - 2.0 * y[i] + y[i + 1]);
    }
}

static void slope(int n, const double *p, const double *u, double *du) {
    const double spread = p[0] * (n + 1.0) * (n + 1.0), a = p[1], b = p[2], *x = u, *y = u + n;
    interior(n, spread, a, b, x, y, du, du + n);
    for (int i = 0; i < n; i += n - 1) { /* beyond the ends are the boundary values 1 and 3 */
        double made = x[i] * x[i] * y[i];
        double beside_x = i ? x[i - 1] + 1.0 : 1.0 + x[1], beside_y = i ? y[i - 1] + 3.0 : 3.0 + y[1];
        du[i] = a + made - (b + 1.0) * x[i] + spread * (beside_x - 2.0 * x[i]);
        du[n + i] = b * x[i] - made + spread * (beside_y - 2.0 * y[i]);
    }
}

static double largest(double x, double y) { return x > y ? x : y; }
static double smallest(double x, double y) { return x < y ? x : y; }
static double clipped(double factor) { return smallest(largest(factor, 0.2), 10.0); }

#define COMBINE(target, sum)                                                 \
    {                                                                        \
        _Pragma("omp simd") for (int i = 0; i < size; i++) target[i] = sum; \
    }

/* u (2n) holds the initial state and then the end state; `first` is the first step; returns 0, or 1 without memory. */
int limit_grid(int n, double t, double t1, double *restrict u, const double *p, double rtol, double atol, double first,
               long most, long *counts) {
    const int size = 2 * n;
    double *memory = malloc(sizeof(double) * 8 * (size + 8)), *row[8], h = first;
    int held = 0;
    if (!memory) return 1;
    /* rows a little more than a page apart, so that they do not meet in the same cache sets */
    for (int j = 0; j < 8; j++) row[j] = memory + (size_t)j * (size + 8);
    double *restrict k1 = row[0], *restrict k2 = row[1], *restrict k3 = row[2], *restrict k4 = row[3];
    double *restrict k5 = row[4], *restrict k6 = row[5], *restrict k7 = row[6], *restrict z = row[7];
    counts[0] = counts[1] = 0;
    slope(n, p, u, k1);
    while (t < t1 && counts[0] + counts[1] < most) {
        int landing = t1 - t <= 1.01 * h;
        if (landing) h = t1 - t;
        COMBINE(z, u[i] + h * (0.2 * k1[i]))
        slope(n, p, z, k2);
        COMBINE(z, u[i] + h * (3. / 40 * k1[i] + 9. / 40 * k2[i]))
        slope(n, p, z, k3);
        COMBINE(z, u[i] + h * (44. / 45 * k1[i] - 56. / 15 * k2[i] + 32. / 9 * k3[i]))
        slope(n, p, z, k4);
        COMBINE(z, u[i] + h * (19372. / 6561 * k1[i] - 25360. / 2187 * k2[i] + 64448. / 6561 * k3[i] - 212. / 729 * k4[i]))
        slope(n, p, z, k5);
        COMBINE(z, u[i] + h * (9017. / 3168 * k1[i] - 355. / 33 * k2[i] + 46732. / 5247 * k3[i] + 49. / 176 * k4[i]
                               - 5103. / 18656 * k5[i]))
        slope(n, p, z, k6);
        COMBINE(z, u[i] + h * (35. / 384 * k1[i] + 500. / 1113 * k3[i] + 125. / 192 * k4[i] - 2187. / 6784 * k5[i]
                               + 11. / 84 * k6[i]))
        slope(n, p, z, k7);
        double square = 0.0;
#pragma omp simd reduction(+ : square)
        for (int i = 0; i < size; i++) {
            double e = h * (71. / 57600 * k1[i] - 71. / 16695 * k3[i] + 71. / 1920 * k4[i] - 17253. / 339200 * k5[i]
                            + 22. / 525 * k6[i] - 1. / 40 * k7[i]);
            double scaled = e / (atol + rtol * largest(fabs(u[i]), fabs(z[i])));
            square += scaled * scaled;
        }
        square /= size;
        if (!(square <= 1.0)) {
            counts[1]++;
            held = 1;
            h *= square < 1e300 ? clipped(0.9 * pow(square, -0.1)) : 0.1;
            continue;
        }
        double factor = clipped(0.9 * pow(largest(square, 1e-24), -0.1));
        if (held) factor = smallest(factor, 1.0);
        held = 0;
        counts[0]++;
        t = landing ? t1 : t + h;
        memcpy(u, z, sizeof(double) * size);
        double *exchange = k1;
        k1 = k7, k7 = exchange;
        h *= factor;
    }
    free(memory);
    return 0;
}
