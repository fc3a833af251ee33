//! weft-smith SEED FIRST COUNT writes COUNT random WebAssembly 2.0 modules to
//! standard output, each behind its length (four bytes, little end first).
//!
//! Module number FIRST+i depends on SEED and FIRST+i alone, so one module can be
//! made again without those before it. Every module is valid, ends (it counts
//! its own calls and loop turns, and traps at FUEL), exports all that it has,
//! canonicalizes NaNs and imports functions of "env" only.

use arbitrary::Unstructured;
use std::io::{self, Write};
use std::process::ExitCode;
use wasm_encoder::{EntityType, FunctionSection, ImportSection, TypeSection, ValType};
use wasm_smith::{Config, MemoryOffsetChoices, Module};

/// Calls and loop turns after which a module's instance traps: fewer than the
/// calls inside each other that any engine allows.
const FUEL: u32 = 1_000;

fn main() -> ExitCode {
    let numbers: Option<Vec<u64>> = std::env::args().skip(1).map(|a| a.parse().ok()).collect();
    let Some(&[seed, first, count]) = numbers.as_deref() else {
        eprintln!("usage: weft-smith SEED FIRST COUNT");
        return ExitCode::from(2);
    };
    let mut out = io::stdout().lock();
    for index in first..first.saturating_add(count) {
        let wasm = module(&mut Random::new(seed, index));
        let length = (wasm.len() as u32).to_le_bytes();
        if let Err(err) = out.write_all(&length).and_then(|()| out.write_all(&wasm)) {
            eprintln!("weft-smith: {err}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// One module. Few choices make none (the entropy ends in the wrong place): then
/// the next are taken.
fn module(random: &mut Random) -> Vec<u8> {
    loop {
        let config = config(random);
        let length = random.one_of(&[2_000, 6_000, 20_000]);
        let entropy: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        let Ok(mut module) = Module::new(config, &mut Unstructured::new(&entropy)) else {
            continue;
        };
        if module.ensure_termination(FUEL).is_ok() {
            return module.to_bytes();
        }
    }
}

/// What the module may look like: a swarm, since one distribution for all
/// modules never reaches some combinations.
fn config(random: &mut Random) -> Config {
    Config {
        available_imports: Some(imports(random)),
        max_imports: 8,
        // What is not in WebAssembly 2.0.
        exceptions_enabled: false,
        extended_const_enabled: false,
        gc_enabled: false,
        memory64_enabled: false,
        relaxed_simd_enabled: false,
        tail_call_enabled: false,
        threads_enabled: false,
        // What is, mostly.
        bulk_memory_enabled: true,
        multi_value_enabled: true,
        reference_types_enabled: true,
        saturating_float_to_int_enabled: true,
        sign_extension_ops_enabled: true,
        simd_enabled: random.chance(60),
        canonicalize_nans: true,
        disallow_traps: random.chance(60),
        export_everything: true,
        generate_custom_sections: random.chance(20),
        // Sizes. A table always has a maximum, or table.grow takes what it wants.
        // Minima, as each of these lists else ends where a coin says so.
        min_types: random.one_of(&[1, 4, 8]),
        min_funcs: random.one_of(&[1, 4, 10]),
        max_funcs: 40,
        max_instructions: random.one_of(&[20, 100, 300, 1_500]),
        max_types: random.one_of(&[8, 40]),
        max_type_size: random.one_of(&[8, 30]),
        min_globals: random.one_of(&[0, 3, 8]),
        max_globals: random.one_of(&[8, 20]),
        min_memories: u32::from(random.chance(80)),
        max_memories: 1,
        max_memory32_bytes: random.one_of(&[1, 2, 8, 40]) << 16,
        memory_max_size_required: random.chance(50),
        memory_offset_choices: MemoryOffsetChoices(98, 1, 1),
        min_tables: random.one_of(&[0, 1, 2]),
        max_tables: random.one_of(&[2, 3]),
        max_table_elements: random.one_of(&[4, 40, 2_000]),
        table_max_size_required: true,
        min_data_segments: random.one_of(&[0, 2]),
        max_data_segments: random.one_of(&[2, 10]),
        min_element_segments: random.one_of(&[0, 2]),
        max_element_segments: random.one_of(&[2, 10]),
        max_elements: random.one_of(&[3, 30]),
        min_uleb_size: random.one_of(&[1, 1, 1, 2, 4, 5]),
        ..Config::default()
    }
}

/// A module that imports what may be imported: a random choice of the functions
/// env.f0, env.f1, ..., which the host has, or none.
fn imports(random: &mut Random) -> Vec<u8> {
    use ValType::{F32, F64, I32, I64};
    const EXTERNREF: ValType = ValType::EXTERNREF;
    let signatures: [(&[ValType], &[ValType]); 7] = [
        (&[], &[]),
        (&[I32], &[I32]),
        (&[I64, F64], &[F32]),
        (&[I32, I32, I32], &[I32, I64]),
        (&[F32], &[F64]),
        (&[EXTERNREF], &[EXTERNREF]),
        (&[I64], &[]),
    ];
    let percent = random.one_of(&[0, 60]);
    let (mut types, mut imports) = (TypeSection::new(), ImportSection::new());
    for (i, (params, results)) in signatures.iter().enumerate() {
        if random.chance(percent) {
            imports.import("env", &format!("f{i}"), EntityType::Function(types.len()));
            types.ty().function(params.to_vec(), results.to_vec());
        }
    }
    let mut module = wasm_encoder::Module::new();
    module.section(&types).section(&imports).section(&FunctionSection::new());
    module.finish()
}

/// SplitMix64: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn new(seed: u64, index: u64) -> Self {
        let mut random = Random(seed);
        random.0 = random.next() ^ index.wrapping_mul(0xd1b5_4a32_d192_ed03);
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[(self.next() % choices.len() as u64) as usize]
    }
}
