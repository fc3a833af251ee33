//! SHA-256, FIPS 180-4.

/// The first 32 bits of the fractional part of a prime's square or cube root:
/// the constants of the standard, computed with whole numbers.
const fn root_bits(prime: u128, cube: bool) -> u32 {
    // The greatest r with r^2 <= prime << 64, or r^3 <= prime << 96.
    let mut root = 0u128;
    let mut bit = 1u128 << 36;
    while bit > 0 {
        let r = root | bit;
        let fits = if cube {
            r * r <= (prime << 96) / r
        } else {
            r * r <= prime << 64
        };
        if fits {
            root = r;
        }
        bit >>= 1;
    }
    root as u32
}

const fn roots<const N: usize>(cube: bool) -> [u32; N] {
    let mut list = [0; N];
    let (mut n, mut candidate) = (0, 2u128);
    while n < N {
        let mut divisor = 2;
        while divisor * divisor <= candidate && candidate % divisor != 0 {
            divisor += 1;
        }
        if divisor * divisor > candidate {
            list[n] = root_bits(candidate, cube);
            n += 1;
        }
        candidate += 1;
    }
    list
}

static START: [u32; 8] = roots(false);
static ROUND: [u32; 64] = roots(true);

pub fn sum(message: &[u8]) -> [u8; 32] {
    let mut state = START;
    let mut blocks = message.chunks_exact(64);
    for block in &mut blocks {
        compress(&mut state, block.try_into().unwrap());
    }
    let rest = blocks.remainder();
    let mut end = [0u8; 128];
    end[..rest.len()].copy_from_slice(rest);
    end[rest.len()] = 0x80;
    let size = if rest.len() < 56 { 64 } else { 128 };
    end[size - 8..size].copy_from_slice(&(message.len() as u64 * 8).to_be_bytes());
    for block in end[..size].chunks_exact(64) {
        compress(&mut state, block.try_into().unwrap());
    }
    let mut digest = [0; 32];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

fn compress(state: &mut [u32; 8], block: &[u8; 64]) {
    let mut w = [0u32; 64];
    for (word, bytes) in w.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_be_bytes(bytes.try_into().unwrap());
    }
    for i in 16..64 {
        let s0 = w[i - 15].rotate_right(7) ^ w[i - 15].rotate_right(18) ^ (w[i - 15] >> 3);
        let s1 = w[i - 2].rotate_right(17) ^ w[i - 2].rotate_right(19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16]
            .wrapping_add(s0)
            .wrapping_add(w[i - 7])
            .wrapping_add(s1);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for i in 0..64 {
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let t1 = h
            .wrapping_add(s1)
            .wrapping_add(choice)
            .wrapping_add(ROUND[i])
            .wrapping_add(w[i]);
        let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let t2 = s0.wrapping_add((a & b) ^ (a & c) ^ (b & c));
        (h, g, f, e) = (g, f, e, d.wrapping_add(t1));
        (d, c, b, a) = (c, b, a, t1.wrapping_add(t2));
    }
    for (word, add) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(add);
    }
}
