/* What compiled C reaches: scalar adaptive Runge-Kutta, one trajectory after another.

   The step-size control is odelab's (odelab/control.py): RMS of error / (atol + rtol max(|u|, |u_new|)), set-point 0.9,
   factors clipped to [0.2, 10], no growth after a rejection, history of accepted steps only, a last step stretched by up
   to 1 %. Everything is inlined into one loop per (problem, method, law), sizes and coefficients being constants. */
#include <math.h>

#define INLINE static inline __attribute__((always_inline))
#define MOST 8 /* components */

enum { VAN_DER_POL, LORENZ, ROBERTSON, HIRES, MORSE, TWO_SPRINGS };
enum { DOPRI5, RKF45 };
enum { LAW_I, LAW_PI42 };

typedef void rhs_function(double t, const double *restrict u, const double *restrict p, double *restrict du);
typedef struct { double rtol, atol, first; long most; } control; /* first <= 0: chosen automatically */
typedef struct { long accepted, rejected; } count;

INLINE void van_der_pol(double t, const double *restrict u, const double *restrict p, double *restrict du) {
    du[0] = u[1];
    du[1] = p[0] * (1.0 - u[0] * u[0]) * u[1] - u[0];
}

INLINE void lorenz(double t, const double *restrict u, const double *restrict p, double *restrict du) {
    du[0] = p[0] * (u[1] - u[0]);
    du[1] = u[0] * (p[1] - u[2]) - u[1];
    du[2] = u[0] * u[1] - p[2] * u[2];
}

INLINE void robertson(double t, const double *restrict u, const double *restrict p, double *restrict du) {
    double slow = p[0] * u[0], back = p[2] * u[1] * u[2], fast = p[1] * u[1] * u[1];
    du[0] = back - slow;
    du[1] = slow - back - fast;
    du[2] = fast;
}

INLINE void hires(double t, const double *restrict u, const double *restrict p, double *restrict du) {
    double bound = p[0] * u[5] * u[7];
    du[0] = -1.71 * u[0] + 0.43 * u[1] + 8.32 * u[2] + 0.0007;
    du[1] = 1.71 * u[0] - 8.75 * u[1];
    du[2] = -10.03 * u[2] + 0.43 * u[3] + 0.035 * u[4];
    du[3] = 8.32 * u[1] + 1.71 * u[2] - 1.12 * u[3];
    du[4] = -1.745 * u[4] + 0.43 * u[5] + 0.43 * u[6];
    du[5] = -bound + 0.69 * u[3] + 1.71 * u[4] - 0.43 * u[5] + 0.69 * u[6];
    du[6] = bound - 1.81 * u[6];
    du[7] = -bound + 1.81 * u[6];
}

/* A driven, damped Morse oscillator: exp of the state and sin of the time. p = (damping, drive, frequency) */
INLINE void morse(double t, const double *restrict u, const double *restrict p, double *restrict du) {
    double e = exp(-u[0]);
    du[0] = u[1];
    du[1] = 2.0 * (e * e - e) - p[0] * u[1] + p[1] * sin(p[2] * t);
}

/* Van der Pol with a spring of another stiffness on the left side: a branch. p = (mu, stiffness on the left) */
INLINE void two_springs(double t, const double *restrict u, const double *restrict p, double *restrict du) {
    double force = u[0] < 0.0 ? p[1] * u[0] : u[0];
    du[0] = u[1];
    du[1] = p[0] * (1.0 - u[0] * u[0]) * u[1] - force;
}

INLINE double largest(double x, double y) { return x > y ? x : y; }
INLINE double smallest(double x, double y) { return x < y ? x : y; }
INLINE double clipped(double factor) { return smallest(largest(factor, 0.2), 10.0); }

/* k[0] is known; fills k[1..6], the new state z and the error e. Dormand and Prince (1980). */
INLINE void dopri5_step(rhs_function rhs, int n, double t, double h, const double *u, const double *p,
                        double k[7][MOST], double *z, double *e) {
    for (int i = 0; i < n; i++) z[i] = u[i] + h * (0.2 * k[0][i]);
    rhs(t + 0.2 * h, z, p, k[1]);
    for (int i = 0; i < n; i++) z[i] = u[i] + h * (3. / 40 * k[0][i] + 9. / 40 * k[1][i]);
    rhs(t + 0.3 * h, z, p, k[2]);
    for (int i = 0; i < n; i++) z[i] = u[i] + h * (44. / 45 * k[0][i] - 56. / 15 * k[1][i] + 32. / 9 * k[2][i]);
    rhs(t + 0.8 * h, z, p, k[3]);
    for (int i = 0; i < n; i++)
        z[i] = u[i] + h * (19372. / 6561 * k[0][i] - 25360. / 2187 * k[1][i] + 64448. / 6561 * k[2][i]
                           - 212. / 729 * k[3][i]);
    rhs(t + 8. / 9 * h, z, p, k[4]);
    for (int i = 0; i < n; i++)
        z[i] = u[i] + h * (9017. / 3168 * k[0][i] - 355. / 33 * k[1][i] + 46732. / 5247 * k[2][i] + 49. / 176 * k[3][i]
                           - 5103. / 18656 * k[4][i]);
    rhs(t + h, z, p, k[5]);
    for (int i = 0; i < n; i++)
        z[i] = u[i] + h * (35. / 384 * k[0][i] + 500. / 1113 * k[2][i] + 125. / 192 * k[3][i] - 2187. / 6784 * k[4][i]
                           + 11. / 84 * k[5][i]);
    rhs(t + h, z, p, k[6]);
    for (int i = 0; i < n; i++)
        e[i] = h * (71. / 57600 * k[0][i] - 71. / 16695 * k[2][i] + 71. / 1920 * k[3][i] - 17253. / 339200 * k[4][i]
                    + 22. / 525 * k[5][i] - 1. / 40 * k[6][i]);
}

/* k[0] is known; fills k[1..5], the fifth-order state z and the error e. Fehlberg (1969). */
INLINE void rkf45_step(rhs_function rhs, int n, double t, double h, const double *u, const double *p,
                       double k[7][MOST], double *z, double *e) {
    for (int i = 0; i < n; i++) z[i] = u[i] + h * (0.25 * k[0][i]);
    rhs(t + 0.25 * h, z, p, k[1]);
    for (int i = 0; i < n; i++) z[i] = u[i] + h * (3. / 32 * k[0][i] + 9. / 32 * k[1][i]);
    rhs(t + 0.375 * h, z, p, k[2]);
    for (int i = 0; i < n; i++)
        z[i] = u[i] + h * (1932. / 2197 * k[0][i] - 7200. / 2197 * k[1][i] + 7296. / 2197 * k[2][i]);
    rhs(t + 12. / 13 * h, z, p, k[3]);
    for (int i = 0; i < n; i++)
        z[i] = u[i] + h * (439. / 216 * k[0][i] - 8.0 * k[1][i] + 3680. / 513 * k[2][i] - 845. / 4104 * k[3][i]);
    rhs(t + h, z, p, k[4]);
    for (int i = 0; i < n; i++)
        z[i] = u[i] + h * (-8. / 27 * k[0][i] + 2.0 * k[1][i] - 3544. / 2565 * k[2][i] + 1859. / 4104 * k[3][i]
                           - 11. / 40 * k[4][i]);
    rhs(t + 0.5 * h, z, p, k[5]);
    for (int i = 0; i < n; i++) {
        z[i] = u[i] + h * (16. / 135 * k[0][i] + 6656. / 12825 * k[2][i] + 28561. / 56430 * k[3][i] - 9. / 50 * k[4][i]
                           + 2. / 55 * k[5][i]);
        e[i] = h * (1. / 360 * k[0][i] - 128. / 4275 * k[2][i] - 2197. / 75240 * k[3][i] + 1. / 50 * k[4][i]
                    + 2. / 55 * k[5][i]);
    }
}

/* Hairer, Norsett and Wanner, Solving ODEs I, II.4; error order 5. */
INLINE double first_step(rhs_function rhs, int n, double t, double t1, const double *u, const double *p,
                         const double *slope, control c) {
    double ahead[MOST], bent[MOST], d0 = 0.0, d1 = 0.0, d2 = 0.0, span = t1 - t;
    for (int i = 0; i < n; i++) {
        double scale = c.atol + c.rtol * fabs(u[i]);
        d0 += u[i] * u[i] / (scale * scale);
        d1 += slope[i] * slope[i] / (scale * scale);
    }
    d0 = sqrt(d0 / n), d1 = sqrt(d1 / n);
    double trial = smallest(d0 > 1e-5 && d1 > 1e-5 ? 0.01 * d0 / d1 : 1e-6, span);
    for (int i = 0; i < n; i++) ahead[i] = u[i] + trial * slope[i];
    rhs(t + trial, ahead, p, bent);
    for (int i = 0; i < n; i++) {
        double bend = (bent[i] - slope[i]) / (c.atol + c.rtol * fabs(u[i]));
        d2 += bend * bend;
    }
    d2 = largest(sqrt(d2 / n) / trial, d1);
    double better = d2 > 1e-15 ? pow(0.01 / d2, 0.2) : largest(1e-6, 1e-3 * trial);
    return smallest(smallest(100.0 * trial, better), span);
}

INLINE count run(rhs_function rhs, int n, int method, int law, double t, double t1, double *u, const double *p,
                 control c) {
    double k[7][MOST], z[MOST], e[MOST], last = 1.0; /* last: the power of e_{n-1} that PI42 multiplies by */
    count done = {0, 0};
    int after_rejection = 0;
    rhs(t, u, p, k[0]);
    double h = c.first > 0.0 ? c.first : first_step(rhs, n, t, t1, u, p, k[0], c);
    while (t < t1 && done.accepted + done.rejected < c.most) {
        int landing = t1 - t <= 1.01 * h;
        if (landing) h = t1 - t;
        if (method == DOPRI5) dopri5_step(rhs, n, t, h, u, p, k, z, e);
        else rkf45_step(rhs, n, t, h, u, p, k, z, e);
        double square = 0.0;
        for (int i = 0; i < n; i++) {
            double scaled = e[i] / (c.atol + c.rtol * largest(fabs(u[i]), fabs(z[i])));
            square += scaled * scaled;
        }
        square /= n;
        if (!(square <= 1.0)) {
            done.rejected++;
            after_rejection = 1;
            h *= square < 1e300 ? clipped(0.9 * pow(square, -0.1)) : 0.1;
            continue;
        }
        square = largest(square, 1e-24);
        double factor;
        if (law == LAW_I) factor = clipped(0.9 * pow(square, -0.1));
        else { /* e = ratio / theta^5 to the powers -3/25 (now) and 1/25 (before) */
            double power = pow(square * (1.0 / 0.3486784401), -0.02);
            double cube = power * power * power;
            factor = clipped(cube * last);
            last = 1.0 / power;
        }
        if (after_rejection) factor = smallest(factor, 1.0);
        after_rejection = 0;
        done.accepted++;
        t = landing ? t1 : t + h;
        for (int i = 0; i < n; i++) u[i] = z[i];
        if (method == DOPRI5) for (int i = 0; i < n; i++) k[0][i] = k[6][i];
        else if (!landing) rhs(t, u, p, k[0]);
        h *= factor;
    }
    return done;
}

#define LAWS(rhs, n, method)                                                         \
    return law == LAW_I ? run(rhs, n, method, LAW_I, t, t1, u, p, c) : run(rhs, n, method, LAW_PI42, t, t1, u, p, c)
#define METHODS(problem, rhs, n)                                                     \
    case problem:                                                                    \
        if (method == DOPRI5) { LAWS(rhs, n, DOPRI5); } else { LAWS(rhs, n, RKF45); }

static count dispatch(int problem, int method, int law, double t, double t1, double *u, const double *p, control c) {
    switch (problem) {
        METHODS(VAN_DER_POL, van_der_pol, 2)
        METHODS(LORENZ, lorenz, 3)
        METHODS(ROBERTSON, robertson, 3)
        METHODS(HIRES, hires, 8)
        METHODS(MORSE, morse, 2)
        METHODS(TWO_SPRINGS, two_springs, 2)
    }
    return (count){0, 0};
}

/* `runs` trajectories one after another: u (runs, n) holds the initial states and then the end states, p is (runs, m),
   counts (runs, 2) receives accepted and rejected steps. One run is an ensemble of one. */
void limit_ensemble(int problem, int method, int law, long runs, int n, int m, double t0, double t1, double *u,
                    const double *p, double rtol, double atol, double first, long most, long *counts) {
    control c = {rtol, atol, first, most};
    for (long i = 0; i < runs; i++) {
        count done = dispatch(problem, method, law, t0, t1, u + i * n, p + i * m, c);
        counts[2 * i] = done.accepted;
        counts[2 * i + 1] = done.rejected;
    }
}
