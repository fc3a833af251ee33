// Built by
//
//	clang --target=wasm32 -gdwarf-4 -ffile-prefix-map=$PWD=/src -Os -c divide.c -o divide.o
//	wasm-ld --no-entry --export-memory --export=divide --export=twice divide.o -o dwarf4.wasm
//
// and the same with 5 for 4.

static volatile int zero;

__attribute__((noinline)) int divide(int n) {
  int total = n;
  for (int i = 0; i < 3; i++)
    total += i * zero;
  return total / zero;
}

static int left_out(int n) { return n; }

int twice(int n) {
  return divide(n) +
         divide(n + 1);
}
