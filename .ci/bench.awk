# Sums up the benchmarks of host/sandbox: medians over the runs of each, the
# ratios between ways that ran side by side, and the goals beside them.

/^Benchmark/ {
	name = $1
	sub(/^Benchmark/, "", name)
	sub(/-[0-9]+$/, "", name) # the number of processors
	for (i = 3; i < NF; i += 2) {
		key = name SUBSEP $(i + 1)
		taken[key, ++count[key]] = $i
	}
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

function us(name,    ns) {
	ns = median(name, "ns/op")
	return ns == "" ? "-" : sprintf("%.*f", ns < 100000 ? 2 : 0, ns / 1000)
}

function times(name, base,    ns) {
	ns = median(name, "ns/op")
	return ns == "" ? "-" : sprintf("%.*f", ns < 10 * base ? 2 : 0, ns / base)
}

function number(v, format) { return v == "" ? "-" : sprintf(format, v) }

# judged gives a value with its goal, if it was taken.
function judged(v, goal, format) {
	if (v == "" || v == "-")
		return "-"
	return sprintf(format, v) (v + 0 <= goal ? " (goal " : " (MISSED ") sprintf(format, goal) ")"
}

function head(title) { printf "\n%s\n", title }

END {
	languages = split("tinygo rust go", language, " ")
	goal["tinygo"] = 2; goal["rust"] = 2; goal["go"] = 25

	head("One invocation: 256 bytes in and out, in us")
	row = "  %-8s %8s %20s %20s %8s %10s %12s %12s %12s\n"
	printf row, "guest", "warm", "pristine", "and a host call", "fresh", "reference", "extism warm", "stoppable", "fresh"
	for (i = 1; i <= languages; i++) {
		g = language[i]
		at = "Echo/" g "/"
		printf row, g, us(at "warm"), judged(us(at "pristine"), goal[g], "%.2f"), judged(us(at "pristine-calling"), goal[g], "%.2f"),
			us(at "fresh"), us(at "reference"), us(at "extism-warm"), us(at "extism-stoppable"), us(at "extism-fresh")
	}
	for (i = 1; i <= languages; i++) {
		at = "Echo/" language[i] "/"
		if (pristine = median(at "pristine", "ns/op"))
			printf row, "ratios", times(at "warm", pristine), language[i] " = 1", times(at "pristine-calling", pristine),
				times(at "fresh", pristine), times(at "reference", pristine), times(at "extism-warm", pristine),
				times(at "extism-stoppable", pristine), times(at "extism-fresh", pristine)
	}

	head("The counter example's step, which reads and edits state, by its SDK: in us")
	printf "  %-8s %8s %8s %10s\n", "guest", "pristine", "fresh", "reference"
	for (k = 1; k <= split("tinygo go", counter, " "); k++) {
		at = "Invoke/" counter[k] "/"
		printf "  %-8s %8s %8s %10s\n", counter[k], us(at "reset"), us(at "image"), us(at "reference")
	}

	head("Allocations of a pristine invocation")
	for (i = 1; i <= languages; i++)
		printf "  %-8s %s, with a host call %s\n", language[i],
			judged(median("Echo/" language[i] "/pristine", "allocs/op"), 0, "%d"), number(median("Echo/" language[i] "/pristine-calling", "allocs/op"), "%d")

	head("Fuel: time of the rewritten module, in times that of the original; in brackets wazero's WithCloseOnContextDone")
	kernels = split("cbor hashmap loadsum matrix regexp sha256 sort strings", kernel, " ")
	printf "  %-8s %16s %16s %16s\n", "kernel", language[1], language[2], language[3]
	for (k = 1; k <= kernels; k++) {
		printf "  %-8s", kernel[k]
		for (i = 1; i <= languages; i++) {
			at = "Kernels/" language[i] "/" kernel[k]
			printf " %16s", number(median(at, "metered/plain"), "%.2f") number(median(at, "closable/plain"), " (%.1f)")
		}
		printf "\n"
	}
	printf "  median %s, worst %s\n", judged(median("Kernels/all", "metered/plain"), 1.08, "%.3f"), judged(median("Kernels/all", "worst-metered"), 1.4, "%.2f")

	head("Stopping 5 ms after the start: us late, median")
	for (k = 1; k <= split("loop recursion", kernel, " "); k++) {
		at = "Stop/" kernel[k] "/"
		printf "  %-10s metered %s, WithCloseOnContextDone %s\n", kernel[k], number(median(at "metered", "us-late"), "%.0f"), number(median(at "closable", "us-late"), "%.0f")
	}
	head("A garbage collection of the host while a guest runs: us, median")
	printf "  %-10s %s\n", "no guest", number(median("Collection/no_guest", "us/GC"), "%.0f")
	for (k = 1; k <= split("loop fill", kernel, " "); k++) {
		at = "Collection/" kernel[k] "/"
		printf "  %-10s metered %s, WithCloseOnContextDone %s\n", kernel[k], number(median(at "metered", "us/GC"), "%.0f"), number(median(at "closable", "us/GC"), "%.0f")
	}
}
