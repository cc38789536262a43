//! The readers of what valgrind and perf write, on outputs that were recorded (see `tests/corpus/README.md`).

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

use std::{fs, path::Path};

use rare::{
    record::watched::{Blocks, FindingClass, Memcheck, Profile, Simulated},
    tools::{
        callgrind::{self, CallgrindError},
        flame,
        memcheck::{self, MemcheckError},
        profile::{self, ProfileError},
    },
};

fn corpus(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn memcheck_of(name: &str) -> Memcheck {
    memcheck::read(&corpus(&format!("memcheck/{name}.xml"))).unwrap()
}

fn callgrind_of(names: &[&str]) -> Simulated {
    let files: Vec<Vec<u8>> = names.iter().map(|name| corpus(&format!("callgrind/{name}"))).collect();
    callgrind::read(&files.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap()
}

fn profile_of(name: &str) -> Profile {
    profile::read(&corpus(&format!("perf/{name}")), None).unwrap()
}

#[test]
fn a_planted_leak_is_found_to_the_byte() {
    let seen = memcheck_of("leak");
    assert_eq!((seen.version.as_deref(), seen.protocol), (Some("3.19.0"), 4));
    assert_eq!(seen.definite, Blocks { bytes: 1504, blocks: 47 });
    assert_eq!((seen.indirect, seen.possible), (Blocks::default(), Blocks::default()));
    assert_eq!(seen.n_errors, 0);
    let leaks = seen.findings.iter().filter(|finding| finding.class == FindingClass::DefiniteLeak);
    let places: Vec<_> = leaks.map(|leak| (leak.lost.unwrap().blocks, leak.frames[0].clone())).collect();
    assert_eq!(places.iter().map(|(blocks, _)| blocks).sum::<u64>(), 47);
    for (_, frame) in places {
        assert!(frame.file.as_deref().unwrap().ends_with("workloads/src/structures/controls/forest.rs"), "{frame:?}");
        assert!(frame.line.unwrap() > 0);
    }
    assert_eq!(seen.findings[0].class, FindingClass::DefiniteLeak, "the worst comes first");
}

#[test]
fn a_clean_run_is_clean() {
    let seen = memcheck_of("clean");
    assert_eq!((seen.definite, seen.indirect, seen.possible), Default::default());
    assert_eq!(seen.n_errors, 0);
    assert!(seen.reachable.blocks > 0 && seen.findings.iter().all(|finding| finding.class == FindingClass::Reachable));
    assert!(seen.suppressed.iter().any(|used| used.name == "std-record-of-main-thread" && used.times > 0));
}

#[test]
fn an_invalid_read_names_the_line_the_free_and_the_allocation() {
    let seen = memcheck_of("invalid-read");
    let finding = &seen.findings[0];
    assert_eq!((finding.class, finding.kind.as_str()), (FindingClass::InvalidAccess, "InvalidRead"));
    assert_eq!(finding.what, "Invalid read of size 8");
    assert_eq!(seen.n_errors, finding.times.unwrap());
    assert!(seen.n_errors > 1);
    let frame = &finding.frames[0];
    assert!(frame.file.as_deref().unwrap().ends_with("controls/use_after_free.rs"), "{frame:?}");
    let related: Vec<_> = finding.related.iter().map(|related| related.what.as_str()).collect();
    assert!(related[0].contains("inside a block of size 32 free'd"), "{related:?}");
    assert!(related[1].contains("Block was alloc'd at"), "{related:?}");
    assert!(finding.related.iter().all(|related| !related.frames.is_empty()));
}

#[test]
fn format_6_is_read_and_its_sums_are_compared() {
    let seen = memcheck_of("protocol-6");
    assert_eq!((seen.version.as_deref(), seen.protocol), (Some("3.26.0"), 6));
    // What is lost through a lost block is listed once more, so it counts once.
    assert_eq!(seen.definite, Blocks { bytes: 160, blocks: 2 });
    assert_eq!(seen.indirect, Blocks { bytes: 2976, blocks: 3 });
    assert_eq!(seen.n_errors, 7);
    let classes: Vec<_> = seen.findings.iter().map(|finding| finding.class).collect();
    use FindingClass::{DefiniteLeak, IndirectLeak, InvalidFree, Other};
    assert_eq!(classes, [InvalidFree, Other, DefiniteLeak, IndirectLeak]);
    assert_eq!(seen.findings[0].frames[0].function.as_deref(), Some("example::free"));
    assert_eq!(seen.findings[0].related[0].frames[0].function.as_deref(), Some("allocate<u64>"));
    let text = String::from_utf8(corpus("memcheck/protocol-6.xml")).unwrap();
    let error = memcheck::read(text.replace("<bytes>160<", "<bytes>161<").as_bytes()).unwrap_err();
    assert!(matches!(error, MemcheckError::Contradiction { what: "definitely_lost", .. }), "{error}");
}

#[test]
fn what_is_not_a_whole_run_is_refused_in_words() {
    let refused = |bytes: &[u8]| memcheck::read(bytes).unwrap_err();
    let whole = corpus("memcheck/clean.xml");
    let text = String::from_utf8(whole.clone()).unwrap();
    assert_eq!(refused(b" \n"), MemcheckError::Empty);
    assert_eq!(refused(&corpus("memcheck/two-processes.xml")), MemcheckError::Several);
    assert_eq!(refused(&[whole.clone(), whole].concat()), MemcheckError::Several);
    let replaced = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        refused(text.replace(from, to).as_bytes())
    };
    assert_eq!(replaced("<protocolversion>4<", "<protocolversion>7<"), MemcheckError::Protocol(Some("7".into())));
    assert_eq!(replaced("<tool>memcheck<", "<tool>helgrind<"), MemcheckError::OtherTool("helgrind".into()));
    assert_eq!(replaced("FINISHED", "RUNNING"), MemcheckError::Unfinished("RUNNING".into()));
    assert_eq!(replaced("--leak-check=full", "--leak-check=no"), MemcheckError::NoLeakCheck("--leak-check=full"));
    assert!(matches!(replaced("valgrindoutput", "html"), MemcheckError::Garbled(_)));
    assert!(matches!(refused(b"==12== Memcheck, a memory error detector"), MemcheckError::Garbled(_)));
    assert!(matches!(replaced("<leakedblocks>1<", "<leakedblocks>one<"), MemcheckError::Garbled(_)));
}

#[test]
fn death_by_a_signal_is_named_and_what_was_seen_is_kept() {
    let error = memcheck::read(&corpus("memcheck/sigill.xml")).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("SIGILL (Illegal opcode)") && said.contains("instruction of this processor"), "{said}");
    let MemcheckError::Fatal { frames, seen, .. } = error else { panic!("{error:?}") };
    assert_eq!(frames[0].line, Some(2));
    assert_eq!((seen.n_errors, seen.findings[0].kind.as_str()), (1, "InvalidWrite"));
}

#[test]
fn no_cut_output_is_taken_for_a_whole_one() {
    // A long one at fewer places, because each is read from its start.
    for (name, step) in [("memcheck/sigill.xml", 50), ("memcheck/protocol-6.xml", 50), ("memcheck/leak.xml", 1999)] {
        let whole = corpus(name);
        let end = whole.trim_ascii_end().len();
        for cut in (0..end).step_by(step).chain([end - 1]) {
            let error = memcheck::read(&whole[..cut]).unwrap_err();
            assert!(matches!(error, MemcheckError::Empty | MemcheckError::Cut { .. }), "{name} at {cut}: {error}");
        }
    }
    let forms = [("callgrind/nm14", 1999), ("callgrind/noop-parts", 50), ("callgrind/noop-uncompressed", 50)];
    for (name, step) in forms {
        let whole = corpus(name);
        // A cut within the last number may leave a shorter one, which is then not the sum.
        for cut in (0..whole.trim_ascii_end().len()).step_by(step) {
            assert!(callgrind::read(&[&whole[..cut]]).is_err(), "{name} at {cut}");
        }
    }
    let whole = corpus("perf/nm14");
    let n_samples = profile_of("nm14").samples;
    let mut n_refused = 0;
    for cut in (0..whole.len() - 1).step_by(50) {
        // The text of perf has no mark at its end, so a cut between samples cannot be seen.
        match profile::read(&whole[..cut], None) {
            Err(ProfileError::Cut { .. } | ProfileError::Garbled { .. }) => n_refused += 1,
            Err(ProfileError::NoSamples { lost: 0 }) => assert_eq!(cut, 0),
            Err(error) => panic!("{cut}: {error}"),
            Ok(profile) => assert!(profile.samples < n_samples && whole[..cut].ends_with(b"\n\n"), "{cut}"),
        }
    }
    assert!(n_refused > 500, "{n_refused}");
}

#[test]
fn callgrind_adds_up() {
    let seen = callgrind_of(&["nm14"]);
    assert_eq!(seen.version.as_deref(), Some("3.19.0"));
    assert_eq!(seen.caches.len(), 3, "{:?}", seen.caches);
    assert_eq!(seen.events.join(" "), "Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim");
    // Two threads of 1,000 operations.
    let instructions = seen.total("Ir").unwrap();
    assert!((100_000..2_000_000).contains(&instructions), "{instructions}");
    assert_eq!(seen.total("Cycles"), None);
    assert!(seen.n_functions > seen.functions.len() as u64, "the list is cut to the hottest");
    let listed: u64 = seen.functions.iter().map(|function| function.costs[0]).sum();
    assert!(listed <= instructions && listed > instructions / 10 * 9, "{listed} of {instructions}");
    assert!(seen.functions.is_sorted_by(|a, b| a.costs[0] >= b.costs[0]));
    let hot = seen.functions.iter().find(|function| function.function.contains("nm14")).unwrap();
    assert!(!hot.function.contains("17h") && hot.function.contains("SetHandle>::"), "{}", hot.function);
    assert!(hot.lines.iter().any(|line| line.file.ends_with("structures/nm14.rs") && line.line > 0), "{:?}", hot.lines);
}

#[test]
fn callgrind_is_read_in_each_of_its_forms() {
    // Without compression, in parts, and a file for each thread; the window is the same but for chance between threads.
    let (plain, parts) = (callgrind_of(&["noop-uncompressed"]), callgrind_of(&["noop-parts"]));
    let threads = callgrind_of(&["noop-thread-2", "noop-thread-3"]);
    assert_eq!(plain.total("Ir"), parts.total("Ir"));
    assert_eq!(threads.total("Ir"), Some(17_387 + 17_394));
    let hottest = |seen: &Simulated| (seen.functions[0].function.clone(), seen.functions[0].lines[0].file.clone());
    assert_eq!(hottest(&plain), hottest(&parts));
    assert_eq!(hottest(&plain), hottest(&threads));
    // Nothing is cut from so short a list, so that it adds up.
    assert_eq!(plain.n_functions, plain.functions.len() as u64);
    for (at, event) in plain.events.iter().enumerate() {
        let sum: u64 = plain.functions.iter().map(|function| function.costs[at]).sum();
        assert_eq!(sum, plain.totals[at], "{event}");
    }
    assert!(hottest(&plain).0.ends_with("harness::window::run"), "{:?}", hottest(&plain));
}

#[test]
fn callgrind_without_figures_is_refused_in_words() {
    let refused = |files: &[&[u8]]| callgrind::read(files).unwrap_err();
    assert_eq!(refused(&[&corpus("callgrind/nothing-collected")]), CallgrindError::NothingCollected);
    assert_eq!(refused(&[b"\n"]), CallgrindError::Empty);
    let text = String::from_utf8(corpus("callgrind/noop-uncompressed")).unwrap();
    let (body, _) = text.split_once("totals:").unwrap();
    assert_eq!(refused(&[body.as_bytes()]), CallgrindError::Cut { part: 1 });
    assert!(matches!(refused(&[format!("{body}totals: 1\n").as_bytes()]), CallgrindError::Contradiction { .. }));
    assert!(matches!(refused(&[format!("{body}hello\n").as_bytes()]), CallgrindError::Garbled { .. }));
    let other = text.replace("events: Ir", "events: Instructions");
    assert!(matches!(refused(&[text.as_bytes(), other.as_bytes()]), CallgrindError::OtherEvents(..)));
}

#[test]
fn samples_are_folded() {
    let profile = profile_of("nm14");
    // Cycles were asked for.
    assert_eq!(profile.event, "cpu-clock:ppp");
    assert_eq!((profile.samples, profile.weight, profile.lost), (34, 34 * 10_101_010, 0));
    assert_eq!(profile.threads, 2);
    assert_eq!(profile.stacks.iter().map(|stack| stack.weight).sum::<u64>(), profile.weight);
    assert_eq!(profile.symbols.iter().map(|symbol| symbol.samples).sum::<u64>(), profile.samples);
    assert!(profile.symbols.is_sorted_by(|a, b| a.weight >= b.weight));
    assert!(profile.symbols.iter().any(|symbol| symbol.symbol.contains("nm14") && !symbol.symbol.contains("17h")));
    let outermost = &profile.names[profile.stacks[0].frames[0] as usize];
    assert!(["start_thread", "clone", "_start"].iter().any(|name| outermost.starts_with(name)), "{outermost}");
}

#[test]
fn lost_samples_are_counted() {
    let profile = profile_of("lost");
    assert_eq!((profile.event.as_str(), profile.lost), ("cpu-clock", 3 + 1 + 2));
}

#[test]
fn samples_that_are_none_are_refused_in_words() {
    let check = |text: &str, expected: &str| {
        let error = profile::read(text.as_bytes(), None).unwrap_err().to_string();
        assert!(error.contains(expected), "`{error}` lacks `{expected}`");
    };
    check("", "perf took no samples: the window is too short");
    check("# comment\n\n", "took no samples");
    check(" 12 1.0: PERF_RECORD_LOST lost 7\n", "took no samples, and lost some");
    check("a thread 12 1.0: 1 cycles: \n\n", "line 1: a sample does not begin with a thread");
    check(" 12 1.0: cycles: \n\n", "does not tell what it stands for");
    check(" 12 1.0: 5 cycles: \n\tffff main+0x1\n\n", "line 2: a frame has no object");
    check(" 12 1.0: 5 cycles: \n\tffff main+0x1 (/a)\n", "cut in line 2");
    check(&" 12 1.0: 18446744073709551615 cycles:\n\n".repeat(2), "overflows");
}

#[test]
fn odd_names_survive() {
    let text = " 12 1.0: 5 cycles:u: \n\t1 a;b+0x1 (/a b (deleted))\n\t2 [unknown] ([unknown])\n\tffffffff81 do_it+0x5 ([kernel.kallsyms])\n\n\
                 12 1.0: 5 cycles:u:      1 main+0x1 (/a)\n\n 12 1.0: 0 cycles:u:\n\n";
    let profile = profile::read(text.as_bytes(), None).unwrap();
    assert_eq!((profile.samples, profile.weight), (3, 10));
    let folded: Vec<String> = flame::fold(&profile).into_keys().collect();
    assert_eq!(folded, ["[no stack]", "do_it [kernel];[unknown] in [unknown];a:b", "main"]);
}

/// What a picture must not hold to stand in a page that allows neither scripts nor anything from elsewhere.
fn assert_is_plain(svg: &str) {
    for part in
        ["<script", "<style", "onload", "onclick", "javascript", "style=", "url(", "href", "<!", "<?", "id=", "fg:"]
    {
        assert!(!svg.contains(part), "{part}");
    }
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{}", &svg[..200.min(svg.len())]);
    assert!(svg.contains("<title>") && svg.contains("<rect") && svg.contains("viewBox"));
    assert!(!svg.contains("Reset Zoom") && !svg.contains("Search"));
}

#[test]
fn flame_graphs_are_plain_pictures() {
    let (before, after) = (profile_of("nm14"), profile_of("lost"));
    let svg = flame::graph(&before).unwrap();
    assert_is_plain(&svg);
    assert!(svg.contains("nm14::") && svg.contains("ns, "), "a title tells name, weight and share");
    assert_eq!(svg, flame::graph(&before).unwrap(), "the same picture each time");
    let difference = flame::difference(&before, &after).unwrap();
    assert_is_plain(&difference);
    let same = flame::difference(&before, &before).unwrap();
    assert!(difference.contains("%; +") && !same.contains("%; +"), "only what differs is marked");
}

#[test]
fn weights_that_are_not_listed_are_drawn_as_such() {
    let mut profile = profile_of("nm14");
    profile.stacks.truncate(2);
    let folded = flame::fold(&profile);
    assert_eq!(folded.values().sum::<u64>(), profile.weight);
    assert!(folded["[stacks not listed]"] > 0);
    profile.stacks.clear();
    profile.weight = 0;
    assert!(matches!(flame::graph(&profile), Err(flame::FlameError::Nothing)));
}
