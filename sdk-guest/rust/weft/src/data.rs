//! Types of events and the state, and their JSON Schema.

use std::any::TypeId;
use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::value::{Bytes, Raw, Value};

/// A type that events and the state may hold: it can be written, read and described. Use
/// `#[derive(Data)]`; numbers, bools, text, [`Bytes`], [`Value`], `Option`, `Vec`, `Box`,
/// tuples and maps with `String` keys implement it.
///
/// A type of another crate that implements only serde's traits may be a field of a struct
/// that derives `Data`, if the field has the option `#[weft(any)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a part of an event or of the state",
    note = "put #[derive(Data)] on it; for a type that has serde's traits, put #[weft(any)] on the field",
    note = "texts are String, not &str, and maps have String keys"
)]
pub trait Data: Serialize + DeserializeOwned {
    /// Whether a field of the type may be absent.
    const OPTIONAL: bool = false;

    /// The JSON Schema of the type.
    fn schema(open: &mut Open) -> Value;

    /// Whether a field with this value is left out.
    fn is_absent(&self) -> bool {
        false
    }

    /// The value of an absent field, if the field may be absent.
    fn absent() -> Option<Self> {
        None
    }
}

/// The types whose schema is being made. The schema of a recursive occurrence is open.
#[derive(Default)]
pub struct Open {
    types: Vec<TypeId>,
}

impl Open {
    /// Makes the schema of a map with declared keys.
    #[doc(hidden)]
    pub fn object(&mut self, id: TypeId, fields: impl FnOnce(&mut Object)) -> Value {
        if self.types.contains(&id) {
            return typed("object", []);
        }
        self.types.push(id);
        let mut object = Object {
            open: self,
            fields: Vec::new(),
        };
        fields(&mut object);
        let schema = object.schema();
        self.types.pop();
        schema
    }
}

/// The schema of a map that is being made.
#[doc(hidden)]
pub struct Object<'a> {
    open: &'a mut Open,
    fields: Vec<Field>,
}

/// The schema of a field that is being made.
#[doc(hidden)]
pub struct Field {
    key: &'static str,
    schema: BTreeMap<String, Value>,
    required: bool,
}

impl Object<'_> {
    pub fn field<T: Data>(&mut self, key: &'static str) -> &mut Field {
        let schema = T::schema(self.open);
        self.add(key, schema, !T::OPTIONAL)
    }

    pub fn any_field(&mut self, key: &'static str) -> &mut Field {
        self.add(key, anything(), true)
    }

    fn add(&mut self, key: &'static str, schema: Value, required: bool) -> &mut Field {
        let schema = match schema {
            Value::Map(schema) => schema,
            _ => BTreeMap::new(),
        };
        self.fields.push(Field {
            key,
            schema,
            required,
        });
        let last = self.fields.len() - 1;
        &mut self.fields[last]
    }

    fn schema(self) -> Value {
        let required: Vec<_> = self.fields.iter().filter(|f| f.required).collect();
        let required = Value::list(required.into_iter().map(|f| f.key));
        let properties = self
            .fields
            .into_iter()
            .map(|f| (f.key, Value::Map(f.schema)));
        let mut schema = typed("object", [("properties", Value::map(properties))]);
        if required.as_list().is_some_and(|list| !list.is_empty()) {
            set(&mut schema, "required", required);
        }
        schema
    }
}

impl Field {
    pub fn set(&mut self, key: &str, value: impl Into<Value>) -> &mut Self {
        self.schema.insert(key.to_owned(), value.into());
        self
    }

    /// A bound; only for numbers.
    pub fn bound(&mut self, key: &str, value: impl Into<Value>) -> &mut Self {
        let kind = self.schema.get("type").and_then(Value::as_str);
        if !matches!(kind, Some("integer" | "number")) {
            panic!("field {}: only numbers take min and max", self.key);
        }
        self.set(key, value)
    }

    /// The value of the field when it is absent. The field is then optional.
    pub fn default<T: Serialize>(&mut self, value: &T) -> &mut Self {
        self.required = false;
        match Value::of(value) {
            Ok(value) => self.set("default", value),
            Err(e) => panic!("field {}: the default: {e}", self.key),
        }
    }
}

/// The schema of a type with further keywords.
fn typed<const N: usize>(name: &str, keywords: [(&str, Value); N]) -> Value {
    let mut schema = Value::map(keywords);
    set(&mut schema, "type", name.into());
    schema
}

/// The schema that allows everything.
fn anything() -> Value {
    Value::Map(BTreeMap::new())
}

/// Sets a keyword of a schema.
pub(crate) fn set(schema: &mut Value, key: &str, value: Value) {
    if let Value::Map(schema) = schema {
        schema.insert(key.to_owned(), value);
    }
}

/// The schema of a text that is one of several.
#[doc(hidden)]
pub fn enum_schema(names: &[&str]) -> Value {
    typed("string", [("enum", Value::list(names.iter().copied()))])
}

macro_rules! plain {
    ($($schema:expr => $($type:ty),+;)*) => {$($(
        impl Data for $type {
            fn schema(_: &mut Open) -> Value {
                $schema
            }
        }
    )+)*};
}

plain! {
    typed("boolean", []) => bool;
    typed("integer", []) => i8, i16, i32, i64, isize;
    typed("integer", [("minimum", 0.into())]) => u8, u16, u32, u64, usize;
    typed("number", []) => f32, f64;
    typed("string", []) => String, char;
    anything() => Value, Bytes, Raw;
}

impl<T: Data> Data for Option<T> {
    const OPTIONAL: bool = true;

    fn schema(open: &mut Open) -> Value {
        T::schema(open)
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: Data> Data for Box<T> {
    const OPTIONAL: bool = T::OPTIONAL;

    fn schema(open: &mut Open) -> Value {
        T::schema(open)
    }

    fn is_absent(&self) -> bool {
        T::is_absent(self)
    }

    fn absent() -> Option<Self> {
        T::absent().map(Box::new)
    }
}

/// A container's schema. It does not describe elements that may be null.
fn container<T: Data>(open: &mut Open, name: &str, keyword: &str) -> Value {
    if T::OPTIONAL {
        return typed(name, []);
    }
    let parts = T::schema(open);
    typed(name, [(keyword, parts)])
}

impl<T: Data> Data for Vec<T> {
    fn schema(open: &mut Open) -> Value {
        container::<T>(open, "array", "items")
    }
}

impl<T: Data> Data for BTreeMap<String, T> {
    fn schema(open: &mut Open) -> Value {
        container::<T>(open, "object", "additionalProperties")
    }
}

impl<T: Data> Data for HashMap<String, T> {
    fn schema(open: &mut Open) -> Value {
        container::<T>(open, "object", "additionalProperties")
    }
}

/// The schema of a list of n parts. The host's schemas of the state have no keyword for
/// the type of each part.
fn tuple(n: usize) -> Value {
    typed("array", [("minItems", n.into()), ("maxItems", n.into())])
}

macro_rules! tuples {
    ($($n:literal: $($part:ident)+;)*) => {$(
        impl<$($part: Data),+> Data for ($($part,)+) {
            fn schema(_: &mut Open) -> Value {
                tuple($n)
            }
        }
    )*};
}

tuples! {
    1: A;
    2: A B;
    3: A B C;
    4: A B C D;
    5: A B C D E;
    6: A B C D E F;
}
