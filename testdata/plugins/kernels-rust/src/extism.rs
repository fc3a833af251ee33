//! The same least invocation as a plugin for Extism's hosts: what comes in goes
//! out.

#[link(wasm_import_module = "extism:host/env")]
unsafe extern "C" {
    fn input_length() -> u64;
    fn input_load_u8(offset: u64) -> u8;
    fn input_load_u64(offset: u64) -> u64;
    fn alloc(len: u64) -> u64;
    fn store_u8(offset: u64, v: u8);
    fn store_u64(offset: u64, v: u64);
    fn output_set(offset: u64, len: u64);
}

#[unsafe(no_mangle)]
pub extern "C" fn echo() -> i32 {
    let bytes = input();
    output(&bytes);
    bytes[1] as i32
}

fn input() -> Vec<u8> {
    let len = unsafe { input_length() };
    let mut bytes = Vec::with_capacity(len as usize);
    while (bytes.len() as u64) + 8 <= len {
        bytes.extend(unsafe { input_load_u64(bytes.len() as u64) }.to_le_bytes());
    }
    while (bytes.len() as u64) < len {
        bytes.push(unsafe { input_load_u8(bytes.len() as u64) });
    }
    bytes
}

fn output(bytes: &[u8]) {
    let at = unsafe { alloc(bytes.len() as u64) };
    let mut offset = at;
    let words = bytes.chunks_exact(8);
    let rest = words.remainder();
    for word in words {
        unsafe { store_u64(offset, u64::from_le_bytes(word.try_into().unwrap())) };
        offset += 8;
    }
    for &byte in rest {
        unsafe { store_u8(offset, byte) };
        offset += 1;
    }
    unsafe { output_set(at, bytes.len() as u64) };
}
