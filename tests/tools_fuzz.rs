//! The readers of foreign bytes on mutations of `tests/corpus`: none panics, and none takes memory beyond a bound.
//!
//! Deterministic: seed and round name an input. `RARE_TEST_SEED` chooses the seed, `RARE_TESTS=long` a hundred times the
//! rounds. What once failed belongs into the corpus.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    env, fs, panic,
    path::Path,
};

use rare::tools::{callgrind, flame, memcheck, profile};
use rare_workloads::protocol::{FORMAT, frame};

/// The system's allocator, which keeps for each thread what is allocated now and at most was.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

impl Counting {
    fn count(bytes: isize) {
        // A thread that ends has no counters any more, and nobody asks for them.
        let _ = NOW.try_with(|now| {
            now.set(now.get() + bytes);
            let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now.get())));
        });
    }
}

// SAFETY: every call is handed to the system's allocator as it is; the counters allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size().cast_signed());
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        Self::count(-layout.size().cast_signed());
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Returns what `act` had allocated at most, in bytes.
fn peak_of(act: impl FnOnce()) -> usize {
    let before = NOW.get();
    PEAK.set(before);
    act();
    (PEAK.get() - before).max(0).cast_unsigned()
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap()
    }

    fn one_of<'t, T: ?Sized>(&mut self, list: &[&'t T]) -> &'t T {
        list[self.below(list.len())]
    }
}

/// Pieces that a reader may stumble over.
const PIECES: [&str; 22] = [
    "<",
    ">",
    "</",
    "&",
    "&amp;",
    "&#x0;",
    "<![CDATA[",
    "<!--",
    "\n",
    "\t",
    " ",
    ":",
    "=",
    "(",
    ")",
    "+0x",
    "-1",
    "0",
    "18446744073709551615",
    "999999999999999999999999",
    "é",
    "\u{0}",
];

/// Returns a text with up to eight random changes, made with the texts of the same kind.
fn mutated(texts: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut text = texts[random.below(texts.len())].clone();
    for _ in 0..=random.below(8) {
        let at = random.below(text.len() + 1);
        let end = (at + random.below(200)).min(text.len());
        match random.below(8) {
            0 => text.truncate(at),
            1 => drop(text.drain(at..end)),
            2 if !text.is_empty() => {
                let at = random.below(text.len());
                text[at] ^= 1 << random.below(8);
            }
            3 => drop(text.splice(at..at, random.one_of(&PIECES.map(str::as_bytes)).iter().copied())),
            4 => drop(text.splice(at..end, random.one_of(&PIECES.map(str::as_bytes)).iter().copied())),
            5 => {
                let piece = text[at..end].to_vec();
                let to = random.below(text.len() + 1);
                drop(text.splice(to..to, piece));
            }
            6 => {
                let other = &texts[random.below(texts.len())];
                let from = random.below(other.len() + 1);
                let piece = other[from..(from + random.below(400)).min(other.len())].to_vec();
                drop(text.splice(at..end, piece));
            }
            _ => change_line(&mut text, random),
        }
    }
    text
}

/// Repeats or drops the lines at a random place: half of all faults of text are of whole lines.
fn change_line(text: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(text.len() + 1);
    let is_newline = |byte: &u8| *byte == b'\n';
    let start = text[..at].iter().rposition(is_newline).map_or(0, |newline| newline + 1);
    let end = text[at..].iter().position(is_newline).map_or(text.len(), |newline| at + newline + 1);
    let line = text[start..end].to_vec();
    let copies = [0, 0, 2, 3, 50][random.below(5)];
    drop(text.splice(start..end, line.repeat(copies)));
}

fn corpus(folder: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(folder);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 2);
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn n_rounds() -> u64 {
    match env::var("RARE_TESTS").as_deref() {
        Ok("long") => 30_000,
        Ok("short") => 30,
        _ => 300,
    }
}

/// Runs a reader, which tells whether it read anything, on mutations of a folder of the corpus. It may take `factor` bytes
/// for each byte of the input, and a constant.
fn fuzz(folder: &str, factor: usize, read: impl Fn(&[u8]) -> bool) {
    const CONSTANT: usize = 1 << 16;
    let texts = corpus(folder);
    let seed = env::var("RARE_TEST_SEED").map_or(1, |seed| seed.parse().unwrap());
    let (mut n_read, mut most) = (0, 0.0_f64);
    for round in 0..n_rounds() {
        let text = mutated(&texts, &mut Random(seed ^ round << 32));
        let peak = peak_of(|| {
            let outcome = panic::catch_unwind(panic::AssertUnwindSafe(|| read(&text)));
            n_read += u64::from(outcome.unwrap_or_else(|_| panic!("{folder}: seed {seed}, round {round} panics")));
        });
        let bound = factor * text.len() + CONSTANT;
        assert!(peak <= bound, "{folder}: seed {seed}, round {round} takes {peak} bytes for {}", text.len());
        most = most.max(peak.saturating_sub(CONSTANT) as f64 / text.len().max(1) as f64);
    }
    println!("{folder}: {n_read} of {} mutations are read; at most {most:.1} bytes for each byte", n_rounds());
    assert!(n_read < n_rounds(), "no mutation is refused");
}

#[test]
fn memcheck_reader_survives() {
    fuzz("memcheck", 20, |bytes| memcheck::read(bytes).is_ok());
}

#[test]
fn callgrind_reader_survives() {
    fuzz("callgrind", 20, |bytes| {
        let half = bytes.len() / 2;
        // Both as one file and as two.
        callgrind::read(&[&bytes[..half], &bytes[half..]]).is_ok() | callgrind::read(&[bytes]).is_ok()
    });
}

#[test]
fn profile_reader_and_painter_survive() {
    fuzz("perf", 20, |bytes| profile::read(bytes, None).is_ok());
    let texts = corpus("perf");
    let whole = profile::read(&texts[0], None).unwrap();
    for round in 0..n_rounds() / 10 {
        let text = mutated(&texts, &mut Random(round));
        if let Ok(profile) = profile::read(&text, None) {
            // Only a profile without weight has no picture.
            assert_eq!(flame::graph(&profile).is_ok(), profile.weight > 0, "round {round}");
            assert_eq!(flame::difference(&whole, &profile).is_ok(), profile.weight > 0, "round {round}");
        }
    }
}

#[test]
fn reply_reader_survives() {
    fuzz("reply", 20, |bytes| frame::decode(bytes).is_ok());
    // A digest keeps nearly all mutations from the payload: these have a header that fits.
    let payloads: Vec<Vec<u8>> = corpus("reply")
        .iter()
        .map(|reply| {
            let start = reply.iter().position(|byte| *byte == b'\n').unwrap() + 1;
            reply[start..reply.len() - 1].to_vec()
        })
        .collect();
    for round in 0..n_rounds() {
        let payload = mutated(&payloads, &mut Random(round));
        let header = format!("rare-reply {FORMAT} {} {}\n", payload.len(), frame::sha256_hex(&payload));
        let reply = [header.as_bytes(), &payload, b"\n"].concat();
        let peak = peak_of(|| _ = frame::decode(&reply).is_ok());
        assert!(peak <= 20 * reply.len() + (1 << 16), "round {round} takes {peak} bytes for {}", reply.len());
    }
}

#[test]
fn crafted_bombs_stay_small() {
    let nested = "<a>".repeat(200_000);
    let many_frames = format!(" 1 1.0: 1 e: \n{}\n", "\t1 f+0x1 (/a)\n".repeat(100_000));
    let events = format!("version: 1\nevents: {}\n", "E ".repeat(100_000));
    let lines: String = (0..50_000).map(|line| format!("{line} 1\n")).collect();
    let costs = format!("version: 1\npositions: line\nevents: Ir\nfn=f\n{lines}totals: 50000\n");
    let peak = peak_of(|| {
        assert!(memcheck::read(nested.as_bytes()).is_err());
        assert!(profile::read(many_frames.as_bytes(), None).is_ok());
        assert!(callgrind::read(&[events.as_bytes()]).is_err());
        assert!(callgrind::read(&[costs.as_bytes()]).is_ok());
    });
    let longest = many_frames.len();
    assert!(peak < 60 * longest, "{peak} for {longest}");
}
