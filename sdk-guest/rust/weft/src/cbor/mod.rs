//! The CBOR of the ABI, as a serde format: text-keyed maps, lists, text, bytes, integers, finite
//! floats, bools and null.
//!
//! The encoder writes Core Deterministic Encoding (RFC 8949, 4.2.1): shortest heads and floats, map
//! keys in the order of their encodings. The decoder refuses everything that is not plain data:
//! tags, indefinite lengths, other simple values, NaN and the infinities, text that is not UTF-8,
//! duplicate keys, values that nest too deep. It reads a whole float into an integer and an integer
//! into a float, like JSON Schema.
//!
//! The module does not depend on the messages of the ABI.

mod decode;
mod encode;
mod entries;

use std::fmt;

use serde::Serialize;
use serde::de::{DeserializeOwned, Expected, Unexpected};

pub use decode::Decoder;
pub use encode::Encoder;

/// The maximum depth of a value; its outermost list or map is level 1.
pub const MAX_DEPTH: usize = 64;

/// The maximum depth of a whole message: a value, and the lists around it.
pub const MAX_MESSAGE_DEPTH: usize = 72;

/// The name of the newtype whose content is already encoded; see [`crate::Raw`].
pub const RAW: &str = "$weft::Raw";

/// Major types of items.
const UINT: u8 = 0;
const NEGINT: u8 = 1;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;

/// Initial bytes of items without content.
const FALSE: u8 = 0xf4;
const TRUE: u8 = 0xf5;
const NULL: u8 = 0xf6;
const HALF: u8 = 0xf9;
const SINGLE: u8 = 0xfa;
const DOUBLE: u8 = 0xfb;

/// Encodes a value.
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Error> {
    let mut encoder = Encoder::new();
    encoder.value(value)?;
    Ok(encoder.into_bytes())
}

/// Decodes the one value that the data hold.
pub fn from_slice<T: DeserializeOwned>(data: &[u8]) -> Result<T, Error> {
    let mut decoder = Decoder::new(data);
    let value = decoder.value()?;
    decoder.end()?;
    Ok(value)
}

/// Says what is wrong with data, and where.
#[derive(Debug)]
pub struct Error(Box<Fault>);

#[derive(Debug)]
struct Fault {
    /// Keys and indices down to the value, dotted, as far as they are known.
    path: String,
    /// The offset of the item in bytes; unknown when encoding.
    offset: Option<usize>,
    message: String,
}

impl Error {
    #[cold]
    fn new(message: impl Into<String>) -> Self {
        Error(Box::new(Fault {
            path: String::new(),
            offset: None,
            message: message.into(),
        }))
    }

    #[cold]
    fn at(offset: usize, message: impl Into<String>) -> Self {
        let mut error = Self::new(message);
        error.0.offset = Some(offset);
        error
    }

    /// Prepends a key or an index to the path, and sets the value's offset if it is unknown.
    /// Callers do this after an error, so that a path costs nothing without one.
    #[cold]
    pub fn within(mut self, step: &str, offset: Option<usize>) -> Self {
        let path = &mut self.0.path;
        if !path.is_empty() {
            path.insert(0, '.');
        }
        path.insert_str(0, step);
        self.0.offset = self.0.offset.or(offset);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault = &*self.0;
        match (fault.path.is_empty(), fault.offset) {
            (false, Some(offset)) => write!(f, "{} (at byte {offset}): ", fault.path)?,
            (false, None) => write!(f, "{}: ", fault.path)?,
            (true, Some(offset)) => write!(f, "at byte {offset}: ")?,
            (true, None) => {}
        }
        f.write_str(&fault.message)
    }
}

impl std::error::Error for Error {}

impl serde::ser::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Error::new(message.to_string())
    }
}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Error::new(message.to_string())
    }

    // The two functions below name the kind of a value, but not the value: serde's own functions
    // would link the formatter of floats, 10 KB of every guest.

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Error::new(format!("{} where {expected} is expected", kind(&found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let kind = kind(&found);
        Error::new(format!("{kind} beyond what is expected, {expected}"))
    }
}

/// The kind of a value, for messages.
fn kind(found: &Unexpected<'_>) -> &'static str {
    match found {
        Unexpected::Bool(_) => "a bool",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) => "an integer",
        Unexpected::Float(_) => "a float",
        Unexpected::Char(_) | Unexpected::Str(_) => "text",
        Unexpected::Bytes(_) => "bytes",
        Unexpected::Unit | Unexpected::Option => "null",
        Unexpected::Seq => "a list",
        Unexpected::Map => "a map",
        _ => "another value",
    }
}
