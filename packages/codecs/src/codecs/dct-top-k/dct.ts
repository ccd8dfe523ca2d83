/**
 * The orthonormal DCT-II of c numbers in fp64, with the same bits everywhere: no library's cosine, and each sum in one
 * order.
 *
 *   X[j] = f[j] Σ x[i] cos(π (2i+1) j / 2c)              f[0] = √(1/c), f[j] = √(2/c)
 *
 * B. G. Lee 1984, "A new algorithm to compute the discrete cosine transform": while c is even, a transform of c is two
 * of c/2.
 */

/** cos(π p / 2q) for 0 ≤ p ≤ q: Taylor's series, of the cosine or of the sine, whichever is below π/4. */
export function cosine(p: number, q: number): number {
  const asSine = 2 * p > q;
  const x = (Math.PI / 2) * ((asSine ? q - p : p) / q);
  const z = x * x;
  let sum = 0;
  for (const term of asSine ? SINE : COSINE) sum = sum * z + term;
  return asSine ? sum * z * x + x : sum * z + 1;
}

const factorial = (n: number): number => (n < 2 ? 1 : n * factorial(n - 1));
const term = (n: number): number => (n % 4 > 1 ? -1 : 1) / factorial(n);
const COSINE = /* @__PURE__ */ [16, 14, 12, 10, 8, 6, 4, 2].map(term);
const SINE = /* @__PURE__ */ [17, 15, 13, 11, 9, 7, 5, 3].map(term);

/** The coefficients of x, by Lee's steps. */
export function dct(x: Float64Array): Float64Array {
  return forward(x).map((value, j) => value * factor(x.length, j));
}

/** x from its coefficients: the transpose, the same steps backwards. */
export function inverseDct(X: Float64Array): Float64Array {
  return backward(X.map((value, j) => value * factor(X.length, j)));
}

const factor = (c: number, j: number): number => Math.sqrt((j === 0 ? 1 : 2) / c);

function forward(x: Float64Array): Float64Array {
  const c = x.length;
  if (c === 1) return x;
  if (c % 2 === 1) return x.map((_, j) => sum(x, (i) => (2 * i + 1) * j));
  const half = c / 2;
  const left = x.subarray(0, half);
  const right = x.slice(half).reverse();
  const A = forward(left.map((value, i) => value + right[i]!));
  const B = forward(left.map((value, i) => (value - right[i]!) * secant(i, c)));
  return x.map((_, k) => {
    const j = k >> 1;
    if (k % 2 === 0) return A[j]!;
    return j + 1 < half ? B[j]! + B[j + 1]! : B[j]!;
  });
}

function backward(X: Float64Array): Float64Array {
  const c = X.length;
  if (c === 1) return X;
  if (c % 2 === 1) return X.map((_, i) => sum(X, (j) => (2 * i + 1) * j));
  const half = c / 2;
  const A = backward(X.slice(0, half).map((_, j) => X[2 * j]!));
  const B = backward(X.slice(0, half).map((_, j) => (j > 0 ? X[2 * j + 1]! + X[2 * j - 1]! : X[1]!)));
  return X.map((_, k) => {
    const i = k < half ? k : c - 1 - k;
    const odd = B[i]! * secant(i, c);
    return k < half ? A[i]! + odd : A[i]! - odd;
  });
}

/** Σ x[s] cos(π angle(s) / 2c), in order. */
function sum(x: Float64Array, angle: (s: number) => number): number {
  const c = x.length;
  const cosines = quarter(c);
  let total = 0;
  for (let s = 0; s < c; s++) {
    const turn = angle(s) % (4 * c);
    const t = Math.min(turn, 4 * c - turn); // 0 … 2c
    total += x[s]! * (t > c ? -cosines[2 * c - t]! : cosines[t]!);
  }
  return total;
}

const secant = (i: number, c: number): number => 1 / (2 * quarter(c)[2 * i + 1]!);

/** cos(π t / 2c) for t = 0 … c, computed once. */
function quarter(c: number): Float64Array {
  let cosines = quarters.get(c);
  if (!cosines) {
    cosines = Float64Array.from({ length: c + 1 }, (_, t) => cosine(t, c));
    quarters.set(c, cosines);
  }
  return cosines;
}

const quarters = new Map<number, Float64Array>();
