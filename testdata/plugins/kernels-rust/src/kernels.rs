use crate::{cbor, regexp::Pattern, runaway, sha256};
use std::collections::HashMap;
use std::io::Write;

/// A xorshift generator, so that all compilers work on the same data.
pub struct Chance(pub u64);

impl Chance {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

const SIDE: usize = 48;

/// The kernels, and the memory that they need.
pub struct Kernels {
    words: Vec<u32>,
    left: Vec<f64>,
    right: Vec<f64>,
    product: Vec<f64>,
    unsorted: Vec<u32>,
    block: Vec<u8>,
    pattern: Pattern,
    letters: Vec<Vec<u8>>,
    counts: HashMap<u64, u64>,
    lines: Vec<u8>,
    message: Vec<u8>,
}

impl Kernels {
    pub fn new() -> Kernels {
        let mut words = Chance(1);
        let mut block = Chance(11);
        Kernels {
            words: (0..16384).map(|_| words.next() as u32).collect(),
            left: matrix(2),
            right: matrix(3),
            product: matrix(5),
            unsorted: vec![0; 2048],
            block: (0..4096).map(|_| block.next() as u8).collect(),
            pattern: Pattern::new("[a-z]+@[a-z]+.org"),
            letters: letters(),
            counts: HashMap::with_capacity(4096),
            lines: Vec::with_capacity(32 << 10),
            message: Vec::with_capacity(32 << 10),
        }
    }

    /// Runs a kernel; `None` if there is none of that name.
    pub fn run(&mut self, name: &str, rounds: u64) -> Option<u64> {
        Some(match name {
            "cbor" => cbor::cbor(&mut self.message, rounds),
            "hashmap" => self.hashmap(rounds),
            "loadsum" => self.loadsum(rounds),
            "matrix" => self.matrix(rounds),
            "none" => 0,
            "regexp" => self.regexp(rounds),
            "sha256" => self.sha256(rounds),
            "sort" => self.sort(rounds),
            "strings" => self.strings(rounds),
            "fill" => runaway::fill(rounds),
            "spin" => runaway::spin(rounds),
            "tree" => runaway::tree(rounds),
            _ => return None,
        })
    }

    /// Adds up an array: a loop of so few instructions that anything added to
    /// it shows.
    fn loadsum(&self, rounds: u64) -> u64 {
        let mut sum = 0u64;
        for _ in 0..rounds {
            for &word in std::hint::black_box(&self.words) {
                sum += word as u64;
            }
        }
        sum
    }

    fn matrix(&mut self, rounds: u64) -> u64 {
        for _ in 0..rounds {
            for i in 0..SIDE {
                for j in 0..SIDE {
                    let mut sum = 0.0;
                    for k in 0..SIDE {
                        sum += self.left[i * SIDE + k] * self.right[k * SIDE + j];
                    }
                    self.product[i * SIDE + j] = sum;
                }
            }
            self.left[0] += 1.0;
        }
        self.left[0] -= rounds as f64;
        self.product[0].to_bits() ^ self.product[SIDE * SIDE - 1].to_bits()
    }

    fn sort(&mut self, rounds: u64) -> u64 {
        let mut sum = 0u64;
        let mut chance = Chance(7);
        for _ in 0..rounds {
            for word in &mut self.unsorted {
                *word = chance.next() as u32;
            }
            self.unsorted.sort_unstable();
            for (i, &word) in self.unsorted.iter().enumerate() {
                sum = sum.wrapping_add(i as u64 * word as u64);
            }
        }
        sum
    }

    fn sha256(&mut self, rounds: u64) -> u64 {
        let mut sum = 0u64;
        for i in 0..rounds {
            self.block[0] = i as u8;
            let digest = sha256::sum(&self.block);
            sum = sum.wrapping_add(u64::from_le_bytes(digest[..8].try_into().unwrap()));
        }
        self.block[0] = 0;
        sum
    }

    fn regexp(&self, rounds: u64) -> u64 {
        let mut found = 0;
        for _ in 0..rounds {
            for (i, line) in self.letters.iter().enumerate() {
                if self.pattern.is_in(line) {
                    found += i as u64;
                }
            }
        }
        found
    }

    fn hashmap(&mut self, rounds: u64) -> u64 {
        let mut sum = 0u64;
        for _ in 0..rounds {
            self.counts.clear();
            let mut chance = Chance(17);
            for _ in 0..4096 {
                *self.counts.entry(chance.next() % 2048).or_default() += 1;
            }
            for (key, count) in &self.counts {
                sum += key * count;
            }
        }
        self.counts.clear();
        sum
    }

    /// Builds a table of numbers, and looks at what it has built.
    fn strings(&mut self, rounds: u64) -> u64 {
        let mut sum = 0u64;
        for round in 0..rounds {
            self.lines.clear();
            let mut chance = Chance(19 + round);
            for i in 0..256 {
                writeln!(self.lines, "row {i}: {}", chance.next()).unwrap();
            }
            for letter in &mut self.lines {
                letter.make_ascii_uppercase();
                sum = sum.wrapping_mul(31).wrapping_add(*letter as u64);
            }
        }
        sum
    }
}

fn matrix(seed: u64) -> Vec<f64> {
    let mut chance = Chance(seed);
    (0..SIDE * SIDE)
        .map(|_| (chance.next() % 1000) as f64 / 8.0)
        .collect()
}

/// Text with some addresses in it, one piece a line.
fn letters() -> Vec<Vec<u8>> {
    let mut chance = Chance(13);
    let mut lines = vec![Vec::new(); 64];
    for (i, line) in lines.iter_mut().enumerate() {
        for _ in 0..4 {
            for _ in 0..3 + chance.next() % 6 {
                line.push(b'a' + (chance.next() % 26) as u8);
            }
            line.push(b"@ .,"[chance.next() as usize % 4]);
        }
        if i % 4 == 0 {
            line.extend(b"someone@example.org");
        }
    }
    lines
}
