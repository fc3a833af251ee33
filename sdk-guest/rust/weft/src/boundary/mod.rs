//! The imports of the ABI as safe functions. This is the only unsafe code of the crate. A native
//! build has no host: its calls go to the host that [`native::with`] sets for the thread.
//!
//! The module does not depend on the meaning of messages.

#[cfg(target_arch = "wasm32")]
#[allow(unsafe_code)]
mod wasm;
#[cfg(target_arch = "wasm32")]
pub use wasm::*;

#[cfg(not(target_arch = "wasm32"))]
pub mod native;
#[cfg(not(target_arch = "wasm32"))]
pub use native::*;

/// The answer of a host call: a status, 0 for ok, and the response.
pub type Answer = (u32, Vec<u8>);
