/* A bare loop round one attempt of a linearly implicit method with the I law, and CVODE beside it.
   `slope`, `jacobian`, `step`, N, K and ORDER are written in front of this by stiff_c.py. */

static double power(double q) { /* q^(-1 / (2 ORDER)) */
#if ORDER == 4
    return 1.0 / sqrt(sqrt(sqrt(q)));
#elif ORDER == 2
    return 1.0 / sqrt(sqrt(q));
#else
    return pow(q, -0.5 / ORDER);
#endif
}

int rosenbrock_runs(long count, double *ends, const double *params, long *counts, double t0, double t1, double rtol,
                    double atol, double first_step, long most) {
    for (long r = 0; r < count; r++) {
        double *u = ends + r * N, t = t0, next = first_step;
        const double *p = params + r * K;
        double f[N], jac[N * N], v[N], error[N];
        long accepted = 0, rejected = 0;
        int fresh = 0, grows = 1;
        for (long i = 0; i < most && t < t1; i++) {
            if (!fresh) {
                slope(t, u, p, f);
                jacobian(t, u, p, jac);
                fresh = 1;
            }
            double dt = next, q = 0.0;
            int last = t1 - t <= 1.01 * dt;
            if (last) dt = t1 - t;
            if (t + dt == t) break; /* the step is lost */
            step(t, dt, u, f, jac, p, v, error);
            for (int i = 0; i < N; i++) {
                double scaled = error[i] / (atol + rtol * fmax(fabs(u[i]), fabs(v[i])));
                q += scaled * scaled;
            }
            q /= N;
            double factor = q < 1e300 ? fmin(fmax(0.9 * power(fmax(q, 1e-24)), 0.2), 10.0) : 0.1;
            if (q <= 1.0) {
                t = last ? t1 : t + dt;
                for (int i = 0; i < N; i++) u[i] = v[i];
                next = dt * (grows ? factor : fmin(factor, 1.0));
                accepted++;
                fresh = 0;
                grows = 1;
            } else {
                next = dt * factor;
                rejected++;
                grows = 0;
            }
        }
        counts[2 * r] = accepted;
        counts[2 * r + 1] = rejected;
        if (!(t == t1)) return 1;
    }
    return 0;
}

#ifdef CVODE
typedef void *any;
int SUNContext_Create(int communicator, any *context);
int SUNContext_Free(any *context);
any N_VMake_Serial(long n, double *values, any context);
double *N_VGetArrayPointer(any vector);
void N_VDestroy(any vector);
any SUNDenseMatrix(long rows, long columns, any context);
double *SUNDenseMatrix_Data(any matrix);
void SUNMatDestroy(any matrix);
any SUNLinSol_Dense(any vector, any matrix, any context);
int SUNLinSolFree(any solver);
any CVodeCreate(int method, any context);
int CVodeInit(any memory, any function, double t, any vector);
int CVodeReInit(any memory, double t, any vector);
int CVodeSStolerances(any memory, double rtol, double atol);
int CVodeSetUserData(any memory, any data);
int CVodeSetLinearSolver(any memory, any solver, any matrix);
int CVodeSetJacFn(any memory, any function);
int CVodeSetMaxNumSteps(any memory, long most);
int CVodeSetStopTime(any memory, double t);
int CVodeGetNumSteps(any memory, long *count);
int CVodeGetNumErrTestFails(any memory, long *count);
int CVode(any memory, double t, any vector, double *reached, int task);
void CVodeFree(any *memory);

static int slope_for(double t, any u, any out, any data) {
    slope(t, N_VGetArrayPointer(u), *(double **)data, N_VGetArrayPointer(out));
    return 0;
}

static int jacobian_for(double t, any u, any f, any matrix, any data, any a, any b, any c) {
    jacobian(t, N_VGetArrayPointer(u), *(double **)data, SUNDenseMatrix_Data(matrix)); /* the rest is set to zero */
    return 0;
}

int cvode_runs(long count, double *ends, const double *params, long *counts, double t0, double t1, double rtol,
               double atol, double first_step, long most) {
    any context = 0, memory;
    double state[N];
    const double *p = params;
    int failed = 0;
    (void)first_step; /* its own choice */
    if (SUNContext_Create(0, &context)) return -1;
    any vector = N_VMake_Serial(N, state, context);
    any matrix = SUNDenseMatrix(N, N, context), solver = SUNLinSol_Dense(vector, matrix, context);
    for (int i = 0; i < N; i++) state[i] = ends[i];
    memory = CVodeCreate(2, context); /* BDF */
    CVodeInit(memory, slope_for, t0, vector);
    CVodeSStolerances(memory, rtol, atol);
    CVodeSetUserData(memory, &p);
    CVodeSetLinearSolver(memory, solver, matrix);
    CVodeSetJacFn(memory, jacobian_for);
    CVodeSetMaxNumSteps(memory, most);
    for (long r = 0; r < count; r++) {
        double reached;
        p = params + r * K;
        for (int i = 0; i < N; i++) state[i] = ends[r * N + i];
        CVodeReInit(memory, t0, vector);
        CVodeSetStopTime(memory, t1);
        int code = CVode(memory, t1, vector, &reached, 1);
        if (code < 0) failed = code;
        CVodeGetNumSteps(memory, counts + 2 * r);
        CVodeGetNumErrTestFails(memory, counts + 2 * r + 1);
        for (int i = 0; i < N; i++) ends[r * N + i] = state[i];
    }
    CVodeFree(&memory);
    SUNLinSolFree(solver);
    SUNMatDestroy(matrix);
    N_VDestroy(vector);
    SUNContext_Free(&context);
    return failed;
}
#endif
