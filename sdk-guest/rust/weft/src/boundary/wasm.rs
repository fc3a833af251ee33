//! The imports in a WebAssembly module.

use super::Answer;

/// Declares a host call, and a safe function for it. Every call has its own function, so that a
/// plugin imports only the calls that it uses.
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(request: &[u8]) -> Answer {
            #[link(wasm_import_module = "weft:v1")]
            unsafe extern "C" {
                fn $name(src: *const u8, len: usize) -> u64;
            }
            // SAFETY: the host reads len bytes from src, and keeps neither.
            answer(unsafe { $name(request.as_ptr(), request.len()) })
        }
    )*};
}

calls! {
    /// Asks for a value of the state.
    state_get;
    /// Makes a batch of edits.
    state_edit;
    /// Opens an edit.
    state_begin;
    /// Ends the open edit with a new value.
    state_commit;
    /// Ends the open edit and changes nothing.
    state_abort;
    /// Emits an event.
    send_event;
    /// Buffers an event until a set is complete.
    collect_events;
    /// Publishes an event to the run's stream.
    write_event_to_stream;
    /// Calls a granted resource; suspends the invocation until it answers.
    call_resource;
    /// Suspends the invocation until an event comes.
    wait_for_event;
    /// Runs a child workflow; suspends the invocation until it ends.
    run_workflow;
    /// Suspends the invocation for a time.
    sleep;
    /// Asks for the time.
    now;
    /// Asks for random bytes.
    random;
    /// Writes a log record.
    log;
}

mod host {
    #[link(wasm_import_module = "weft:v1")]
    unsafe extern "C" {
        pub fn input(dst: *mut u8, offset: usize, len: usize);
        pub fn response(dst: *mut u8, offset: usize, len: usize);
        pub fn output(src: *const u8, len: usize);
    }

    #[link(wasm_import_module = "wasi_snapshot_preview1")]
    unsafe extern "C" {
        pub fn fd_write(fd: u32, vectors: *const Vector, n: usize, written: *mut usize) -> u32;
    }

    /// A part of the written text.
    #[repr(C)]
    pub struct Vector {
        pub src: *const u8,
        pub len: usize,
    }
}

/// Splits the result of a host call and fetches the response.
fn answer(packed: u64) -> Answer {
    let status = (packed >> 32) as u32;
    let response = fetch(packed as u32 as usize, |dst, len| {
        // SAFETY: dst has room for len bytes, as many as the response has.
        unsafe { host::response(dst, 0, len) }
    });
    (status, response)
}

/// Fetches the invocation's input, which has len bytes.
pub fn input(len: usize) -> Vec<u8> {
    fetch(len, |dst, len| {
        // SAFETY: dst has room for len bytes, as many as the input has.
        unsafe { host::input(dst, 0, len) }
    })
}

/// Calls `copy` to fill a vector of len bytes.
fn fetch(len: usize, copy: impl FnOnce(*mut u8, usize)) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len);
    if len > 0 {
        copy(bytes.as_mut_ptr(), len);
        // SAFETY: copy has written len bytes; the host traps if it cannot.
        unsafe { bytes.set_len(len) }
    }
    bytes
}

/// Hands over the invocation's result, or the manifest.
pub fn output(output: &[u8]) {
    // SAFETY: the host reads len bytes from src, and keeps neither.
    unsafe { host::output(output.as_ptr(), output.len()) }
}

/// Writes a line to standard output (1) or error (2), which becomes a log
/// record, and a part of the message if the guest traps.
pub fn print(fd: u32, line: &str) {
    let part = |text: &str| host::Vector {
        src: text.as_ptr(),
        len: text.len(),
    };
    let vectors = [part(line), part("\n")];
    let mut written = 0;
    // SAFETY: there are two vectors, each names readable memory, and written
    // may be written.
    unsafe { host::fd_write(fd, vectors.as_ptr(), vectors.len(), &mut written) };
}
