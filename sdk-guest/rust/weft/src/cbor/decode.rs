//! Bytes to values.

mod de;

use std::ops::Range;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::entries::Entries;
use super::{
    ARRAY, BYTES, DOUBLE, Encoder, Error, FALSE, HALF, MAP, MAX_DEPTH, MAX_MESSAGE_DEPTH, NEGINT,
    NULL, SINGLE, TEXT, TRUE, UINT,
};

/// Reads items one after the other. Hostile data cause an error, never a panic. The decoder never
/// allocates more memory than the data can fill.
pub struct Decoder<'de> {
    data: &'de [u8],
    offset: usize,
    depth: usize,
    limit: usize,
    /// The value that was ignored last.
    ignored: Range<usize>,
    /// Undeclared entries of the outermost map, if the caller keeps them.
    rest: Option<Vec<(Range<usize>, Range<usize>)>>,
}

impl<'de> Decoder<'de> {
    /// Reads data with values of at most [`MAX_DEPTH`].
    pub fn new(data: &'de [u8]) -> Self {
        Self::with_limit(data, MAX_DEPTH)
    }

    /// Reads data with values of at most this depth.
    pub fn with_limit(data: &'de [u8], limit: usize) -> Self {
        Decoder {
            data,
            offset: 0,
            depth: 0,
            limit,
            ignored: 0..0,
            rest: None,
        }
    }

    /// Where the next item begins.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Whether all data was read.
    pub fn is_at_end(&self) -> bool {
        self.offset == self.data.len()
    }

    /// Fails if data is left.
    pub fn end(&self) -> Result<(), Error> {
        if self.is_at_end() {
            return Ok(());
        }
        Err(self.fault("more data than the one item expected"))
    }

    /// An error at the next item.
    #[cold]
    pub fn fault(&self, message: &str) -> Error {
        Error::at(self.offset, message)
    }

    #[cold]
    fn expected(&self, what: &str) -> Error {
        match self.data.get(self.offset) {
            None => self.fault("the data end too early"),
            Some(initial) => {
                self.fault(&format!("{} where {what} is expected", describe(*initial)))
            }
        }
    }

    /// The next item's initial byte; at the end, a byte that no item has.
    fn peek(&self) -> u8 {
        self.data.get(self.offset).copied().unwrap_or(0xff)
    }

    /// Reads an item's head: its major type and argument. The offset does not change if that fails.
    fn head(&mut self) -> Result<(u8, u64), Error> {
        let Some(&initial) = self.data.get(self.offset) else {
            return Err(self.fault("the data end too early"));
        };
        let info = initial & 0x1f;
        let n = match info {
            0..24 => 0,
            24..28 => 1usize << (info - 24),
            _ => return Err(self.fault("an indefinite length or a reserved head")),
        };
        let from = self.offset + 1;
        let Some(bytes) = self.data.get(from..from + n) else {
            return Err(self.fault("the data end too early"));
        };
        let arg = bytes.iter().fold(0, |arg, b| arg << 8 | u64::from(*b));
        self.offset = from + n;
        Ok((initial >> 5, if n == 0 { info.into() } else { arg }))
    }

    /// Reads a head whose argument counts the following items.
    fn count(&mut self, major: u8, what: &str) -> Result<usize, Error> {
        if self.peek() >> 5 != major {
            return Err(self.expected(what));
        }
        let start = self.offset;
        let (_, n) = self.head()?;
        self.fits(start, n)
    }

    /// Checks a count of items with at least one byte each.
    fn fits(&self, start: usize, n: u64) -> Result<usize, Error> {
        let left = self.data.len() - self.offset;
        match usize::try_from(n) {
            Ok(n) if n <= left => Ok(n),
            _ => Err(Error::at(start, "a length beyond the end of the data")),
        }
    }

    fn chunk(&mut self, major: u8, what: &str) -> Result<&'de [u8], Error> {
        let n = self.count(major, what)?;
        let chunk = &self.data[self.offset..self.offset + n];
        self.offset += n;
        Ok(chunk)
    }

    /// Reads a list's head: the number of its items.
    pub fn array(&mut self) -> Result<usize, Error> {
        self.count(ARRAY, "a list")
    }

    /// Reads a map's head: the number of its entries.
    pub fn map(&mut self) -> Result<usize, Error> {
        self.count(MAP, "a map")
    }

    /// Reads a text.
    pub fn text(&mut self) -> Result<&'de str, Error> {
        let start = self.offset;
        let bytes = self.chunk(TEXT, "text")?;
        std::str::from_utf8(bytes).map_err(|_| Error::at(start, "text that is not UTF-8"))
    }

    /// Reads a bool.
    pub fn bool(&mut self) -> Result<bool, Error> {
        match self.peek() {
            v @ (FALSE | TRUE) => {
                self.offset += 1;
                Ok(v == TRUE)
            }
            _ => Err(self.expected("a bool")),
        }
    }

    /// Reads null if it is next.
    pub fn null(&mut self) -> bool {
        let is = self.peek() == NULL;
        self.offset += usize::from(is);
        is
    }

    /// Reads a value of a type that implements serde's traits.
    pub fn value<T: Deserialize<'de>>(&mut self) -> Result<T, Error> {
        T::deserialize(self)
    }

    /// Reads a map into a value, and keeps the entries that the value's type does not declare.
    pub fn open_value<T: DeserializeOwned>(mut self) -> Result<(T, Rest<'de>), Error> {
        self.rest = Some(Vec::new());
        let value = T::deserialize(&mut self)?;
        self.end()?;
        let entries = self.rest.take().unwrap_or_default();
        Ok((
            value,
            Rest {
                data: self.data,
                entries,
            },
        ))
    }

    /// Reads one item and returns its bytes.
    pub fn raw(&mut self) -> Result<&'de [u8], Error> {
        let start = self.offset;
        self.skip()?;
        Ok(&self.data[start..self.offset])
    }

    /// Reads one item and drops it.
    pub fn skip(&mut self) -> Result<(), Error> {
        let start = self.offset;
        let initial = self.peek();
        let (major, n) = self.head()?;
        match major {
            UINT | NEGINT => {}
            BYTES | TEXT => self.offset += self.fits(start, n)?,
            ARRAY | MAP => {
                let n = self.fits(start, n)?;
                self.enter(start, MAX_MESSAGE_DEPTH)?;
                for _ in 0..n {
                    if major == MAP {
                        self.skip()?;
                    }
                    self.skip()?;
                }
                self.depth -= 1;
            }
            _ => {
                if !matches!(initial, FALSE | TRUE | NULL | HALF | SINGLE | DOUBLE) {
                    return Err(Error::at(
                        start,
                        format!("{} where plain data is expected", describe(initial)),
                    ));
                }
            }
        }
        Ok(())
    }

    fn enter(&mut self, start: usize, limit: usize) -> Result<(), Error> {
        if self.depth >= limit {
            return Err(Error::at(start, "values nest too deep"));
        }
        self.depth += 1;
        Ok(())
    }

    fn float(&mut self) -> Result<f64, Error> {
        let start = self.offset;
        let initial = self.peek();
        let (_, bits) = self.head()?;
        let v = match initial {
            HALF => from_half(bits as u16),
            SINGLE => f64::from(f32::from_bits(bits as u32)),
            _ => f64::from_bits(bits),
        };
        if v.is_finite() {
            Ok(v)
        } else {
            Err(Error::at(start, "a number that is not finite"))
        }
    }
}

/// The entries of the outermost map of a value that its type does not declare.
pub struct Rest<'de> {
    data: &'de [u8],
    entries: Vec<(Range<usize>, Range<usize>)>,
}

impl Rest<'_> {
    /// Adds the entries to an encoded map, which has none of their keys.
    pub fn merge_into(&self, map: Vec<u8>) -> Result<Vec<u8>, Error> {
        if self.entries.is_empty() {
            return Ok(map);
        }
        let mut decoder = Decoder::new(&map);
        let n = decoder.map()?;
        let mut entries = Entries::read(&map[decoder.offset()..], n)?;
        for (key, whole) in &self.entries {
            entries.add(&self.data[key.clone()], &self.data[whole.clone()]);
        }
        entries.sort()?;
        let mut encoder = Encoder::new();
        encoder.map(entries.len());
        encoder.raw(&entries.concat());
        Ok(encoder.into_bytes())
    }
}

impl Error {
    fn located(mut self, offset: usize) -> Self {
        self.0.offset = self.0.offset.or(Some(offset));
        self
    }
}

/// Names the kind of an item by its initial byte, for messages.
fn describe(initial: u8) -> &'static str {
    match initial >> 5 {
        UINT | NEGINT => "an integer",
        BYTES => "bytes",
        TEXT => "text",
        ARRAY => "a list",
        MAP => "a map",
        6 => "a tag",
        _ => match initial {
            FALSE | TRUE => "a bool",
            NULL => "null",
            HALF | SINGLE | DOUBLE => "a float",
            _ => "an unknown item",
        },
    }
}

/// Widens half-precision bits.
fn from_half(bits: u16) -> f64 {
    let sign = u32::from(bits & 0x8000) << 16;
    let exponent = u32::from(bits >> 10 & 0x1f);
    let fraction = u32::from(bits & 0x3ff);
    match exponent {
        0 => {
            let magnitude = f64::from(fraction) / f64::from(1 << 24);
            if sign == 0 { magnitude } else { -magnitude }
        }
        31 => f64::NAN, // or infinite: neither is data
        _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13).into(),
    }
}
