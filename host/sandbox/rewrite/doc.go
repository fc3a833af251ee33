// Package rewrite makes a metered WebAssembly 2.0 module of any other: one that
// counts its own fuel and the bytes of its own frames, and has nothing in it that
// runs for long between two looks at either. The host of such a module can stop
// it, share a processor out fairly, bill it, and replay it, without asking the
// engine for anything. On the way, memory and tables get their maxima, mutable
// globals are exported so that an image can restore them, and data segments and
// the start function can be taken out.
//
// The package knows bytes. It must not know an engine, a host's budgets, which
// imports are allowed, nor any other package of this program. It reads valid
// modules: the caller validates the original, before.
//
// # Invariants
//
// For a module that has been rewritten, on every way that control can take:
//
//  1. What was charged is never less than what the instructions cost by the table
//     below. Fuel is taken before it is used.
//  2. Each loop header and each function entry begins with a charge. A check
//     follows at each loop header, and at each entry but those of 4. In a region, a
//     turn is charged to the purse, and meets a check when that lacks the units: at
//     least whenever a purse of 1,000 units is spent.
//  3. At most MaxCharge units are charged between two checks, so that two refuels
//     are at most Slice + MaxCharge = 50,000 units apart, if the host puts at most
//     Slice into the fuel. By the time of one check that is:
//     at most 2,200 units that a callee left unchecked at its end, of which 1,000
//     are those of a purse,
//     at most 1,200 that its caller adds without a check,
//     at most 400 of an entry without a check,
//     and one charge, of 5,200 at most, or one of 500 and what fills a purse.
//     Counted, by a host whose slices are empty: 4,096 while the example plugins
//     initialize themselves, 6,945 in code that is made for it (TestWorst).
//  4. An entry has no check if each way from there meets one before it calls or
//     ends, or if the function is a small leaf: at most 100 units and 300 bytes, no
//     calls, loops or checks, and nothing but direct calls reaches it (no export,
//     no element, no reference, not the start). Callers count a leaf's units among
//     their own unchecked ones. Each turn of a loop and each level of a recursion
//     meets a check nevertheless: a loop at its header, a recursion because a
//     leaf calls nothing and any other function checks before it calls.
//  5. A function that charges without a check after a call checks at its end: the
//     ends of many nested calls may follow each other.
//  6. A function that calls anything but small leaves and helpers takes its frame
//     off the depth before its code begins, and gives it back at its only end. It
//     calls overflow as soon as the depth is below zero.
//  7. One bulk instruction moves at most Piece bytes; entries of tables count 8.
//  8. Nothing but the code of the meter, helpers included, reads or writes fuel,
//     depth and purses, and nothing but it calls refuel and overflow.
//  9. Results, traps, memory and globals are those of the original, as long as
//     neither refuel nor overflow ends it.
//
// Verify proves all but 9 by structure, of each module anew; package spectest
// shows 9 by comparison.
//
// # Code of the meter
//
//	charge   global.get fuel, i64.const units, i64.sub, global.set fuel
//	check    global.get fuel, i64.const 0, i64.ge_s, if, else, call refuel, end
//	entry    charge, check; global.get depth, i32.const frame, i32.sub,
//	         global.set depth, global.get depth, i32.const 0, i32.lt_s,
//	         if, call overflow, unreachable, end
//	end      global.get depth, i32.const frame, i32.add, global.set depth; check
//	fill     local.get purse, i64.const units, i64.lt_s, if,
//	         global.get fuel, local.get purse, i64.add, i64.const 1000, i64.sub,
//	         global.set fuel, check, i64.const 1000, local.set purse, end
//	spend    local.get purse, i64.const units, i64.sub, local.set purse
//	refund   global.get fuel, local.get purse, i64.add, global.set fuel
//
// The imports refuel and overflow follow those of the original, so its own
// functions move up by two; fuel and depth are the last globals, helpers the last
// functions. If a function of 6 leaves from within, its body stands in a block
// that takes the function's place as a label, and return becomes a branch to it.
// After a trap, the depth is what it was at the trap: the host sets it.
//
// # What code costs
//
// In quarters of a unit; a unit is about a third of a nanosecond of compiled code.
//
//	 0  block, loop, else, end, nop, drop, unreachable, local.get, constants
//	 1  integer arithmetic, comparisons, local.set and tee, globals, select, if, br,
//	    br_if, return, references, constants of vectors
//	 2  floating-point arithmetic and conversions, vector arithmetic
//	 4  loads and stores
//	 6  br_table, table.get and set, truncations, vector instructions that take
//	    several of the machine's
//	12  call, and 1 for each parameter and result; call_indirect: 20 and those
//	20  division, remainder, square root; twice that of vectors
//	 6  entry of a function, and 1 for each local, 8,000 at most
//	40  bulk instructions, and 4 for each 16 bytes that they move. memory.copy and
//	    memory.fill cost 104 where they stand, and by their length above 256
//	80  data.drop, elem.drop
//	400 memory.grow
//
// # Where charges go
//
// One charge for each way through straight code would be exact, and slow. The
// placement goes through a function from its end and keeps how much the cheapest
// and the dearest way from each point to the next charge need. A charge takes what
// the dearest needs. Where that is more than 8 units above twice what the cheapest
// needs, the dear way gets a charge for the difference where it begins: behind the
// if, the else or the end that only it passes. Ways that trap, or that leave a loop
// by a branch, do not count as cheap ones. Go compiles a function to a loop around
// a br_table, of which each arm is such a way.
//
// # Regions
//
// A charge in memory and a check at each turn is much for a loop of six
// instructions. A region is a loop, with the loops in it, in which nothing is called,
// no bulk instruction moves an unknown number of bytes, and no charge is large. Its
// charges are taken from a purse, a local of the function that begins empty and is
// filled from the fuel:
//
//	block                          ;; the end of the loop, with its results
//	  block                        ;; for each label that is branched to, out of it
//	    i64.const 0, local.set purse
//	    loop
//	      fill
//	      loop                     ;; the original's
//	        local.get purse, i64.const units, i64.ge_s, if
//	          spend
//	          what the loop does; a branch to its end
//	        else
//	          br 2                 ;; to fill
//	        end
//	      end
//	    end
//	    unreachable
//	  end
//	  refund, br                   ;; to where the branch went
//	end
//	refund
//
// So a turn costs a comparison and a subtraction in registers, and nothing in it
// calls, for which the compiler would spill what the loop keeps in registers. Loops
// in a region are written the same way, but for the purse and the ways out; charges
// in it are spends, behind a fill if they have a check. The blocks, and the branches
// that the meter adds, are free.
//
// What is burnt is what the charges of the same code without a region come to, unit
// by unit. Only where a function is left by a trap in a region, or by refuel, what
// is in the purse is not given back: at most 1,000 units, the same ones each time.
// The fuel may rise by as much above what the host has put into it; what it has
// taken is still the difference. Loops that charge more than 8 units a turn begin no
// region, nor do those out of which branches lead to more than 8 labels, those that
// take operands, and those beyond what doubles a function's code.
//
// # Bulk instructions
//
// memory.fill, copy and init, table.fill, copy, init and grow become calls of
// helpers, one for each instruction with its immediates. A helper charges for what
// is beyond whole pieces and checks; what is less than a piece is done then. Else it
// looks at the bounds first, because an instruction out of bounds traps without
// effect: if it is, the original instruction runs whole, and traps. Then it moves
// the rest and piece after piece, each with a charge and a check, from the end if
// ranges may overlap the other way. Left as they are: instructions behind an
// i32.const of at most a piece, memory.init and table.init from segments of at most
// 512 bytes, and memory.copy and memory.fill of at most 256 bytes, which run behind
// a comparison of their length. table.grow of an imported table is charged in
// pieces, and done in one go, as nobody knows here whether it can grow.
//
// # Frames
//
// A frame is 48 bytes and 8 for each parameter, result, local and operand at the
// greatest height, a purse included; 16 for each vector, and for each operand of functions with
// vector instructions. DefaultDepth is 1 MiB of them. Functions that call nothing
// but small leaves and helpers take none: one of each at most is on the stack.
//
// # Sections
//
//	type, import, function    as they are, and what is added
//	table, memory             maxima lowered to Options (never below the minimum;
//	                          tables share what they do not begin with)
//	global                    as they are, and fuel = 0, depth = DefaultDepth
//	export                    as they are; weft:fuel, weft:depth, weft:start with
//	                          Options.Extract, weft:global:N for each own mutable global
//	start                     as it is; taken out with Options.Extract
//	element                   renumbered
//	data, data count          as they are; with Options.Extract, and if the module is
//	                          restorable, active segments become Result.Segments and
//	                          stay as empty passive ones if any are named by index
//	custom                    function names of "name", with those of helpers; others,
//	                          such as debug information, are dropped
//
// Modules that import from weft:meter or export one of the names above are refused
// (ErrReserved). The same bytes and Options become the same bytes; Version changes
// whenever others come out.
//
// # What it costs, measured
//
// Two cores, wazero v1.12.0, Go 1.26, TinyGo and Go guests; ratios of times in one run
// of
//
//	go test -run - -bench Kernels -benchtime 1x -v ./host/sandbox/rewrite
//
// CBOR, sorting, regexp, SHA-256, matrix product, string building, hash map: 1.14 in
// the median, 1.20 at most (SHA-256 1.03 to 1.07, CBOR 1.11 to 1.14). All kernels:
// 1.13 in the median; the worst of a real program 1.23 (TinyGo's recursion; its sieve
// 1.12 to 1.15), load and sum 1.11 to 1.30, an empty loop 1.5 to 2.9, calls of a
// function that does nothing 1.6. Frames are nothing that can be measured. What is
// charged is 1.20 times what exact charges come to, in the median, and 1.93 at most
// (code of Go's compiler; 1.5 of TinyGo's). Code grows by 15 to 25 percent, 2 of them
// for regions (143 in a TinyGo guest of 473 loops; 9 of 1,389 in Go's, whose loops
// nearly all call).
//
// Without regions, in the same minutes: load and sum of TinyGo 2.3 instead of 1.3, the
// sieve 1.3, hash map 1.27 instead of 1.18, matrix product 1.20 instead of 1.06, in
// package sandbox's kernels; but string building 1.09 instead of 1.16, and an empty
// loop 2.1 to 2.4: loops of few turns lose what filling and giving back takes.
//
// # Rejected
//
//   - The engine's own way to stop: 3.9 times slower, and recursion without loops goes
//     on.
//   - A charge for each way, exactly: 1.18 in the median, 1.46 in the sieve, and two
//     to three times as many charges.
//   - Fuel in a local, written back at calls: 2.0 instead of 2.4 in an empty loop, but
//     1.5 instead of 1.25 in one that copies bytes, as the compiler spills it.
//   - A purse that is filled at the head of the loop itself: 2.0 in an empty loop, 1.8
//     in one that copies bytes, as the call in it makes the compiler write what
//     changes in the loop to the stack at each turn.
//   - br_if to where the purse is filled: 3.0 in an empty loop, as the compiler makes
//     one comparison of an if and two of a br_if.
//   - Regions around loops with larger charges: 1.95 instead of 1.3 in TinyGo's load
//     and sum, 1.5 instead of 1.3 in Rust's regexp.
//   - A purse of 500 units: 1.10 instead of 1.06 in the matrix product.
//   - A check at each entry: small functions cost twice as much.
//   - Larger allowances for dear ways: 1.12 instead of 1.14, but charges become 2.2
//     times the exact ones in the median, and 7 times at most.
//   - Checks in the middle of helpers' pieces, or smaller ones: 64 KiB take less than
//     what 4,096 units do.
package rewrite
