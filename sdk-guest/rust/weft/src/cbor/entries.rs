//! The entries of an encoded map, without decoding their values.

use super::{Decoder, Error};

/// Encoded entries.
pub struct Entries<'a> {
    list: Vec<Entry<'a>>,
}

struct Entry<'a> {
    key: &'a [u8],
    whole: &'a [u8],
}

impl<'a> Entries<'a> {
    /// Reads n consecutive entries.
    pub fn read(data: &'a [u8], n: usize) -> Result<Self, Error> {
        let mut decoder = Decoder::new(data);
        let mut list = Vec::with_capacity(n);
        for _ in 0..n {
            let start = decoder.offset();
            let key = decoder.raw()?;
            decoder.skip()?;
            list.push(Entry {
                key,
                whole: &data[start..decoder.offset()],
            });
        }
        Ok(Entries { list })
    }

    /// Adds an entry, unless its key exists.
    pub fn add(&mut self, key: &'a [u8], whole: &'a [u8]) {
        if self.list.iter().all(|e| e.key != key) {
            self.list.push(Entry { key, whole });
        }
    }

    /// Sorts the entries by their keys; each key must occur once.
    pub fn sort(&mut self) -> Result<(), Error> {
        self.list.sort_unstable_by(|a, b| a.key.cmp(b.key));
        for pair in self.list.windows(2) {
            if pair[0].key == pair[1].key {
                let key = Self::key_text(pair[0].key);
                return Err(Error::new(format!("the key \"{key}\" is there twice")));
            }
        }
        Ok(())
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// The entries, one after the other.
    pub fn concat(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.list.iter().map(|e| e.whole.len()).sum());
        for entry in &self.list {
            out.extend_from_slice(entry.whole);
        }
        out
    }

    /// An encoded key, for messages.
    pub fn key_text(key: &[u8]) -> String {
        Decoder::new(key).text().unwrap_or("?").to_owned()
    }
}
