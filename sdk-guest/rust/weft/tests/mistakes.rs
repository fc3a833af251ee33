//! What a beginner gets wrong, and what the compiler then says: each mistake is
//! an example of a package of its own, checked by cargo as a plugin would be.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// A mistake: its name, the code, and what the compiler must say of it.
type Mistake = (&'static str, &'static str, &'static [&'static str]);

/// The code of no mistake, of which most others differ in one place.
const RIGHT: &str = r#"
#[derive(StartEvent)]
struct StartEvent { name: String }
#[derive(State, Default)]
struct Tally { runs: u64 }
#[step(workers = 4, timeout = "1s", retry = fixed("10ms").attempts(3))]
fn start(_: &Context<Tally>, ev: StartEvent) -> Result<Stop> { Ok(Stop::new(ev.name)) }
workflow!("name", state = Tally, steps = [start], timeout = "1h");
"#;

const TYPES: &[Mistake] = &[
    (
        "an_event_without_a_derive",
        r#"
        #[derive(StartEvent)]
        struct StartEvent;
        struct Next;
        #[step]
        fn start(_: &Context, _: StartEvent) -> Result<Next> { Ok(Next) }
        "#,
        &[
            "a step cannot give `Next`",
            "a struct with #[derive(Event)]",
            "put #[derive(Event)] on it, or StartEvent",
        ],
    ),
    (
        "a_start_event_without_a_derive",
        r#"
        struct StartEvent;
        #[step]
        fn start(_: &Context, _: StartEvent) -> Result<Stop> { Ok(Stop::new(1)) }
        "#,
        &[
            "a step cannot take `StartEvent`",
            "it takes an event (a struct with #[derive(Event)])",
        ],
    ),
    (
        "a_field_without_a_derive",
        r#"
        struct Item { n: u32 }
        #[derive(StartEvent)]
        struct StartEvent { items: Vec<Item> }
        "#,
        &[
            "`Item` cannot be a part of an event or of the state",
            "put #[derive(Data)] on it",
        ],
    ),
    (
        "a_result_without_a_derive",
        r#"
        struct Summary { n: u32 }
        #[derive(StartEvent)]
        struct StartEvent;
        #[step]
        fn start(_: &Context, _: StartEvent) -> Result<Stop> { Ok(Stop::new(Summary { n: 1 })) }
        "#,
        &["`Summary` cannot be a result", "put #[derive(Data)] on it"],
    ),
    (
        "a_state_without_a_derive",
        r#"
        struct Tally { n: u32 }
        #[derive(StartEvent)]
        struct StartEvent;
        #[step]
        fn start(_: &Context<Tally>, _: StartEvent) -> Result<Stop> { Ok(Stop::new(1)) }
        workflow!("name", state = Tally, steps = [start]);
        "#,
        &[
            "`Tally` is not a type of a state",
            "put #[derive(State, Default)] on it",
        ],
    ),
    (
        "a_state_without_a_default",
        r#"
        #[derive(State)]
        struct Tally { n: u32 }
        "#,
        &["`Tally: Default` is not satisfied", "#[derive(Default)]"],
    ),
    (
        "a_state_that_the_workflow_does_not_name",
        r#"
        #[derive(StartEvent)]
        struct StartEvent;
        #[derive(State, Default)]
        struct Tally { n: u32 }
        #[step]
        fn start(_: &Context<Tally>, _: StartEvent) -> Result<Stop> { Ok(Stop::new(1)) }
        workflow!("name", steps = [start]);
        "#,
        &[
            "the context of this step has the state `Tally`",
            "name the type in workflow!(..., state = TheState, ...)",
        ],
    ),
    (
        "text_that_is_borrowed",
        r#"
        #[derive(Data)]
        struct Name<'a> { text: &'a str }
        "#,
        &["String"],
    ),
    (
        "an_enum_with_data",
        r#"
        #[derive(Data)]
        enum Shape { Circle(f64), Square }
        "#,
        &["an enum with data has no one schema: use a struct with optional fields"],
    ),
    (
        "two_fields_of_one_key",
        r#"
        #[derive(Data)]
        struct Twice { one: u8, #[weft(name = "one")] two: u8 }
        "#,
        &["one"],
    ),
    (
        "a_choice_that_holds_no_event",
        r#"
        #[derive(Event)]
        struct A;
        #[derive(Events)]
        enum Next { A(A), B { n: u32 } }
        "#,
        &["each variant holds one event: `Name(NameEvent)`"],
    ),
];

const STEPS: &[Mistake] = &[
    (
        "a_result_of_another_type",
        r#"
        #[step]
        fn start(_: &Context, _: StartEvent) -> Result<String> { Ok("x".into()) }
        "#,
        &[
            "a step cannot give `String`",
            "a value that ends the run is given as Stop::new(value)",
        ],
    ),
    (
        "no_result",
        r#"
        #[step]
        fn start(_: &Context, _: StartEvent) -> Stop { Stop::new(1) }
        "#,
        &[
            "a step gives a Result, not `weft::Stop`",
            "write `-> Result<NextEvent>`, or `-> Result<()>` for nothing",
        ],
    ),
    (
        "nothing_given",
        r#"
        #[step]
        fn start(_: &Context, _: StartEvent) {}
        "#,
        &["a step gives a result: `-> Result<NextEvent>`, or `-> Result<()>` for nothing"],
    ),
    (
        "two_events_given",
        r#"
        #[derive(Event)]
        struct A;
        #[derive(Event)]
        struct B;
        #[step]
        fn start(_: &Context, _: StartEvent) -> Result<(A, B)> { Ok((A, B)) }
        "#,
        &[
            "a step cannot give `(A, B)`",
            "events of several types are sent by ctx.send",
        ],
    ),
    (
        "two_events_taken",
        r#"
        #[derive(Event)]
        struct A;
        #[step]
        fn end(_: &Context, _: StartEvent, _: A) -> Result<Stop> { Ok(Stop::new(1)) }
        "#,
        &["for one event of each type write a tuple, `(a, b): (A, B)`"],
    ),
    (
        "no_context",
        r#"
        #[step]
        fn start(_: StartEvent) -> Result<Stop> { Ok(Stop::new(1)) }
        "#,
        &["a step takes a context and an event: `fn step(ctx: &Context, ev: SomeEvent)"],
    ),
    (
        "a_context_of_its_own",
        r#"
        #[step]
        fn start(_: Context, _: StartEvent) -> Result<Stop> { Ok(Stop::new(1)) }
        "#,
        &["a step takes a context and an event: `fn step(ctx: &Context, ev: SomeEvent)"],
    ),
    (
        "a_step_that_is_async",
        r#"
        #[step]
        async fn start(_: &Context, _: StartEvent) -> Result<Stop> { Ok(Stop::new(1)) }
        "#,
        &["a step is a plain function: what waits is written as a call"],
    ),
    (
        "a_duration_without_a_unit",
        r#"
        #[step(timeout = "1")]
        fn start(_: &Context, _: StartEvent) -> Result<Stop> { Ok(Stop::new(1)) }
        workflow!("name", steps = [start]);
        "#,
        &["unit"],
    ),
    (
        "too_many_workers",
        r#"
        #[step(workers = 1001)]
        fn start(_: &Context, _: StartEvent) -> Result<Stop> { Ok(Stop::new(1)) }
        workflow!("name", steps = [start]);
        "#,
        &["workers must be 1 to 1000"],
    ),
    (
        "an_option_that_there_is_not",
        r#"
        #[step(worker = 4)]
        fn start(_: &Context, _: StartEvent) -> Result<Stop> { Ok(Stop::new(1)) }
        "#,
        &["unknown option: one of name, workers, timeout"],
    ),
    (
        "a_word_that_there_is_not",
        r#"
        #[step(atomc)]
        fn start(_: &Context, _: StartEvent) -> Result<Stop> { Ok(Stop::new(1)) }
        "#,
        &["unknown option: one of name, workers, timeout"],
    ),
    (
        "a_workflow_name_with_a_capital",
        r#"
        #[step]
        fn start(_: &Context, _: StartEvent) -> Result<Stop> { Ok(Stop::new(1)) }
        workflow!("Name", steps = [start]);
        "#,
        &["a workflow's name has 1 to 128 small letters"],
    ),
    (
        "a_workflow_without_steps",
        r#"
        workflow!("name");
        "#,
        &["a workflow needs steps: `steps = [first, second]`"],
    ),
    (
        "a_function_that_is_no_step",
        r#"
        fn start(_: &Context, _: StartEvent) -> Result<Stop> { Ok(Stop::new(1)) }
        workflow!("name", steps = [start]);
        "#,
        &["expected type, found function `start`"],
    ),
];

const OPTIONS: &[Mistake] = &[
    (
        "a_step_that_catches_and_takes_no_failure",
        r#"
        #[derive(Event)]
        struct Next;
        #[step]
        fn start(_: &Context, _: StartEvent) -> Result<Next> { Ok(Next) }
        #[step(catches = [start])]
        fn rescue(_: &Context, _: Next) -> Result<Stop> { Ok(Stop::new(1)) }
        workflow!("name", steps = [start, rescue]);
        "#,
        &["a step that catches failures takes a StepFailed: `fn rescue("],
    ),
    (
        "a_step_that_catches_nothing",
        r#"
        #[step(catches = [])]
        fn rescue(_: &Context, _: StepFailed) -> Result<Stop> { Ok(Stop::new(1)) }
        workflow!("name", steps = [rescue]);
        "#,
        &["name the steps whose failures it catches, or write `catches = all`"],
    ),
    (
        "a_step_that_catches_a_word",
        r#"
        #[step(catches = everything)]
        fn rescue(_: &Context, _: StepFailed) -> Result<Stop> { Ok(Stop::new(1)) }
        "#,
        &["what a step catches is a list of steps, `catches = [work]`, or `catches = all`"],
    ),
    (
        "a_step_that_catches_what_is_no_step",
        r#"
        fn work() {}
        #[step(catches = [work])]
        fn rescue(_: &Context, _: StepFailed) -> Result<Stop> { Ok(Stop::new(1)) }
        "#,
        &["expected type, found function `work`"],
    ),
    (
        "recoveries_of_a_step_that_does_not_catch",
        r#"
        #[step(max_recoveries = 2)]
        fn start(_: &Context, _: StartEvent) -> Result<Stop> { Ok(Stop::new(1)) }
        "#,
        &["max_recoveries is for a step that catches: `catches = [work]`"],
    ),
    (
        "an_atomic_step_that_waits",
        r#"
        #[derive(Event)]
        struct Tick;
        #[step(atomic, waits = [Tick])]
        fn start(_: &Context, _: StartEvent) -> Result<Stop> { Ok(Stop::new(1)) }
        "#,
        &["an atomic step cannot wait: drop `atomic`, or let another step wait"],
    ),
    (
        "a_wait_for_what_is_no_event",
        r#"
        struct Tick;
        #[step(waits = [Tick])]
        fn start(ctx: &Context, _: StartEvent) -> Result<Stop> {
            ctx.wait_for::<Tick>().event()?;
            Ok(Stop::new(1))
        }
        "#,
        &["`Tick` is not an event type", "put #[derive(Event)] on it"],
    ),
    (
        "a_base_that_is_no_event",
        r#"
        #[derive(Data)]
        struct Item;
        #[derive(Event)]
        #[weft(extends = Item)]
        struct Crate;
        "#,
        &["`Item` is not an event type"],
    ),
    (
        "a_state_that_extends",
        r#"
        #[derive(State, Default)]
        #[weft(extends = Item)]
        struct Tally;
        "#,
        &["only an event extends another: drop the option"],
    ),
    (
        "two_rules_for_how_long_to_wait",
        r#"
        #[step(retry = fixed("1s").and(random_wait("1s", "2s")))]
        fn start(_: &Context, _: StartEvent) -> Result<Stop> { Ok(Stop::new(1)) }
        workflow!("name", steps = [start]);
        "#,
        &["two rules for how long to wait: keep one, or join them by sum or chain"],
    ),
    (
        "a_group_of_several_kinds",
        r#"
        #[step(retry = any_of(&[on_codes(&["busy"]), attempts(3)]))]
        fn start(_: &Context, _: StartEvent) -> Result<Stop> { Ok(Stop::new(1)) }
        workflow!("name", steps = [start]);
        "#,
        &["a group holds rules of one kind: conditions, waits, or rules to give up"],
    ),
    (
        "a_condition_that_is_none",
        r#"
        #[step(retry = not(&attempts(3)))]
        fn start(_: &Context, _: StartEvent) -> Result<Stop> { Ok(Stop::new(1)) }
        workflow!("name", steps = [start]);
        "#,
        &["`not` is for a condition, such as on_codes("],
    ),
];

const WORKFLOWS: &[Mistake] = &[
    (
        "a_part_that_is_no_word",
        r#"
        #[step]
        fn start(_: &Context, _: StartEvent) -> Result<Stop> { Ok(Stop::new(1)) }
        workflow!("name", part = "yes", steps = [start]);
        "#,
        &["expected boolean literal"],
    ),
    (
        "a_resource_without_a_name",
        r#"
        #[step]
        fn start(_: &Context, _: StartEvent) -> Result<Stop> { Ok(Stop::new(1)) }
        workflow!("name", resources = [http("")], steps = [start]);
        "#,
        &["a resource has a name of 1 to 128 bytes, and a kind"],
    ),
    (
        "a_resource_without_a_kind",
        r#"
        #[step]
        fn start(_: &Context, _: StartEvent) -> Result<Stop> { Ok(Stop::new(1)) }
        workflow!("name", resources = ["web"], steps = [start]);
        "#,
        &["expected `Resource`, found `&str`"],
    ),
];

/// The event that all but `TYPES` take.
const START: &str = "#[derive(StartEvent)] struct StartEvent;\n";

#[test]
fn the_compiler_says_what_to_write() {
    let package = Package::new();
    package.add("no_mistake", RIGHT);
    for (name, code, _) in TYPES {
        package.add(name, code);
    }
    for (name, code, _) in STEPS.iter().chain(OPTIONS).chain(WORKFLOWS) {
        package.add(name, &format!("{START}{code}"));
    }
    let said = package.check();
    let right = errors_in(&said, "no_mistake");
    assert!(right.is_empty(), "refused without a mistake:\n{right}");
    let mut failures = String::new();
    for (name, _, wanted) in TYPES.iter().chain(STEPS).chain(OPTIONS).chain(WORKFLOWS) {
        let said = errors_in(&said, name);
        for text in wanted.iter().filter(|text| !said.contains(**text)) {
            let _ = writeln!(failures, "{name}: nothing of {text:?} in\n{said}\n");
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// The errors that cargo printed of one example. Each begins with a line of its
/// own.
fn errors_in(said: &str, example: &str) -> String {
    let place = format!("examples/{example}.rs");
    let said = said.replace("\nerror", "\0error");
    let said = said.replace("\nwarning", "\0warning");
    let errors = said.split('\0').filter(|e| e.contains(&place));
    errors
        .filter(|e| e.starts_with("error"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// A package of examples, each a mistake.
struct Package(PathBuf);

impl Package {
    fn new() -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mistakes");
        let _ = fs::remove_dir_all(folder.join("examples"));
        fs::create_dir_all(folder.join("examples")).unwrap();
        fs::create_dir_all(folder.join("src")).unwrap();
        fs::write(folder.join("src/lib.rs"), "").unwrap();
        let weft = env!("CARGO_MANIFEST_DIR");
        let manifest = format!(
            "[package]\nname = \"mistakes\"\nedition = \"2024\"\n\
             [dependencies]\nweft = {{ path = {weft:?} }}\n[workspace]\n"
        );
        fs::write(folder.join("Cargo.toml"), manifest).unwrap();
        // The versions that are there, as the network may not be.
        let lock = Path::new(weft).join("../Cargo.lock");
        fs::copy(lock, folder.join("Cargo.lock")).unwrap();
        Package(folder)
    }

    fn add(&self, name: &str, code: &str) {
        let file = self.0.join("examples").join(name).with_extension("rs");
        let code = format!("#![allow(dead_code)]\nuse weft::prelude::*;\n{code}\nfn main() {{}}\n");
        fs::write(file, code).unwrap();
    }

    /// What cargo says of all examples.
    fn check(&self) -> String {
        let output = Command::new(env!("CARGO"))
            .args([
                "check",
                "--offline",
                "--quiet",
                "--keep-going",
                "--examples",
            ])
            .current_dir(&self.0)
            .env("CARGO_TARGET_DIR", self.0.join("target"))
            .env("CARGO_TERM_COLOR", "never")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && said.contains("examples/"),
            "cargo did not get to the examples:\n{said}"
        );
        said
    }
}
