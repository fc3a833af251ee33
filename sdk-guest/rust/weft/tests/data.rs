//! What derived types read, write and say of themselves.

use std::collections::BTreeMap;

use weft::prelude::*;
use weft::{Open, Raw};

/// A map's entries in short.
fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::map(entries)
}

fn schema<T: Data>() -> Value {
    T::schema(&mut Open::default())
}

fn typed(name: &str) -> Value {
    map([("type", name.into())])
}

#[derive(Data, Debug, PartialEq)]
struct Inner {
    x: i64,
    y: Option<f64>,
}

#[derive(Data)]
struct Tree {
    kids: Vec<Tree>,
}

#[derive(Data, Debug, PartialEq)]
enum Mode {
    Edit,
    GetSet,
    #[weft(name = "None!")]
    Nothing,
}

#[derive(Data)]
struct Id(u32);

#[derive(Data, Debug, PartialEq)]
struct Pair(String, i32);

#[derive(Data)]
struct All {
    /// how many,
    /// and which
    ///
    /// this paragraph is for programmers
    #[weft(min = 0, max = 9)]
    n: i64,
    #[weft(default = 0.5, min = 0.1)]
    rate: f64,
    #[weft(default = Mode::GetSet)]
    mode: Mode,
    #[weft(default)]
    note: String,
    #[weft(default = "fast")]
    speed: String,
    size: u32,
    /// nested
    inner: Inner,
    #[weft(name = "labels")]
    tags: Vec<String>,
    counts: BTreeMap<String, i32>,
    any: Value,
    bytes: Bytes,
    tree: Tree,
    maybe: Vec<Option<i32>>,
    pointer: Box<bool>,
    pair: Pair,
    id: Id,
    tuple: (String, u8),
    r#type: Option<String>,
}

#[test]
fn schema_of_all() {
    let integer = typed("integer");
    let natural = map([("type", "integer".into()), ("minimum", 0.into())]);
    let list_of = |n: i64| {
        map([
            ("type", "array".into()),
            ("minItems", n.into()),
            ("maxItems", n.into()),
        ])
    };
    let object = |properties: Value, required: Value| {
        map([
            ("type", "object".into()),
            ("properties", properties),
            ("required", required),
        ])
    };
    let kids = map([("type", "array".into()), ("items", typed("object"))]);
    let tree = object(map([("kids", kids)]), Value::list(["kids"]));
    let mut inner = object(
        map([("x", integer.clone()), ("y", typed("number"))]),
        Value::list(["x"]),
    );
    if let Value::Map(inner) = &mut inner {
        inner.insert("description".into(), "nested".into());
    }
    let properties = map([
        (
            "n",
            map([
                ("type", "integer".into()),
                ("minimum", 0.into()),
                ("maximum", 9.into()),
                ("description", "how many, and which".into()),
            ]),
        ),
        (
            "rate",
            map([
                ("type", "number".into()),
                ("default", 0.5.into()),
                ("minimum", 0.1.into()),
            ]),
        ),
        (
            "mode",
            map([
                ("type", "string".into()),
                ("enum", Value::list(["edit", "get_set", "None!"])),
                ("default", "get_set".into()),
            ]),
        ),
        (
            "note",
            map([("type", "string".into()), ("default", "".into())]),
        ),
        (
            "speed",
            map([("type", "string".into()), ("default", "fast".into())]),
        ),
        ("size", natural.clone()),
        ("inner", inner),
        (
            "labels",
            map([("type", "array".into()), ("items", typed("string"))]),
        ),
        (
            "counts",
            map([("type", "object".into()), ("additionalProperties", integer)]),
        ),
        ("any", map([])),
        ("bytes", map([])),
        ("tree", tree),
        ("maybe", typed("array")),
        ("pointer", typed("boolean")),
        ("pair", list_of(2)),
        ("id", natural),
        ("tuple", list_of(2)),
        ("type", typed("string")),
    ]);
    let required = [
        "n", "id", "any", "pair", "size", "tree", "bytes", "inner", "maybe", "tuple", "counts",
        "labels", "pointer",
    ];
    assert_eq!(schema::<All>(), object(properties, Value::list(required)));
}

#[derive(Data, Debug, PartialEq)]
struct Job {
    name: String,
    #[weft(default = 3)]
    tries: u32,
    note: Option<String>,
    #[weft(extra)]
    rest: BTreeMap<String, Value>,
}

#[test]
fn absent_null_and_extra() {
    let given = map([
        ("name", "a".into()),
        ("tries", Value::Null),
        ("note", Value::Null),
        ("colour", "red".into()),
    ]);
    let job: Job = given.read().unwrap();
    let want = Job {
        name: "a".into(),
        tries: 3,
        note: None,
        rest: [("colour".to_owned(), "red".into())].into(),
    };
    assert_eq!(job, want);
    // Nothing is written for what is None.
    let written = map([
        ("name", "a".into()),
        ("tries", 3.into()),
        ("colour", "red".into()),
    ]);
    assert_eq!(Value::of(&job).unwrap(), written);
}

#[test]
fn an_extra_key_that_is_declared_is_refused() {
    let job = Job {
        name: "a".into(),
        tries: 3,
        note: None,
        rest: [("tries".to_owned(), 1.into())].into(),
    };
    let error = Value::of(&job).unwrap_err();
    assert_eq!(error.message(), "the key \"tries\" is there twice");
}

#[test]
fn numbers_between_integers_and_floats() {
    let inner: Inner = map([("x", 3.0.into()), ("y", 2.into())]).read().unwrap();
    assert_eq!(inner, Inner { x: 3, y: Some(2.0) });
    let error = map([("x", 3.5.into())]).read::<Inner>().unwrap_err();
    assert_eq!(
        error.message(),
        "x (at byte 3): a float where i64 is expected"
    );
    // A whole float stays one where the type does not say.
    assert_eq!(
        Value::Float(3.0).read::<Value>().unwrap(),
        Value::Float(3.0)
    );
    assert_eq!(Value::from(u64::MAX).read::<u64>().unwrap(), u64::MAX);
    assert!(Value::from(u64::MAX).read::<i64>().is_err());
    assert!(Value::Float(f64::NAN).read::<f64>().is_err());
}

#[test]
fn faults_name_their_place() {
    #[derive(Data, Debug)]
    struct Outer {
        #[allow(dead_code)]
        list: Vec<Inner>,
    }
    let list = |inner: Value| map([("list", Value::list([map([("x", 1.into())]), inner]))]);
    let message = |value: Value| value.read::<Outer>().unwrap_err().message().to_owned();
    assert_eq!(
        message(list(map([("x", "a".into())]))),
        "list.1.x (at byte 14): text where i64 is expected"
    );
    assert_eq!(
        message(list(map([]))),
        "list.1 (at byte 11): missing field `x`"
    );
    assert_eq!(
        message(list(Value::Int(1))),
        "list.1 (at byte 11): an integer where a map: Inner is expected"
    );
    let error = map([("x", i64::MAX.into())]).read::<BTreeMap<String, u8>>();
    assert!(
        error
            .unwrap_err()
            .message()
            .starts_with("x (at byte 3): an integer beyond")
    );
}

#[test]
fn faults_of_what_is_written() {
    let message = |value: Value| Value::of(&value).unwrap_err().message().to_owned();
    let nan = map([("a", Value::list([1.0, f64::NAN]))]);
    assert!(message(nan).starts_with("a.1: a float is NaN or infinite"));
    let deep = (0..65).fold(Value::Null, |inner, _| Value::list([inner]));
    assert!(message(deep).ends_with("values nest too deep: at most 64 levels can be sent"));
    let keys = BTreeMap::from([(1, 2)]);
    assert!(
        Value::of(&keys)
            .unwrap_err()
            .message()
            .contains("String keys")
    );
}

#[test]
fn lists_texts_and_single_fields() {
    assert_eq!(
        Value::of(&Pair("a".into(), 1)).unwrap(),
        Value::list([Value::from("a"), 1.into()])
    );
    assert_eq!(Value::of(&Id(7)).unwrap(), Value::Int(7));
    assert_eq!(Value::Int(7).read::<Id>().unwrap().0, 7);
    assert_eq!(Value::of(&Mode::Nothing).unwrap(), "None!".into());
    assert_eq!(Value::from("get_set").read::<Mode>().unwrap(), Mode::GetSet);
    assert!(Value::from("GetSet").read::<Mode>().is_err());
    let long = Value::list([Value::from("a"), 1.into(), 2.into()]).read::<Pair>();
    assert!(
        long.unwrap_err()
            .message()
            .contains("a list of 3 where one of 2 is expected")
    );
}

#[test]
fn bytes_and_undecoded_values() {
    let bytes = Value::of(&Bytes(vec![1, 2])).unwrap();
    assert_eq!(bytes, Value::Bytes(vec![1, 2]));
    assert_eq!(bytes.read::<Bytes>().unwrap().0, [1, 2]);
    let raw = Raw::of(&map([("a", 1.into())])).unwrap();
    assert_eq!(Value::of(&raw).unwrap(), map([("a", 1.into())]));
    let long = "x".repeat(300); // whose head has three bytes
    assert_eq!(Raw::of(&long).unwrap().read::<String>().unwrap(), long);
    assert_eq!(Value::of(&Raw::default()).unwrap(), Value::Null);
}

/// Unsorted keys and unknown lengths come out sorted and right.
#[test]
fn maps_of_other_types() {
    let unsorted = std::collections::HashMap::from([("bb", 1), ("a", 2), ("c", 3)]);
    let want = map([("a", 2.into()), ("bb", 1.into()), ("c", 3.into())]);
    assert_eq!(Value::of(&unsorted).unwrap(), want);
    assert_eq!(Raw::of(&unsorted).unwrap(), Raw::of(&want).unwrap());

    struct Unknown;
    impl serde::Serialize for Unknown {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            use serde::ser::SerializeSeq;
            let mut list = serializer.serialize_seq(None)?;
            for i in 0..30 {
                list.serialize_element(&i)?;
            }
            list.end()
        }
    }
    assert_eq!(Value::of(&Unknown).unwrap(), Value::list(0..30));
}

/// A type of another crate, with serde's traits alone.
#[test]
fn fields_of_any_type() {
    #[derive(Data)]
    struct Host {
        #[weft(any)]
        address: std::net::Ipv4Addr,
    }
    assert_eq!(
        schema::<Host>(),
        map([
            ("type", "object".into()),
            ("properties", map([("address", map([]))])),
            ("required", Value::list(["address"])),
        ])
    );
    let host = Host {
        address: [127, 0, 0, 1].into(),
    };
    let value = Value::of(&host).unwrap();
    assert_eq!(value, map([("address", "127.0.0.1".into())]));
    assert_eq!(value.read::<Host>().unwrap().address, host.address);
}

/// Names that the macros might have taken for themselves.
#[test]
fn names_do_not_clash() {
    #[derive(Data, Debug, PartialEq)]
    struct D {
        key: u8,
    }
    #[derive(Data, Debug, PartialEq)]
    struct A {
        map: D,
        serializer: Option<Visitor>,
        e: Vec<Key>,
    }
    #[derive(Data, Debug, PartialEq)]
    struct Visitor;
    #[derive(Data, Debug, PartialEq)]
    struct Key(String);
    let a = A {
        map: D { key: 1 },
        serializer: Some(Visitor),
        e: vec![Key("k".into())],
    };
    assert_eq!(Value::of(&a).unwrap().read::<A>().unwrap(), a);
}
