//! Words of a text.

use std::collections::HashMap;

use unicode_general_category::{GeneralCategory, get_general_category};

/// Counts the words of a text, in lower case. A word is a sequence of letters and
/// apostrophes that has a letter.
pub fn words(text: &str) -> HashMap<String, u64> {
    let mut counts = HashMap::new();
    let mut word = String::new();
    let mut has_letter = false;
    // A blank ends the last word.
    for c in text.chars().chain([' ']) {
        if is_letter(c) {
            word.push(lower(c));
            has_letter = true;
        } else if c == '\'' {
            word.push(c);
        } else {
            if has_letter {
                add(&mut counts, &word);
            }
            word.clear();
            has_letter = false;
        }
    }
    counts
}

fn add(counts: &mut HashMap<String, u64>, word: &str) {
    match counts.get_mut(word) {
        Some(n) => *n += 1,
        None => drop(counts.insert(word.to_owned(), 1)),
    }
}

/// Whether the character is in Unicode's category L. (`char::is_alphabetic` also holds
/// for marks and Roman numerals.)
fn is_letter(c: char) -> bool {
    use GeneralCategory::*;
    if c.is_ascii() {
        return c.is_ascii_alphabetic();
    }
    matches!(
        get_general_category(c),
        UppercaseLetter | LowercaseLetter | TitlecaseLetter | ModifierLetter | OtherLetter
    )
}

/// The character's own lower case. Only U+0130 has a second lower case, of two
/// characters.
fn lower(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::words;

    fn check(text: &str, want: &[(&str, u64)]) {
        let mut got: Vec<_> = words(text).into_iter().collect();
        got.sort();
        let want: Vec<_> = want.iter().map(|(w, n)| (w.to_string(), *n)).collect();
        assert_eq!(got, want, "{text:?}");
    }

    #[test]
    fn words_of_texts() {
        check("", &[]);
        check("The the THE", &[("the", 3)]);
        check("don't 'tis' '' ' 12 -", &[("'tis'", 1), ("don't", 1)]);
        check(
            "Straße ÄÖ x1y",
            &[("straße", 1), ("x", 1), ("y", 1), ("äö", 1)],
        );
        check("\u{130} \u{2160} 世界", &[("i", 1), ("世界", 1)]); // the Roman numeral is not a letter
        check("a\u{301}", &[("a", 1)]); // nor is a combining mark
    }
}
