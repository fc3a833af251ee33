/// A small backtracking matcher: letters and other signs, which stand for
/// themselves, classes of one range as `[a-z]`, and `+` after any of them.
pub struct Pattern(Vec<Piece>);

struct Piece {
    from: u8,
    to: u8,
    many: bool,
}

impl Pattern {
    pub fn new(text: &str) -> Pattern {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((&first, after)) = rest.split_first() {
            rest = after;
            let (from, to) = match first {
                b'+' => {
                    pieces.last_mut().expect("a piece before +").many = true;
                    continue;
                }
                b'[' => {
                    let range = (rest[0], rest[2]);
                    rest = &rest[4..];
                    range
                }
                _ => (first, first),
            };
            pieces.push(Piece {
                from,
                to,
                many: false,
            });
        }
        Pattern(pieces)
    }

    /// Reports whether the text has a match in it.
    pub fn is_in(&self, text: &[u8]) -> bool {
        (0..text.len()).any(|start| begins(&self.0, &text[start..]))
    }
}

fn begins(pieces: &[Piece], text: &[u8]) -> bool {
    let Some((piece, rest)) = pieces.split_first() else {
        return true;
    };
    let fits = |b: &u8| (piece.from..=piece.to).contains(b);
    if !piece.many {
        return text.first().is_some_and(fits) && begins(rest, &text[1..]);
    }
    let most = text.iter().take_while(|b| fits(b)).count();
    (1..=most).rev().any(|n| begins(rest, &text[n..]))
}
