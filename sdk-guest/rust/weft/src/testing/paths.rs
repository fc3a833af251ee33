//! Paths and edits of the state.

use std::collections::BTreeMap;

use crate::error::{Error, Result, code};
use crate::value::Value;

/// The error of a path that leads nowhere.
pub fn nothing(path: &str) -> Error {
    Error::new(
        code::NOT_FOUND,
        format_args!("there is nothing at \"{path}\""),
    )
}

/// The value at a path.
pub fn lookup<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    if path.is_empty() {
        return Some(value);
    }
    path.split('.')
        .try_fold(value, |value, segment| match value {
            Value::Map(map) => map.get(segment),
            Value::List(list) => list.get(index(segment, list.len())?),
            _ => None,
        })
}

/// A list's index; negative ones count from the end.
fn index(segment: &str, len: usize) -> Option<usize> {
    let i: isize = segment.parse().ok()?;
    let i = if i < 0 { i + len as isize } else { i };
    usize::try_from(i).ok().filter(|i| *i < len)
}

/// Replaces the value at a path by what `change` makes of it, where `None` is
/// no value. Maps on the way are made.
pub fn update(
    value: &mut Value,
    path: &str,
    change: &mut dyn FnMut(Option<Value>) -> Result<Option<Value>>,
) -> Result<()> {
    if path.is_empty() {
        let whole = change(Some(std::mem::take(value)))?;
        *value = whole.ok_or_else(|| failed("the whole state cannot be deleted: clear it"))?;
        return Ok(());
    }
    let (segment, rest) = path.split_once('.').unwrap_or((path, ""));
    if *value == Value::Null {
        *value = Value::Map(BTreeMap::new());
    }
    match value {
        Value::Map(map) if rest.is_empty() => {
            if let Some(new) = change(map.remove(segment))? {
                map.insert(segment.to_owned(), new);
            }
        }
        Value::Map(map) => update(map.entry(segment.to_owned()).or_default(), rest, change)?,
        Value::List(list) => {
            let Some(i) = index(segment, list.len()) else {
                // Nothing is there to delete; anything else has no place.
                return match change(None)? {
                    None if rest.is_empty() => Ok(()),
                    _ => Err(nothing(path)),
                };
            };
            if !rest.is_empty() {
                return update(&mut list[i], rest, change);
            }
            match change(Some(list[i].clone()))? {
                Some(new) => list[i] = new,
                None => drop(list.remove(i)),
            }
        }
        _ => return Err(nothing(path)),
    }
    Ok(())
}

fn failed(message: &str) -> Error {
    Error::new(code::FAILED_PRECONDITION, message)
}

/// Makes one edit; gives its result.
pub fn edit(
    state: &mut Value,
    initial: &Value,
    op: &str,
    path: &str,
    value: Value,
) -> Result<Value> {
    if op == "clear" {
        *state = initial.clone();
        return Ok(Value::Null);
    }
    if op == "test" {
        return match lookup(state, path) {
            Some(found) if *found == value => Ok(Value::Null),
            _ => Err(Error::new(
                code::CONFLICT,
                format_args!("the test of \"{path}\" failed"),
            )),
        };
    }
    let mut result = Value::Null;
    update(state, path, &mut |old| {
        let new = match op {
            "set" => value.clone(),
            "delete" => {
                result = old.is_some().into();
                return Ok(None);
            }
            "append" => {
                let mut list = match old {
                    None => Vec::new(),
                    Some(Value::List(list)) => list,
                    Some(_) => return Err(failed("append to what is no list")),
                };
                list.push(value.clone());
                result = list.len().into();
                list.into()
            }
            "increment" => {
                result = sum(old, &value)?;
                result.clone()
            }
            "merge" => merge(old, value.clone()),
            _ => return Err(Error::misuse(format_args!("there is no edit {op}"))),
        };
        Ok(Some(new))
    })?;
    Ok(result)
}

/// The sum of a value and a number; an integer if both are.
fn sum(old: Option<Value>, by: &Value) -> Result<Value> {
    match (old.unwrap_or(Value::Int(0)), by) {
        (Value::Int(a), Value::Int(b)) => a
            .checked_add(*b)
            .map(Value::Int)
            .ok_or_else(|| failed("the sum is beyond the range of integers")),
        (old, by) => match (old.as_f64(), by.as_f64()) {
            (Some(a), Some(b)) => Ok(Value::Float(a + b)),
            _ => Err(failed("increment of what is no number")),
        },
    }
}

fn merge(old: Option<Value>, new: Value) -> Value {
    match (old, new) {
        (Some(Value::Map(mut map)), Value::Map(entries)) => {
            for (key, value) in entries {
                let merged = merge(map.remove(&key), value);
                map.insert(key, merged);
            }
            Value::Map(map)
        }
        (_, new) => new,
    }
}
