//! Values of any type.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cbor;
use crate::error::{Error, Result};

/// Any value of the data model.
///
/// ```
/// use weft::Value;
///
/// let order = Value::map([("sku", "A-1".into()), ("lines", Value::list([1, 2]))]);
/// assert_eq!(order.get("sku").and_then(Value::as_str), Some("A-1"));
/// assert_eq!(order.get("lines").unwrap().read::<Vec<u8>>()?, [1, 2]);
/// # Ok::<(), weft::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// Null.
    #[default]
    Null,
    /// True or false.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer beyond [`i64::MAX`].
    BigInt(u64),
    /// A finite number, whole or not: 1.0 is not an integer.
    Float(f64),
    /// Text.
    Text(String),
    /// Bytes, which JSON shows as `{"$bytes": "BASE64"}`.
    Bytes(Vec<u8>),
    /// A list.
    List(Vec<Value>),
    /// A map.
    Map(BTreeMap<String, Value>),
}

impl Value {
    /// Makes a map of entries.
    pub fn map<K: Into<String>>(entries: impl IntoIterator<Item = (K, Value)>) -> Self {
        // Insert the entries one by one: collecting them would add a sort to the guest.
        let mut map = BTreeMap::new();
        for (key, value) in entries {
            map.insert(key.into(), value);
        }
        Value::Map(map)
    }

    /// Makes a list of items.
    pub fn list<V: Into<Value>>(items: impl IntoIterator<Item = V>) -> Self {
        Value::List(items.into_iter().map(Into::into).collect())
    }

    /// Converts data to a value.
    pub fn of<T: Serialize + ?Sized>(data: &T) -> Result<Self> {
        let bytes = cbor::to_vec(data).map_err(Error::misuse)?;
        cbor::from_slice(&bytes).map_err(Error::misuse)
    }

    /// Converts the value to a type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        let bytes = cbor::to_vec(self).map_err(Error::misuse)?;
        cbor::from_slice(&bytes).map_err(Error::misuse)
    }

    /// The value of a key, if this is a map with that key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_map()?.get(key)
    }

    /// The bool, if this is a bool.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(v) => Some(*v),
            _ => None,
        }
    }

    /// The integer, if this is an integer within the type's range.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int(v) => Some(*v),
            _ => None,
        }
    }

    /// The number as a float, if this is a number.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Int(v) => Some(*v as f64),
            Value::BigInt(v) => Some(*v as f64),
            Value::Float(v) => Some(*v),
            _ => None,
        }
    }

    /// The text, if this is text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(v) => Some(v),
            _ => None,
        }
    }

    /// The list, if this is a list.
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Value::List(v) => Some(v),
            _ => None,
        }
    }

    /// The map, if this is a map.
    pub fn as_map(&self) -> Option<&BTreeMap<String, Value>> {
        match self {
            Value::Map(v) => Some(v),
            _ => None,
        }
    }
}

macro_rules! from {
    ($($variant:ident: $($type:ty),+;)*) => {$($(
        impl From<$type> for Value {
            fn from(v: $type) -> Self {
                Value::$variant(v.into())
            }
        }
    )+)*};
}

from! {
    Bool: bool;
    Int: i8, i16, i32, i64, u8, u16, u32;
    Float: f32, f64;
    Text: &str, String;
    List: Vec<Value>;
    Map: BTreeMap<String, Value>;
}

impl From<u64> for Value {
    fn from(v: u64) -> Self {
        i64::try_from(v).map_or(Value::BigInt(v), Value::Int)
    }
}

impl From<usize> for Value {
    fn from(v: usize) -> Self {
        Value::from(v as u64)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(v: Option<T>) -> Self {
        v.map_or(Value::Null, Into::into)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(v) => serializer.serialize_bool(*v),
            Value::Int(v) => serializer.serialize_i64(*v),
            Value::BigInt(v) => serializer.serialize_u64(*v),
            Value::Float(v) => serializer.serialize_f64(*v),
            Value::Text(v) => serializer.serialize_str(v),
            Value::Bytes(v) => serializer.serialize_bytes(v),
            Value::List(v) => serializer.collect_seq(v),
            Value::Map(v) => serializer.collect_map(v),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> std::result::Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> std::result::Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> std::result::Result<Value, D::Error> {
        inner.deserialize_any(self)
    }

    fn visit_bool<E>(self, v: bool) -> std::result::Result<Value, E> {
        Ok(v.into())
    }

    fn visit_i64<E>(self, v: i64) -> std::result::Result<Value, E> {
        Ok(v.into())
    }

    fn visit_u64<E>(self, v: u64) -> std::result::Result<Value, E> {
        Ok(v.into())
    }

    fn visit_f64<E>(self, v: f64) -> std::result::Result<Value, E> {
        Ok(v.into())
    }

    fn visit_str<E>(self, v: &str) -> std::result::Result<Value, E> {
        Ok(v.into())
    }

    fn visit_string<E>(self, v: String) -> std::result::Result<Value, E> {
        Ok(v.into())
    }

    fn visit_bytes<E>(self, v: &[u8]) -> std::result::Result<Value, E> {
        Ok(Value::Bytes(v.to_vec()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Value, A::Error> {
        let mut list = Vec::new(); // grows as items arrive, not by the declared count
        while let Some(item) = seq.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Value, A::Error> {
        let mut dict = BTreeMap::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value()?;
            if let Some(entry) = dict.insert(key, value) {
                drop(entry);
                return Err(de::Error::custom("a key is there twice"));
            }
        }
        if dict.len() == 1 && dict.contains_key("$bytes") {
            return Err(de::Error::custom(
                "a map with the one key $bytes: JSON uses it for bytes",
            ));
        }
        Ok(Value::Map(dict))
    }
}

/// Bytes. (A `Vec<u8>` is a list of numbers.)
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_bytes(BytesVisitor).map(Bytes)
    }
}

struct BytesVisitor;

impl Visitor<'_> for BytesVisitor {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E>(self, v: &[u8]) -> std::result::Result<Vec<u8>, E> {
        Ok(v.to_vec())
    }
}

/// An encoded value, for steps that only pass a value on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raw(Vec<u8>);

impl Raw {
    /// Encodes a value immediately.
    pub fn of<T: Serialize + ?Sized>(data: &T) -> Result<Self> {
        cbor::to_vec(data).map(Raw).map_err(Error::misuse)
    }

    /// Decodes the value as a type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        cbor::from_slice(&self.0).map_err(Error::misuse)
    }

    /// One encoded value.
    pub(crate) fn encoded(bytes: Vec<u8>) -> Self {
        Raw(bytes)
    }

    /// The encoded value.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Default for Raw {
    /// Null.
    fn default() -> Self {
        Raw(vec![0xf6])
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        struct Item<'a>(&'a [u8]);
        impl Serialize for Item<'_> {
            fn serialize<S: Serializer>(
                &self,
                serializer: S,
            ) -> std::result::Result<S::Ok, S::Error> {
                serializer.serialize_bytes(self.0)
            }
        }
        serializer.serialize_newtype_struct(cbor::RAW, &Item(&self.0))
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer
            .deserialize_newtype_struct(cbor::RAW, BytesVisitor)
            .map(Raw)
    }
}
