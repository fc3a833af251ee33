//! The implementation of serde's `Deserializer`.

use std::ops::Range;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, IntoDeserializer, Visitor};

use super::Decoder;
use crate::cbor::{
    ARRAY, BYTES, DOUBLE, Error, FALSE, HALF, MAP, NEGINT, NULL, RAW, SINGLE, TEXT, TRUE, UINT,
};

impl<'de> Decoder<'de> {
    /// Reads a number in its own type. If `whole` is set, it reads a whole float as an integer.
    fn number<V: Visitor<'de>>(&mut self, visitor: V, whole: bool) -> Result<V::Value, Error> {
        let start = self.offset;
        let result = match self.peek() >> 5 {
            UINT => {
                let (_, n) = self.head()?;
                visitor.visit_u64(n)
            }
            NEGINT => {
                let (_, n) = self.head()?;
                match i64::try_from(n) {
                    Ok(n) => visitor.visit_i64(!n),
                    Err(_) => return Err(Error::at(start, "an integer below -2^63")),
                }
            }
            _ if matches!(self.peek(), HALF | SINGLE | DOUBLE) => {
                let v = self.float()?;
                // A float of 2^63 or more does not fit an i64.
                if whole && v.trunc() == v && v.abs() < 9_223_372_036_854_775_808.0 {
                    visitor.visit_i64(v as i64)
                } else {
                    visitor.visit_f64(v)
                }
            }
            _ => return Err(self.expected("a number")),
        };
        result.map_err(|e: Error| e.located(start))
    }

    fn list<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Error> {
        let start = self.offset;
        let left = self.array()?;
        self.enter(start, self.limit)?;
        let mut items = Items {
            decoder: self,
            left,
            index: 0,
        };
        let value = visitor
            .visit_seq(&mut items)
            .map_err(|e| e.located(start))?;
        if items.left > 0 {
            let (index, left) = (items.index, items.left);
            return Err(Error::at(
                start,
                format!(
                    "a list of {} where one of {index} is expected",
                    index + left
                ),
            ));
        }
        self.depth -= 1;
        Ok(value)
    }

    fn dict<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Error> {
        let start = self.offset;
        let left = self.map()?;
        self.enter(start, self.limit)?;
        let mut fields = Fields {
            top: self.depth == 1,
            decoder: self,
            left,
            key: "",
            key_at: 0..0,
        };
        let value = visitor
            .visit_map(&mut fields)
            .map_err(|e| e.located(start))?;
        if fields.left > 0 {
            return Err(Error::at(start, "a map with more entries than expected"));
        }
        self.depth -= 1;
        Ok(value)
    }
}

impl<'de> de::Deserializer<'de> for &mut Decoder<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let start = self.offset;
        let result = match self.peek() >> 5 {
            UINT | NEGINT => return self.number(visitor, false),
            BYTES => visitor.visit_borrowed_bytes(self.chunk(BYTES, "bytes")?),
            TEXT => visitor.visit_borrowed_str(self.text()?),
            ARRAY => return self.list(visitor),
            MAP => return self.dict(visitor),
            _ => match self.peek() {
                FALSE | TRUE => visitor.visit_bool(self.bool()?),
                NULL => {
                    self.offset += 1;
                    visitor.visit_unit()
                }
                HALF | SINGLE | DOUBLE => return self.number(visitor, false),
                _ => return Err(self.expected("plain data")),
            },
        };
        result.map_err(|e: Error| e.located(start))
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.peek() {
            HALF | SINGLE | DOUBLE => self.number(visitor, true),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_i16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name == RAW {
            visitor.visit_borrowed_bytes(self.raw()?)
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if self.peek() >> 5 == MAP {
            let start = self.offset;
            if self.map()? != 1 {
                return Err(Error::at(
                    start,
                    "an enum is a map with one entry, or a text",
                ));
            }
            self.enter(start, self.limit)?;
            let value = visitor.visit_enum(Variant { decoder: self })?;
            self.depth -= 1;
            return Ok(value);
        }
        visitor.visit_enum(self.text()?.into_deserializer())
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let start = self.offset;
        self.skip()?;
        self.ignored = start..self.offset;
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        bool f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map
        struct identifier
    }
}

/// The items of a list that is being read.
struct Items<'a, 'de> {
    decoder: &'a mut Decoder<'de>,
    left: usize,
    index: usize,
}

impl<'de> de::SeqAccess<'de> for Items<'_, 'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let start = self.decoder.offset;
        let value = seed
            .deserialize(&mut *self.decoder)
            .map_err(|e| e.within(&self.index.to_string(), Some(start)))?;
        self.index += 1;
        Ok(Some(value))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

/// The entries of a map that is being read.
struct Fields<'a, 'de> {
    decoder: &'a mut Decoder<'de>,
    left: usize,
    key: &'de str,
    key_at: Range<usize>,
    top: bool,
}

impl<'de> de::MapAccess<'de> for Fields<'_, 'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let start = self.decoder.offset;
        let key = self.decoder.text()?;
        // The host sends keys in order, so equal keys are adjacent.
        if key == self.key && !self.key_at.is_empty() {
            return Err(Error::at(
                start,
                format!("the key \"{key}\" is there twice"),
            ));
        }
        self.key = key;
        self.key_at = start..self.decoder.offset;
        let key = de::value::BorrowedStrDeserializer::<Error>::new(key);
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let start = self.decoder.offset;
        let value = seed
            .deserialize(&mut *self.decoder)
            .map_err(|e| e.within(self.key, Some(start)))?;
        let end = self.decoder.offset;
        if self.top
            && self.decoder.ignored == (start..end)
            && let Some(rest) = &mut self.decoder.rest
        {
            rest.push((self.key_at.clone(), self.key_at.start..end));
        }
        Ok(value)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

/// The one entry of a map that is an enum with data.
struct Variant<'a, 'de> {
    decoder: &'a mut Decoder<'de>,
}

impl<'de> de::EnumAccess<'de> for Variant<'_, 'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        let name = seed.deserialize(&mut *self.decoder)?;
        Ok((name, self))
    }
}

impl<'de> de::VariantAccess<'de> for Variant<'_, 'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        <()>::deserialize(self.decoder)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self.decoder)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.decoder.list(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.decoder.dict(visitor)
    }
}
