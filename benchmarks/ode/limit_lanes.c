/* What hand-vectorised C reaches: 10,000 van der Pol oscillators, LANES at a time, each lane with its own time and step
   and refilled from the queue when its trajectory ends. DOPRI5, I law, the control of limit.c; the fifth root is a bit
   trick with two Newton rounds (worst relative error 5e-3: it moves the step sizes, not the error per step). */
#ifndef LANES
#define LANES 16 /* clang keeps two AVX-512 registers in flight; gcc is faster with 8 */
#endif

typedef double vec __attribute__((vector_size(LANES * 8)));
typedef long mask __attribute__((vector_size(LANES * 8)));
#define INLINE static inline __attribute__((always_inline))

INLINE vec choose(mask m, vec a, vec b) { return (vec)((m & (mask)a) | (~m & (mask)b)); }
INLINE vec magnitude(vec a) { return (vec)((mask)a & 0x7fffffffffffffffL); }
INLINE vec largest(vec a, vec b) { return choose(a > b, a, b); }
INLINE vec smallest(vec a, vec b) { return choose(a < b, a, b); }
INLINE long any(mask m) {
    long found = 0;
    for (int i = 0; i < LANES; i++) found |= m[i];
    return found;
}

/* square^(-1/10) for square in [1e-24, 1e6] */
INLINE vec tenth_root_of_inverse(vec square) {
    vec bits = __builtin_convertvector((mask)square, vec) * -0.1 + 1.1 * 4607182418800017408.0;
    vec x = (vec)__builtin_convertvector(bits, mask);
    for (int round = 0; round < 2; round++) {
        vec x2 = x * x, x4 = x2 * x2, x8 = x4 * x4;
        x = x * (11.0 - square * (x8 * x2)) * 0.1;
    }
    return x;
}

#define RHS(x, v, dx, dv) dx = v, dv = mu * (1.0 - (x) * (x)) * (v) - (x)

/* u (runs, 2) holds the initial states and then the end states; p (runs, 1) is mu; counts (runs, 2) as in limit.c. */
void limit_lanes(long runs, double t0, double t1, double *u, const double *p, double rtol, double atol, double first,
                 long *counts) {
    const vec zero = {0}, one = zero + 1.0, end = zero + t1;
    vec t = end, h = one, mu = one, x = one, v = zero, k1x = zero, k1v = zero;
    vec k2x, k2v, k3x, k3v, k4x, k4v, k5x, k5v, k6x, k6v, k7x, k7v, zx, zv;
    mask held = {0}, accepted = {0}, rejected = {0}, run;
    long next = 0, live = 0;
    for (int i = 0; i < LANES; i++) run[i] = -1;
    for (;;) {
        mask active = t < end;
        if (any(~active)) {
            live = 0;
            for (int i = 0; i < LANES; i++) {
                if (active[i]) { live++; continue; }
                if (run[i] >= 0) {
                    u[2 * run[i]] = x[i], u[2 * run[i] + 1] = v[i];
                    counts[2 * run[i]] = accepted[i], counts[2 * run[i] + 1] = rejected[i];
                    run[i] = -1;
                }
                if (next == runs) continue;
                mu[i] = p[next], x[i] = u[2 * next], v[i] = u[2 * next + 1];
                t[i] = t0, h[i] = first, held[i] = 0, accepted[i] = 0, rejected[i] = 0;
                k1x[i] = v[i], k1v[i] = mu[i] * (1.0 - x[i] * x[i]) * v[i] - x[i];
                run[i] = next++;
                live++;
            }
            if (!live) return;
            active = t < end;
        }
        vec remaining = end - t;
        mask landing = remaining <= 1.01 * h;
        vec dt = choose(landing, remaining, h);
        zx = x + dt * (0.2 * k1x), zv = v + dt * (0.2 * k1v);
        RHS(zx, zv, k2x, k2v);
        zx = x + dt * (3. / 40 * k1x + 9. / 40 * k2x), zv = v + dt * (3. / 40 * k1v + 9. / 40 * k2v);
        RHS(zx, zv, k3x, k3v);
        zx = x + dt * (44. / 45 * k1x - 56. / 15 * k2x + 32. / 9 * k3x);
        zv = v + dt * (44. / 45 * k1v - 56. / 15 * k2v + 32. / 9 * k3v);
        RHS(zx, zv, k4x, k4v);
        zx = x + dt * (19372. / 6561 * k1x - 25360. / 2187 * k2x + 64448. / 6561 * k3x - 212. / 729 * k4x);
        zv = v + dt * (19372. / 6561 * k1v - 25360. / 2187 * k2v + 64448. / 6561 * k3v - 212. / 729 * k4v);
        RHS(zx, zv, k5x, k5v);
        zx = x + dt * (9017. / 3168 * k1x - 355. / 33 * k2x + 46732. / 5247 * k3x + 49. / 176 * k4x
                       - 5103. / 18656 * k5x);
        zv = v + dt * (9017. / 3168 * k1v - 355. / 33 * k2v + 46732. / 5247 * k3v + 49. / 176 * k4v
                       - 5103. / 18656 * k5v);
        RHS(zx, zv, k6x, k6v);
        zx = x + dt * (35. / 384 * k1x + 500. / 1113 * k3x + 125. / 192 * k4x - 2187. / 6784 * k5x + 11. / 84 * k6x);
        zv = v + dt * (35. / 384 * k1v + 500. / 1113 * k3v + 125. / 192 * k4v - 2187. / 6784 * k5v + 11. / 84 * k6v);
        RHS(zx, zv, k7x, k7v);
        vec ex = dt * (71. / 57600 * k1x - 71. / 16695 * k3x + 71. / 1920 * k4x - 17253. / 339200 * k5x
                       + 22. / 525 * k6x - 1. / 40 * k7x) / (atol + rtol * largest(magnitude(x), magnitude(zx)));
        vec ev = dt * (71. / 57600 * k1v - 71. / 16695 * k3v + 71. / 1920 * k4v - 17253. / 339200 * k5v
                       + 22. / 525 * k6v - 1. / 40 * k7v) / (atol + rtol * largest(magnitude(v), magnitude(zv)));
        vec square = smallest(largest(0.5 * (ex * ex + ev * ev), zero + 1e-24), zero + 1e6); /* NaN is rejected */
        mask accept = (square <= 1.0) & active;
        vec factor = smallest(largest(0.9 * tenth_root_of_inverse(square), zero + 0.2), zero + 10.0);
        factor = choose(held, smallest(factor, one), factor);
        t = choose(accept, choose(landing, end, t + dt), t);
        x = choose(accept, zx, x), v = choose(accept, zv, v);
        k1x = choose(accept, k7x, k1x), k1v = choose(accept, k7v, k1v);
        h = choose(active, dt * factor, h);
        held = ~accept;
        accepted -= accept;
        rejected -= active & ~accept;
    }
}
