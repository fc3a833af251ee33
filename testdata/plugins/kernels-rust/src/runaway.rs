//! Work to be stopped.

use std::hint::black_box;

/// A tight loop, all but for ever.
pub fn spin(end: u64) -> u64 {
    let mut x = end;
    let mut turns = 0u64;
    loop {
        x = x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        turns = turns.wrapping_add(x >> 60);
        if x == end {
            return turns;
        }
    }
}

/// Calls, and no loop: 2 to the power of `height` of them.
#[inline(never)]
pub fn tree(height: u64) -> u64 {
    if height == 0 {
        return 1;
    }
    black_box(tree(height - 1)) ^ black_box(tree(height - 1))
}

/// Grows memory by that many MiB, and fills them by one instruction, again and
/// again.
pub fn fill(mebibytes: u64) -> u64 {
    let before = core::arch::wasm32::memory_grow(0, mebibytes as usize * 16);
    if before == usize::MAX {
        return 0;
    }
    let start = (before << 16) as *mut u8;
    for turn in 0..u64::MAX {
        unsafe { start.write_bytes(turn as u8, mebibytes as usize * (1 << 20)) };
        black_box(start);
    }
    1
}
