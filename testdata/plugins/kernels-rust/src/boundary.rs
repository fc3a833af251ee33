//! The ABI without an SDK, for guests of tests: the input is any bytes, and the
//! output `[code, bytes]`.

#[link(wasm_import_module = "weft:v1")]
unsafe extern "C" {
    #[link_name = "input"]
    fn host_input(dst: *mut u8, off: u32, len: u32);
    #[link_name = "output"]
    fn host_output(src: *const u8, len: u32);
    #[link_name = "log"]
    fn host_log(src: *const u8, len: u32) -> u64;
    #[link_name = "now"]
    fn host_now(src: *const u8, len: u32) -> u64;
}

/// The invocation's input, of `len` bytes.
pub fn input(len: u32) -> Vec<u8> {
    let mut bytes = vec![0; len as usize];
    unsafe { host_input(bytes.as_mut_ptr(), 0, len) };
    bytes
}

/// Hands over the output, or the manifest, as it is.
pub fn output(bytes: &[u8]) {
    unsafe { host_output(bytes.as_ptr(), bytes.len() as u32) };
}

/// Answers a step with `[code, bytes]`; `code` is 0, or 1 for an error.
#[allow(dead_code)] // not every guest that includes this file uses it
pub fn answer(code: u8, bytes: &[u8]) -> i32 {
    let mut message = vec![0x82, code, 0x5a];
    message.extend((bytes.len() as u32).to_be_bytes());
    message.extend(bytes);
    output(&message);
    code as i32
}

/// Shows the host some bytes, by the import `log`.
#[allow(dead_code)]
pub fn show(bytes: &[u8]) {
    unsafe { host_log(bytes.as_ptr(), bytes.len() as u32) };
}

/// Lets the host take the time, by the import `now`.
#[allow(dead_code)]
pub fn mark() {
    unsafe { host_now([0xf6].as_ptr(), 1) };
}
