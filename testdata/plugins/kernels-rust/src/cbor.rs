use crate::kernels::Chance;

const UINT: u8 = 0;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const FLOAT64: u8 = 0xfb;

/// Writes a list of records and reads it again.
pub fn cbor(message: &mut Vec<u8>, rounds: u64) -> u64 {
    let mut sum = 0u64;
    let mut chance = Chance(23);
    for _ in 0..rounds {
        message.clear();
        head(message, ARRAY, 128);
        for i in 0..128 {
            head(message, MAP, 4);
            put(message, "id");
            head(message, UINT, i);
            put(message, "name");
            put(message, "somebody's name");
            put(message, "score");
            message.push(FLOAT64);
            message.extend(((chance.next() % 1000) as f64 / 4.0).to_be_bytes());
            put(message, "marks");
            head(message, ARRAY, 8);
            for _ in 0..8 {
                let mark = chance.next();
                head(message, UINT, mark >> (chance.next() % 64));
            }
        }
        let read = value(&mut message.as_slice());
        sum = sum.wrapping_add(read).wrapping_add(message.len() as u64);
    }
    sum
}

fn put(message: &mut Vec<u8>, text: &str) {
    head(message, TEXT, text.len() as u64);
    message.extend(text.as_bytes());
}

/// Appends the head of an item.
fn head(message: &mut Vec<u8>, major: u8, arg: u64) {
    let major = major << 5;
    match arg {
        0..24 => message.push(major | arg as u8),
        24..=0xff => message.extend([major | 24, arg as u8]),
        0x100..=0xffff => {
            message.push(major | 25);
            message.extend((arg as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            message.push(major | 26);
            message.extend((arg as u32).to_be_bytes());
        }
        _ => {
            message.push(major | 27);
            message.extend(arg.to_be_bytes());
        }
    }
}

fn take<'a>(rest: &mut &'a [u8], n: usize) -> &'a [u8] {
    let (taken, after) = rest.split_at(n);
    *rest = after;
    taken
}

/// Reads one item and makes a number of it.
fn value(rest: &mut &[u8]) -> u64 {
    let first = take(rest, 1)[0];
    let mut arg = (first & 31) as u64;
    if arg >= 24 {
        let bytes = take(rest, 1 << (arg - 24));
        arg = bytes.iter().fold(0, |n, &b| n << 8 | b as u64);
    }
    match first >> 5 {
        _ if first == FLOAT64 => f64::from_bits(arg) as u64,
        TEXT => take(rest, arg as usize)
            .iter()
            .fold(0u64, |sum, &b| sum.wrapping_mul(31).wrapping_add(b as u64)),
        MAP => items(rest, arg * 2),
        ARRAY => items(rest, arg),
        _ => arg,
    }
}

fn items(rest: &mut &[u8], n: u64) -> u64 {
    (0..n).fold(0u64, |sum, _| sum.wrapping_mul(7).wrapping_add(value(rest)))
}
