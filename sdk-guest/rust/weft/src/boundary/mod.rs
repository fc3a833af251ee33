//! The imports of the ABI, as safe functions: the only unsafe code of the
//! crate. A native build has no host; there they go to what [`native::with`]
//! put in place for the thread.
//!
//! The module must not know what any message means.

#[cfg(target_arch = "wasm32")]
#[allow(unsafe_code)]
mod wasm;
#[cfg(target_arch = "wasm32")]
pub use wasm::*;

#[cfg(not(target_arch = "wasm32"))]
pub mod native;
#[cfg(not(target_arch = "wasm32"))]
pub use native::*;

/// A host call's answer: a status, 0 for ok, and the response.
pub type Answer = (u32, Vec<u8>);
