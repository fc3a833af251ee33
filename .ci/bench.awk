# Sums up the benchmarks of host/sandbox: medians over the runs of each, the
# ratios between ways that ran side by side, and the goals beside them.

/^Benchmark/ {
	name = $1
	sub(/^Benchmark/, "", name)
	sub(/-[0-9]+$/, "", name) # the number of processors
	names = names "\n" name
	for (i = 3; i < NF; i += 2)
		add(name, $(i + 1), $i)
}

function add(name, unit, v,    key) {
	key = name SUBSEP unit
	taken[key, ++count[key]] = v
}

function worst(name, unit,    key, i, v) {
	key = name SUBSEP unit
	for (i = 1; i <= count[key]; i++)
		if (taken[key, i] > v + 0)
			v = taken[key, i]
	return v
}

# median gives that of a measure, or nothing if it was not taken.
function median(name, unit,    key, n, i, j, v, list) {
	key = name SUBSEP unit
	n = count[key]
	for (i = 1; i <= n; i++) {
		v = taken[key, i] + 0
		for (j = i - 1; j > 0 && list[j] > v; j--)
			list[j + 1] = list[j]
		list[j + 1] = v
	}
	return n ? list[int((n + 1) / 2)] : ""
}

function us(name) { return short(median(name, "median-us")) }

# short gives a number with as many digits as can be told from noise.
function short(v) { return v == "" ? "-" : sprintf("%.*f", v < 10 ? 2 : v < 100 ? 1 : 0, v) }

function times(name, base,    v) {
	v = median(name, "median-us")
	return short(v == "" ? v : v / base)
}

function number(v, format) { return v == "" ? "-" : sprintf(format, v) }

# judged gives a value with its goal, if it was taken.
function judged(v, goal, format) {
	if (v == "" || v == "-")
		return "-"
	return sprintf(format, v) (v + 0 <= goal ? " (goal " : " (MISSED ") sprintf(format, goal) ")"
}

function invocations(    row, i, g, at, pristine) {
	title("One invocation: 256 bytes in and out, in us")
	row = "  %-8s %8s %20s %20s %8s %10s %12s %12s %12s\n"
	printf row, "guest", "warm", "pristine", "and a host call", "fresh", "reference", "extism warm", "stoppable", "fresh"
	for (i = 1; i <= languages; i++) {
		g = language[i]
		at = "Echo/" g "/"
		printf row, g, us(at "warm"), judged(median(at "pristine", "median-us"), goal[g], "%.2f"),
			judged(median(at "pristine-calling", "median-us"), goal[g], "%.2f"), us(at "fresh"), us(at "reference"),
			us(at "extism-warm"), us(at "extism-stoppable"), us(at "extism-fresh")
	}
	for (i = 1; i <= languages; i++) {
		at = "Echo/" language[i] "/"
		if (pristine = median(at "pristine", "median-us"))
			printf row, "ratios", times(at "warm", pristine), language[i] " = 1", times(at "pristine-calling", pristine),
				times(at "fresh", pristine), times(at "reference", pristine), times(at "extism-warm", pristine),
				times(at "extism-stoppable", pristine), times(at "extism-fresh", pristine)
	}
	title("Allocations of a pristine invocation")
	for (i = 1; i <= languages; i++)
		printf "  %-8s %s, with a host call %s\n", language[i], judged(median("Echo/" language[i] "/pristine", "allocs/op"), 0, "%d"),
			number(median("Echo/" language[i] "/pristine-calling", "allocs/op"), "%d")
}

function counters(    list, k, at) {
	title("The counter example's step, which reads and edits state, by its SDK: in us")
	printf "  %-8s %8s %8s %10s\n", "guest", "pristine", "fresh", "reference"
	for (k = 1; k <= split("tinygo go", list, " "); k++) {
		at = "Invoke/" list[k] "/"
		printf "  %-8s %8s %8s %10s\n", list[k], us(at "reset"), us(at "image"), us(at "reference")
	}
}

function fuel(    list, k, i, at, v) {
	title("Fuel: time of the rewritten module, in times that of the original; in brackets wazero's WithCloseOnContextDone")
	printf "  %-8s %16s %16s %16s\n", "kernel", language[1], language[2], language[3]
	for (k = 1; k <= split("cbor hashmap loadsum matrix regexp sha256 sort strings", list, " "); k++) {
		printf "  %-8s", list[k]
		for (i = 1; i <= languages; i++) {
			at = "Kernels/" language[i] "/" list[k]
			if ((v = median(at, "metered/plain")) != "")
				add("all kernels", "metered/plain", v)
			printf " %16s", number(v, "%.2f") number(median(at, "closable/plain"), " (%.1f)")
		}
		printf "\n"
	}
	printf "  median %s, worst %s\n", judged(median("all kernels", "metered/plain"), 1.08, "%.3f"),
		judged(worst("all kernels", "metered/plain"), 1.4, "%.2f")
}

# sideBySide prints the metered and the closable way of some guests.
function sideBySide(benchmark, guests, unit,    list, k, at) {
	for (k = 1; k <= split(guests, list, " "); k++) {
		at = benchmark "/" list[k] "/"
		printf "  %-10s metered %s, WithCloseOnContextDone %s\n", list[k], number(median(at "metered", unit), "%.0f"),
			number(median(at "closable", unit), "%.0f")
	}
}

function title(text) { printf "\n%s\n", text }

function has(prefix) { return index(names, "\n" prefix "/") > 0 }

END {
	languages = split("tinygo rust go", language, " ")
	goal["tinygo"] = goal["rust"] = 2
	goal["go"] = 25
	if (has("Echo"))
		invocations()
	if (has("Invoke"))
		counters()
	if (has("Kernels"))
		fuel()
	if (has("Stop")) {
		title("A deadline 5 ms after the start: us until the guest has stopped, median")
		sideBySide("Stop", "loop recursion", "us-late")
	}
	if (has("Collection")) {
		title("A garbage collection of the host while a guest runs: us, median")
		printf "  %-10s %s\n", "no guest", number(median("Collection/no_guest", "us/GC"), "%.0f")
		sideBySide("Collection", "loop fill", "us/GC")
	}
}
