//! Quiz asks for capitals over several runs of one session: the state is the
//! game, each run is one move.

use weft::prelude::*;

/// A move.
#[derive(StartEvent)]
struct StartEvent {
    action: Action,
    /// with the action answer
    answer: Option<String>,
}

/// What to do.
#[derive(Data)]
enum Action {
    Start,
    Answer,
    Status,
}

/// A question and its answer.
#[derive(Data)]
struct Question {
    q: String,
    a: String,
}

/// An answer that was given.
#[derive(Data, Debug, PartialEq)]
struct Given {
    question: String,
    given: String,
    correct: String,
    is_correct: bool,
}

/// The game.
#[derive(State)]
struct State {
    questions: Vec<Question>,
    #[weft(min = 0)]
    current_index: usize,
    score: i64,
    answers_given: Vec<Given>,
}

impl Default for State {
    /// What a new session starts with.
    fn default() -> Self {
        let capitals = [
            ("France", "Paris"),
            ("Germany", "Berlin"),
            ("Japan", "Tokyo"),
        ];
        let questions = capitals.map(|(country, capital)| Question {
            q: format!("Capital of {country}?"),
            a: capital.to_owned(),
        });
        State {
            questions: questions.into(),
            current_index: 0,
            score: 0,
            answers_given: Vec::new(),
        }
    }
}

/// What a reply is about.
#[derive(Data)]
enum Reply {
    Question,
    Complete,
    Status,
}

/// The answer to the action start.
#[derive(Data)]
struct Asked {
    action: Reply,
    question: String,
    question_number: usize,
    total_questions: usize,
}

/// The answer to the action answer while there are questions.
#[derive(Data)]
struct AskedNext {
    action: Reply,
    feedback: String,
    question: String,
    question_number: usize,
    current_score: i64,
}

/// The answer to the action answer after the last question.
#[derive(Data)]
struct Complete {
    action: Reply,
    score: i64,
    total: usize,
    percentage: f64,
}

/// The answer to the action status.
#[derive(Data)]
struct Status {
    action: Reply,
    current_index: usize,
    score: i64,
    total: usize,
}

#[step]
fn play(ctx: &Context<State>, ev: StartEvent) -> Result<Stop> {
    match ev.action {
        Action::Start => ctx.edit(State::start),
        Action::Answer => ctx.edit(|s| s.answer(ev.answer.unwrap_or_default())),
        Action::Status => Ok(ctx.state()?.status()), // only looks
    }
}

impl State {
    /// Begins a new game.
    fn start(&mut self) -> Stop {
        self.current_index = 0;
        self.score = 0;
        self.answers_given.clear();
        match self.questions.first() {
            None => self.complete(),
            Some(first) => Stop::new(Asked {
                action: Reply::Question,
                question: first.q.clone(),
                question_number: 1,
                total_questions: self.questions.len(),
            }),
        }
    }

    /// Takes an answer to the current question and asks the next one.
    fn answer(&mut self, given: String) -> Stop {
        let Some(asked) = self.questions.get(self.current_index) else {
            return self.complete();
        };
        let is_correct = same_without_case(&given, &asked.a);
        let feedback = if is_correct {
            self.score += 1;
            "Correct!".to_owned()
        } else {
            format!("Wrong! Answer: {}", asked.a)
        };
        self.answers_given.push(Given {
            question: asked.q.clone(),
            given,
            correct: asked.a.clone(),
            is_correct,
        });
        self.current_index += 1;
        match self.questions.get(self.current_index) {
            None => self.complete(),
            Some(next) => Stop::new(AskedNext {
                action: Reply::Question,
                feedback,
                question: next.q.clone(),
                question_number: self.current_index + 1,
                current_score: self.score,
            }),
        }
    }

    fn complete(&self) -> Stop {
        let (score, total) = (self.score, self.questions.len());
        let percentage = match total {
            0 => 0.0,
            _ => 100.0 * score as f64 / total as f64,
        };
        Stop::new(Complete {
            action: Reply::Complete,
            score,
            total,
            percentage,
        })
    }

    fn status(&self) -> Stop {
        Stop::new(Status {
            action: Reply::Status,
            current_index: self.current_index,
            score: self.score,
            total: self.questions.len(),
        })
    }
}

/// Compares letter by letter, ignoring case.
fn same_without_case(a: &str, b: &str) -> bool {
    a.chars().map(fold).eq(b.chars().map(fold))
}

/// Returns the same small letter for all letters that differ only in case: for s and the
/// long s, for sigma and the final sigma. The Turkish i with and without its dot are
/// separate letters.
fn fold(c: char) -> char {
    let single = |list: &mut dyn Iterator<Item = char>| match (list.next(), list.next()) {
        (Some(c), None) => Some(c),
        _ => None,
    };
    if matches!(c, '\u{130}' | '\u{131}') {
        return c;
    }
    let capital = single(&mut c.to_uppercase()).unwrap_or(c);
    single(&mut capital.to_lowercase()).unwrap_or(capital)
}

workflow!("quiz-rust", state = State, steps = [play]);

#[cfg(test)]
mod tests {
    use weft::Value;
    use weft::testing::Session;

    use super::Given;

    /// Makes a move; with None, the move has no answer.
    fn play(session: &Session, action: &str, answer: Option<&str>) -> Value {
        let fields = [("action", Some(action)), ("answer", answer)];
        let given = fields.into_iter().filter_map(|(k, v)| Some((k, v?.into())));
        session.run(&Value::map(given)).unwrap().result().unwrap()
    }

    #[test]
    fn a_game() {
        let session = Session::new(&crate::WORKFLOW);
        let status = |index: i64, score: i64| {
            Value::map([
                ("action", "status".into()),
                ("current_index", index.into()),
                ("score", score.into()),
                ("total", 3.into()),
            ])
        };
        let asked = |feedback: &str, question: &str, number: i64, score: i64| {
            Value::map([
                ("action", "question".into()),
                ("feedback", feedback.into()),
                ("question", question.into()),
                ("question_number", number.into()),
                ("current_score", score.into()),
            ])
        };
        let first = Value::map([
            ("action", "question".into()),
            ("question", "Capital of France?".into()),
            ("question_number", 1.into()),
            ("total_questions", 3.into()),
        ]);
        let complete = Value::map([
            ("action", "complete".into()),
            ("score", 2.into()),
            ("total", 3.into()),
            ("percentage", (200.0 / 3.0).into()),
        ]);
        assert_eq!(play(&session, "status", None), status(0, 0));
        assert_eq!(play(&session, "start", None), first);
        let second = asked("Correct!", "Capital of Germany?", 2, 1);
        assert_eq!(play(&session, "answer", Some("pARIS")), second);
        let third = asked("Wrong! Answer: Berlin", "Capital of Japan?", 3, 1);
        assert_eq!(play(&session, "answer", None), third);
        assert_eq!(play(&session, "answer", Some("Tokyo")), complete);
        assert_eq!(play(&session, "answer", Some("Tokyo")), complete);
        assert_eq!(play(&session, "status", None), status(3, 2));

        let given = |question: &str, given: &str, correct: &str, is_correct| Given {
            question: question.into(),
            given: given.into(),
            correct: correct.into(),
            is_correct,
        };
        assert_eq!(
            session.read::<Vec<Given>>("answers_given").unwrap(),
            [
                given("Capital of France?", "pARIS", "Paris", true),
                given("Capital of Germany?", "", "Berlin", false),
                given("Capital of Japan?", "Tokyo", "Tokyo", true),
            ]
        );
    }

    #[test]
    fn an_answer_before_any_start_is_for_the_first_question() {
        let reply = play(&Session::new(&crate::WORKFLOW), "answer", Some("paris "));
        let feedback = reply.get("feedback").and_then(Value::as_str);
        assert_eq!(feedback, Some("Wrong! Answer: Paris")); // the answer is not trimmed
    }

    #[test]
    fn case_does_not_matter() {
        for given in ["paris", "PARIS", "pARi\u{17f}"] {
            assert!(super::same_without_case(given, "Paris"), "{given}");
        }
        for given in ["", "Pari", "Pariss", "Par\u{131}s", "P\u{e4}ris"] {
            assert!(!super::same_without_case(given, "Paris"), "{given}");
        }
        assert!(super::same_without_case("\u{212a}yoto", "kyoto"));
    }
}
