//! A guest that tries to carry something from one invocation to the next, as
//! `remember` does in Go: each looks for the marks of earlier ones, in every
//! place that it knows and then in all of memory, leaves marks in all these
//! places, and ends in the way that its input says.

#[path = "../../kernels-rust/src/boundary.rs"]
mod boundary;

use std::cell::Cell;
use std::collections::HashMap;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The mark is not in the module: it is made when it is written, and looked
/// for without being made.
const MARK_KEY: u64 = 0x9e37_79b9_7f4a_7c15;
const MARK_IMAGE: u64 = 0x0123_4567_89ab_cdef;

fn is_mark(v: u64) -> bool {
    v ^ MARK_KEY == MARK_IMAGE
}

// The places, as bits of what was found; see remember/main.go.
const IN_GLOBAL: u32 = 1 << 0;
const IN_HEAP: u32 = 1 << 1;
const IN_MAP: u32 = 1 << 2;
const IN_FUNCTION: u32 = 1 << 3;
const IN_LOCAL: u32 = 1 << 4;
const IN_GROWN: u32 = 1 << 6;
const ON_STACK: u32 = 1 << 7;
const ANYWHERE: u32 = 1 << 8;

static STEPS: AtomicU32 = AtomicU32::new(0);
static GLOBAL: AtomicU64 = AtomicU64::new(0);
static HEAP: Mutex<Vec<u64>> = Mutex::new(Vec::new());
static TABLE: Mutex<Option<HashMap<u32, u64>>> = Mutex::new(None);
static FUNCTION: AtomicPtr<()> = AtomicPtr::new(one as *mut ());
static GROWN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static LOCAL: Cell<u64> = const { Cell::new(0) };
}

fn one() -> u64 {
    1
}

fn marked() -> u64 {
    black_box(MARK_KEY) ^ MARK_IMAGE
}

/// Calls a function by its index in the table.
fn call_function() -> u64 {
    let f: fn() -> u64 = unsafe { std::mem::transmute(FUNCTION.load(Relaxed)) };
    f()
}

fn read(address: usize) -> u64 {
    unsafe { (address as *const u64).read_volatile() }
}

fn pages() -> usize {
    core::arch::wasm32::memory_size(0)
}

fn find() -> u32 {
    let mut found = 0;
    let mut look = |place, v| {
        if is_mark(v) {
            found |= place;
        }
    };
    look(IN_GLOBAL, GLOBAL.load(Relaxed));
    look(IN_HEAP, HEAP.lock().unwrap().last().copied().unwrap_or(0));
    let map = TABLE.lock().unwrap();
    look(
        IN_MAP,
        map.as_ref().and_then(|m| m.get(&1).copied()).unwrap_or(0),
    );
    look(IN_FUNCTION, call_function());
    look(IN_LOCAL, LOCAL.get());
    let grown = GROWN.load(Relaxed);
    look(IN_GROWN, if grown == 0 { 0 } else { read(grown) });
    found
}

/// Looks through all of memory, and at what frames before have left on the
/// stack.
fn search() -> (u32, u32, u32) {
    let local = 0u64;
    let stack = black_box(&local) as *const u64 as usize;
    let (mut found, mut count, mut first) = (0, 0, 0);
    for address in (8..pages() << 16).step_by(8) {
        if !is_mark(read(address)) {
            continue;
        }
        count += 1;
        if count == 1 {
            first = address as u32;
        }
        found |= ANYWHERE;
        if address < stack && stack - address < 32 << 10 {
            found |= ON_STACK;
        }
    }
    (found, count, first)
}

fn leave(m: u64) {
    STEPS.fetch_add(1, Relaxed);
    GLOBAL.store(m, Relaxed);
    HEAP.lock().unwrap().extend([m; 1000]);
    TABLE.lock().unwrap().get_or_insert_default().insert(1, m);
    FUNCTION.store(black_box(marked as *mut ()), Relaxed);
    LOCAL.set(m);
    deep(m, 8);
}

/// Fills frames of the stack.
#[inline(never)]
fn deep(m: u64, frames: u32) -> u64 {
    let mut frame = [MaybeUninit::<u64>::uninit(); 64];
    for word in &mut frame {
        word.write(m);
    }
    let below = if frames > 0 { deep(m, frames - 1) } else { 0 };
    let word = unsafe { black_box(&frame)[frames as usize % 64].assume_init() };
    word.wrapping_add(below)
}

/// Has no end, and no loop.
#[inline(never)]
#[allow(unconditional_recursion)]
fn bottomless(n: u64) -> u64 {
    black_box(bottomless(black_box(n + 1))) + n
}

/// Grows memory, and marks the end of it.
fn grow(count: usize, m: u64) -> u32 {
    let before = core::arch::wasm32::memory_grow(0, count);
    if before == usize::MAX || count == 0 {
        return 0;
    }
    let end = ((before + count) << 16) - 8;
    unsafe { (end as *mut u64).write_volatile(m) };
    GROWN.store(end, Relaxed);
    before as u32
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_describe() {
    boundary::output(&[0x82, 0, 0xf6]);
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_step(len: u32) -> i32 {
    let found = find();
    let (more, count, first) = search();
    let mut report = Vec::new();
    for v in [
        found | more,
        count,
        first,
        pages() as u32,
        STEPS.load(Relaxed),
    ] {
        report.extend(v.to_le_bytes());
    }
    boundary::show(&report);
    let input = boundary::input(len);
    let (end, arg) = (
        input[0],
        u32::from_le_bytes(input[1..5].try_into().unwrap()),
    );
    let m = marked();
    leave(m);
    // The ways to end, as remember/main.go numbers them.
    match end {
        1 => core::arch::wasm32::unreachable(),
        2 => panic!("told to"),
        3 => report.extend(grow(arg as usize % 64, m).to_le_bytes()),
        4 => report.extend(deep(m, arg % 64).to_le_bytes()),
        5 => report.extend(bottomless(0).to_le_bytes()),
        6 => while STEPS.fetch_or(1, Relaxed) != 0 {},
        7 => return boundary::answer(1, &report),
        8 => boundary::show(b"unwind"),
        9 => std::process::exit(arg as i32 % 4),
        10 => drop(boundary::answer(0, &report)),
        11 => std::mem::forget(vec![m; 1024 * (arg as usize % 256)]),
        12 => return 0,
        13 => unsafe { (0xffff_fff0 as *mut u64).write_volatile(m) },
        _ => {}
    }
    boundary::answer(0, &report)
}
