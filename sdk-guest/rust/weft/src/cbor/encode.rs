//! Values to bytes.

mod ser;

use serde::ser::Serialize;

use super::entries::Entries;
use super::{
    ARRAY, BYTES, DOUBLE, Error, FALSE, HALF, MAP, MAX_DEPTH, NEGINT, NULL, SINGLE, TEXT, TRUE,
    UINT,
};

/// Collects encoded items.
pub struct Encoder {
    out: Vec<u8>,
    depth: usize,
    limit: usize,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// An empty encoder for values of at most [`MAX_DEPTH`].
    pub fn new() -> Self {
        Self::with_limit(MAX_DEPTH)
    }

    /// An empty encoder for values of at most this depth.
    pub fn with_limit(limit: usize) -> Self {
        Encoder {
            out: Vec::new(),
            depth: 0,
            limit,
        }
    }

    /// The encoded items.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// Writes any value.
    pub fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    /// Writes the head of a list of n items. The caller then writes the items.
    pub fn array(&mut self, n: usize) {
        self.head(ARRAY, n as u64);
    }

    /// Writes the head of a map of n entries. The caller then writes the entries in the order of
    /// their keys.
    pub fn map(&mut self, n: usize) {
        self.head(MAP, n as u64);
    }

    /// Writes a text.
    pub fn text(&mut self, text: &str) {
        self.head(TEXT, text.len() as u64);
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Writes an integer.
    pub fn uint(&mut self, n: u64) {
        self.head(UINT, n);
    }

    /// Writes an integer.
    pub fn int(&mut self, n: i64) {
        if n < 0 {
            self.head(NEGINT, !n as u64);
        } else {
            self.head(UINT, n as u64);
        }
    }

    /// Writes a bool.
    pub fn bool(&mut self, v: bool) {
        self.out.push(if v { TRUE } else { FALSE });
    }

    /// Writes null.
    pub fn null(&mut self) {
        self.out.push(NULL);
    }

    /// Writes an encoded item.
    pub fn raw(&mut self, item: &[u8]) {
        self.out.extend_from_slice(item);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.head(BYTES, bytes.len() as u64);
        self.out.extend_from_slice(bytes);
    }

    fn head(&mut self, major: u8, arg: u64) {
        let (buffer, n) = head(major, arg);
        self.out.extend_from_slice(&buffer[..n]);
    }

    /// Writes a float in the shortest width that keeps its value. A whole
    /// float stays a float.
    fn float(&mut self, v: f64) -> Result<(), Error> {
        if !v.is_finite() {
            return Err(Error::new(
                "a float is NaN or infinite: the data model has finite numbers only",
            ));
        }
        let single = v as f32;
        if f64::from(single) != v {
            self.out.push(DOUBLE);
            self.out.extend_from_slice(&v.to_be_bytes());
        } else if let Some(half) = to_half(single) {
            self.out.push(HALF);
            self.out.extend_from_slice(&half.to_be_bytes());
        } else {
            self.out.push(SINGLE);
            self.out.extend_from_slice(&single.to_be_bytes());
        }
        Ok(())
    }

    /// Begins a list or map: writes its head and notes where its content begins.
    fn open(&mut self, major: u8, len: Option<usize>) -> Result<Open<'_>, Error> {
        if self.depth >= self.limit {
            return Err(Error::new(format!(
                "values nest too deep: at most {} levels can be sent",
                self.limit
            )));
        }
        self.depth += 1;
        let start = self.out.len();
        let announced = len.unwrap_or(0);
        self.head(major, announced as u64);
        let body = self.out.len();
        Ok(Open {
            encoder: self,
            major,
            start,
            body,
            announced,
            count: 0,
            last_key: None,
            sorted: true,
        })
    }

    /// Writes the head of a map with one entry, and its key.
    fn variant(&mut self, name: &str) {
        self.head(MAP, 1);
        self.text(name);
    }
}

/// The shortest head of an item.
fn head(major: u8, arg: u64) -> ([u8; 9], usize) {
    let mut head = [0; 9];
    let (info, n) = match arg {
        0..24 => (arg as u8, 0),
        24..0x100 => (24, 1),
        0x100..0x1_0000 => (25, 2),
        0x1_0000..0x1_0000_0000 => (26, 4),
        _ => (27, 8),
    };
    head[0] = major << 5 | info;
    head[1..=n].copy_from_slice(&arg.to_be_bytes()[8 - n..]);
    (head, 1 + n)
}

/// The half-precision bits of a finite float, if they represent it exactly.
fn to_half(v: f32) -> Option<u16> {
    let bits = v.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let exponent = (bits >> 23 & 0xff) as i32 - 127;
    let fraction = bits & 0x7f_ffff;
    match exponent {
        _ if bits & 0x7fff_ffff == 0 => Some(sign),
        -14..=15 if fraction & 0x1fff == 0 => {
            Some(sign | ((exponent + 15) as u16) << 10 | (fraction >> 13) as u16)
        }
        -24..=-15 => {
            // A subnormal half.
            let full = fraction | 0x80_0000;
            let shift = (-exponent - 1) as u32;
            let exact = full & ((1 << shift) - 1) == 0;
            exact.then_some(sign | (full >> shift) as u16)
        }
        _ => None,
    }
}

/// A list or map that is being written.
pub struct Open<'a> {
    encoder: &'a mut Encoder,
    major: u8,
    start: usize,
    body: usize,
    announced: usize,
    count: usize,
    last_key: Option<(usize, usize)>,
    sorted: bool,
}

impl Open<'_> {
    fn item<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Error> {
        self.count += 1;
        item.serialize(&mut *self.encoder)
            .map_err(|e| e.within(&(self.count - 1).to_string(), None))
    }

    fn key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        let start = self.encoder.out.len();
        key.serialize(&mut *self.encoder)?;
        self.key_written(start)
    }

    /// Checks the key that was written from `start` on.
    fn key_written(&mut self, start: usize) -> Result<(), Error> {
        let out = &self.encoder.out;
        if out[start] >> 5 != TEXT {
            return Err(Error::new(
                "a map has keys that are no text: use String keys, the only ones that the data model has",
            ));
        }
        if let Some((last, end)) = self.last_key {
            self.sorted &= out[last..end] < out[start..];
        }
        self.last_key = Some((start, out.len()));
        self.count += 1;
        Ok(())
    }

    fn map_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let key = self.last_key;
        value.serialize(&mut *self.encoder).map_err(|e| {
            let (start, end) = key.unwrap_or_default();
            let key = Entries::key_text(&self.encoder.out[start..end]);
            e.within(&key, None)
        })
    }

    fn close(self) -> Result<(), Error> {
        self.encoder.depth -= 1;
        if !self.sorted {
            let mut entries = Entries::read(&self.encoder.out[self.body..], self.count)?;
            entries.sort()?;
            let sorted = entries.concat();
            self.encoder.out.truncate(self.body);
            self.encoder.out.extend_from_slice(&sorted);
        }
        if self.count != self.announced {
            let (buffer, n) = head(self.major, self.count as u64);
            self.encoder
                .out
                .splice(self.start..self.body, buffer[..n].iter().copied());
        }
        Ok(())
    }
}
