// Package rewrite converts a WebAssembly 2.0 module to a metered module. A metered module
// counts its own fuel and the bytes of its own stack frames, and never runs for long
// without checking both. Its host can stop it, share a processor fairly, bill it and
// replay it, without any help from the engine. Rewriting also sets maximum sizes of
// memory and tables, exports mutable globals so that an image can restore them, and can
// extract data segments and the start function.
//
// The package works on bytes. It must not depend on an engine, on a host's budgets, on
// which imports are allowed, or on any other package of this program except wasmbin. It
// reads valid modules: the caller must validate the original first.
//
// # Invariants
//
// In a rewritten module, on every path that control can take:
//
//  1. Charges are never less than the cost of the executed instructions by the table
//     below. Fuel is taken before it is used.
//  2. Each loop header and each function entry begins with a charge. A check follows at
//     each loop header, and at each entry except those of invariant 4. In a region, a
//     turn is charged to the purse, and a check follows when the purse has too few units:
//     at least once for each spent purse of 1,000 units.
//  3. At most MaxCharge units are charged between two checks. Two refuels are therefore
//     at most Slice + MaxCharge = 50,000 units apart, if the host puts at most Slice into
//     the fuel. The worst case between two checks is the sum of: at most 2,200 units that
//     a callee left unchecked at its end, including the 1,000 of a purse; at most 1,200
//     that its caller adds without a check; at most 400 of an entry without a check; and
//     one charge, of at most 5,200, or one of 500 plus the filling of a purse. The
//     greatest measured values, with a host whose slices are empty, are 4,096 while the
//     example plugins initialize themselves, and 6,945 in code written for the purpose
//     (TestWorst).
//  4. An entry has no check if each path from it meets a check before it calls or ends.
//     An entry also has no check if the function is a small leaf: at most 100 units and
//     300 bytes, without calls, loops or checks, and reachable by direct calls only (not
//     exported, in no element segment, not referenced, not the start function). Callers
//     count a leaf's units among their own unchecked units. Each turn of a loop and each
//     level of a recursion still meets a check: a loop at its header, and a recursion
//     because a leaf calls nothing and any other function checks before it calls.
//  5. A function that charges without a check after a call checks at its end, because the
//     ends of many nested calls may follow each other.
//  6. A function that calls anything except small leaves and helpers subtracts its frame
//     from the depth before its code begins, and adds the frame back at its only end. It
//     calls overflow as soon as the depth is negative.
//  7. One bulk instruction moves at most Piece bytes. An entry of a table counts as 8
//     bytes.
//  8. Only the code of the meter, including helpers, accesses fuel, depth and purses, and
//     calls refuel and overflow.
//  9. Results, traps, memory and globals equal the original's, unless refuel or overflow
//     ends the module.
//
// Verify proves all invariants except 9 by structure, for every rewritten module. Package
// spectest tests invariant 9 by comparison.
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
// The imports refuel and overflow follow the original's imports, so the indices of the
// original's own functions increase by two. Fuel and depth are the last globals, and
// helpers the last functions. If a function of invariant 6 leaves before its end, a block
// around its body replaces the function as a branch target, and return becomes a branch
// to that block. After a trap, the depth keeps its value at the trap: the host must set
// it.
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
// One charge for each path through straight code would be exact but slow. The placement
// walks a function from its end, and keeps the cost of the cheapest and of the most
// expensive path from each point to the next charge. A charge takes the cost of the most
// expensive path. If that exceeds twice the cost of the cheapest path by more than 8
// units, the expensive path gets a charge for the difference at its beginning: behind the
// if, the else or the end that only this path passes. Paths that trap, or that leave a
// loop by a branch, do not count as cheapest. Go compiles a function to a loop around a
// br_table, and each arm of the br_table is such a path.
//
// # Regions
//
// A charge in memory and a check at each turn is expensive for a loop of six
// instructions. A region is a loop, including the loops in it, without calls, without
// bulk instructions of unknown length, and without large charges. Its charges come from a
// purse, which is a local of the function. The purse begins empty and is filled from the
// fuel:
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
// A turn therefore costs a comparison and a subtraction in registers. It contains no
// call, which would make the compiler spill what the loop keeps in registers. Inner loops
// of a region have the same form, without the setup of the purse and the ways out.
// Charges in a region become spends, preceded by a fill if they have a check. Blocks and
// branches added by the meter are free.
//
// A region burns exactly the units that the same code without a region burns. The only
// exception is a function left by a trap in a region, or by refuel: the contents of the
// purse are not given back, at most 1,000 units, and the same number in every run. The
// fuel may rise by that amount above what the host has put in; the fuel taken is still
// the difference. A loop does not begin a region if it charges more than 8 units a turn,
// if branches out of it lead to more than 8 labels, if it takes operands, or if its code
// would more than double the function.
//
// # Bulk instructions
//
// memory.fill, copy and init, and table.fill, copy, init and grow become calls of
// helpers, one for each instruction with its immediates. A helper charges for what
// exceeds whole pieces, and checks. A length below one piece is then executed. For a
// longer operation the helper checks the bounds first, because an instruction out of
// bounds must trap without effect: if the operation is out of bounds, the original
// instruction runs whole, and traps. Otherwise the helper moves the rest and then piece
// after piece, each with a charge and a check, from the end if the ranges may overlap the
// other way. Some instructions stay unchanged: instructions behind an i32.const of at
// most a piece, memory.init and table.init from segments of at most 512 bytes, and
// memory.copy and memory.fill of at most 256 bytes, which run behind a comparison of
// their length. table.grow of an imported table is charged in pieces and done in one
// operation, because how far the table can grow is unknown here.
//
// # Frames
//
// A frame counts 48 bytes, plus 8 for each parameter, result, local (including a purse)
// and operand at the greatest height. It counts 16 for each vector, and for each operand
// of functions with vector instructions. DefaultDepth is 1 MiB of frames. Functions that
// call only small leaves and helpers take no frame, because at most one of each is on the
// stack.
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
// (ErrReserved). Equal bytes and Options produce equal bytes; Version changes whenever
// the output changes.
//
// # What it costs, measured
//
// Two cores, wazero v1.12.0, Go 1.26, TinyGo and Go guests; ratios of times in one run of
//
//	go test -run - -bench Kernels -benchtime 1x -v ./host/sandbox/rewrite
//
// CBOR, sorting, regexp, SHA-256, matrix product, string building, hash map: 1.14 in the
// median, at most 1.20 (SHA-256 1.03 to 1.07, CBOR 1.11 to 1.14). All kernels: 1.13 in
// the median. The worst of a real program is 1.23 (TinyGo's recursion; its sieve 1.12 to
// 1.15), load and sum 1.11 to 1.30, an empty loop 1.5 to 2.9, calls of an empty function
// 1.6. The cost of frames is too small to measure. Charges are 1.20 times the exact cost
// in the median, and at most 1.93 times (code of Go's compiler; 1.5 of TinyGo's). Code
// grows by 15 to 25 percent, including 2 percent for regions (143 in a TinyGo guest of
// 473 loops; 9 of 1,389 in Go's, because nearly all of its loops call).
//
// Without regions, in the same run: load and sum of TinyGo 2.3 instead of 1.3, the sieve
// 1.3, hash map 1.27 instead of 1.18, matrix product 1.20 instead of 1.06, in package
// sandbox's kernels. String building took 1.09 instead of 1.16, and an empty loop 2.1 to
// 2.4: loops of few turns lose the time that filling and refunding takes.
//
// # Rejected
//
//   - The engine's own way to stop: 3.9 times slower, and recursion without loops does
//     not stop.
//   - An exact charge for each path: 1.18 in the median, 1.46 in the sieve, and two to
//     three times as many charges.
//   - Fuel in a local, written back at calls: 2.0 instead of 2.4 in an empty loop, but
//     1.5 instead of 1.25 in a loop that copies bytes, because the compiler spills the
//     local.
//   - A purse filled at the head of the loop itself: 2.0 in an empty loop, 1.8 in a loop
//     that copies bytes. The call in the loop makes the compiler write the loop's
//     variables to the stack at each turn.
//   - br_if to the place that fills the purse: 3.0 in an empty loop, because the compiler
//     makes one comparison of an if and two of a br_if.
//   - Regions around loops with larger charges: 1.95 instead of 1.3 in TinyGo's load and
//     sum, 1.5 instead of 1.3 in Rust's regexp.
//   - A purse of 500 units: 1.10 instead of 1.06 in the matrix product.
//   - A check at each entry: small functions cost twice as much.
//   - Larger allowances for expensive paths: 1.12 instead of 1.14, but charges become 2.2
//     times the exact cost in the median, and at most 7 times.
//   - Checks in the middle of helpers' pieces, or smaller pieces: 64 KiB take less time
//     than 4,096 units.
package rewrite
