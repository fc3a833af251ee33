//! What a schema says of a value: the part of JSON Schema that a server checks, of
//! which the SDK makes schemas.

use crate::value::Value;

/// The first fault of a value: where, as a path with dots, and what.
pub type Fault = (String, String);

/// Checks a value against a schema.
pub fn check(schema: &Value, value: &Value) -> Result<(), Fault> {
    at(schema, value, "")
}

fn at(schema: &Value, value: &Value, path: &str) -> Result<(), Fault> {
    if let Some(fault) = own(schema, value) {
        return Err((path.to_owned(), fault));
    }
    match value {
        Value::Map(map) => {
            let required = schema.get("required").and_then(Value::as_list);
            for key in required
                .unwrap_or_default()
                .iter()
                .filter_map(Value::as_str)
            {
                if !map.contains_key(key) {
                    return Err((below(path, key), "it is required".to_owned()));
                }
            }
            let properties = schema.get("properties");
            let others = schema.get("additionalProperties");
            for (key, value) in map {
                let known = properties.and_then(|p| p.get(key));
                if let Some(schema) = known.or(others) {
                    at(schema, value, &below(path, key))?;
                }
            }
        }
        Value::List(list) => {
            if let Some(schema) = schema.get("items") {
                for (i, value) in list.iter().enumerate() {
                    at(schema, value, &below(path, &i.to_string()))?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() {
        return key.to_owned();
    }
    format!("{path}.{key}")
}

/// What is wrong with a value itself, without its parts.
fn own(schema: &Value, value: &Value) -> Option<String> {
    if schema.as_bool() == Some(false) {
        return Some("nothing is allowed here".to_owned());
    }
    if let Some(types) = schema.get("type") {
        let one = std::slice::from_ref(types);
        let names = types.as_list().unwrap_or(one);
        let mut names = names.iter().filter_map(Value::as_str);
        if !names.any(|name| is(value, name)) {
            let wanted = types.as_str().unwrap_or("one of its types");
            return Some(format!("{} is not of the type {wanted}", kind(value)));
        }
    }
    if schema.get("const").is_some_and(|c| !same(c, value)) {
        return Some("it is not the one value allowed".to_owned());
    }
    let allowed = schema.get("enum").and_then(Value::as_list);
    if allowed.is_some_and(|all| !all.iter().any(|one| same(one, value))) {
        return Some("it is not one of the values allowed".to_owned());
    }
    let size = match value {
        Value::Map(map) => ["minProperties", "maxProperties"].map(|k| (k, map.len() as f64)),
        Value::List(list) => ["minItems", "maxItems"].map(|k| (k, list.len() as f64)),
        Value::Text(text) => ["minLength", "maxLength"].map(|k| (k, text.chars().count() as f64)),
        Value::Bytes(bytes) => ["minLength", "maxLength"].map(|k| (k, bytes.len() as f64)),
        _ => ["minimum", "maximum"].map(|k| (k, value.as_f64().unwrap_or(0.0))),
    };
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let [(least, n), (most, _)] = size;
    if let Some(limit) = bound(least).filter(|limit| n < *limit) {
        return Some(format!("it is below {least} {limit}"));
    }
    if let Some(limit) = bound(most).filter(|limit| n > *limit) {
        return Some(format!("it is above {most} {limit}"));
    }
    let number = value.as_f64()?;
    let outside = |key| {
        bound(key).filter(|limit| match key {
            "exclusiveMinimum" => number <= *limit,
            _ => number >= *limit,
        })
    };
    let key = ["exclusiveMinimum", "exclusiveMaximum"];
    let key = key.into_iter().find(|key| outside(key).is_some())?;
    Some(format!("it is beyond the {key}"))
}

/// Whether a value is of a type of JSON Schema. A whole float is an integer.
fn is(value: &Value, name: &str) -> bool {
    match value {
        Value::Float(f) if name == "integer" => f.fract() == 0.0,
        Value::Int(_) | Value::BigInt(_) => name == "integer" || name == "number",
        _ => kind(value) == name,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Int(_) | Value::BigInt(_) => "integer",
        Value::Float(_) => "number",
        Value::Text(_) | Value::Bytes(_) => "string",
        Value::List(_) => "array",
        Value::Map(_) => "object",
    }
}

/// Whether two values are the same, where 1 is 1.0.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::List(a), Value::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|((ka, a), (kb, b))| ka == kb && same(a, b))
        }
        _ => a == b || a.as_f64().is_some() && a.as_f64() == b.as_f64(),
    }
}
