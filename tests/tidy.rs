//! Rules of the tree that no compiler checks: layers, registries, sizes.

#![allow(clippy::unwrap_used, reason = "a test stops where it does not find what it expects")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Which layers each layer may use. `cli` may use them all and is left out.
const LAYERS: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("diag", &[]),
    ("spec", &["diag", "units"]),
    ("plan", &["spec", "diag", "units"]),
    ("record", &["plan", "spec", "units"]),
    ("stats", &["record", "plan", "spec", "units"]),
    ("verdict", &["stats", "record", "plan", "spec", "units"]),
    ("report", &["verdict", "tools", "stats", "record", "plan", "spec", "units"]),
    ("host", &["record", "spec", "units"]),
    ("store", &["record", "plan", "units"]),
    ("tools", &["record", "units"]),
    ("run", &["tools", "store", "host", "record", "plan", "spec", "units"]),
];

/// A file this long has two ideas in it. Tables of data are exempt by name.
const LONGEST_FILE: usize = 600;

/// A function this long is usually two.
const LONGEST_FUNCTION: usize = 70;

/// What only one layer may do.
struct Act {
    what: &'static str,
    /// The layer.
    layer: &'static str,
    /// How code looks that does it.
    marks: &'static [&'static str],
    /// Files elsewhere that do it, each with the mark and the reason why it is right there.
    exempt: &'static [(&'static str, &'static str, &'static str)],
}

static ACTS: &[Act] = &[
    Act {
        what: "writes files",
        layer: "store",
        marks: &[
            "fs::write(",
            "fs::copy(",
            "fs::rename(",
            "fs::hard_link(",
            "fs::set_permissions(",
            "fs::create_dir",
            "fs::remove_",
            "File::create",
            "File::options(",
            "OpenOptions",
            "unix::fs::symlink",
            "OFlags::WRONLY",
            "OFlags::RDWR",
            "memfd_create(",
            "tempfile",
            "persist(",
            "set_len(",
        ],
        exempt: &[
            ("run/launch.rs", "memfd_create(", "a request is a file in memory, which no folder shows"),
            ("run/launch.rs", "OFlags::WRONLY", "a worker volunteers for the kernel's kill in /proc"),
        ],
    },
    Act {
        what: "starts processes",
        layer: "run",
        marks: &["Command::new", "process::Command", "duct::", "pre_exec(", "fork(", "posix_spawn", "libc::exec"],
        exempt: &[],
    },
    Act {
        what: "prints",
        layer: "cli",
        marks: &["println!", "print!(", "dbg!(", "io::stdout", "io::stderr", "io::{stdout", "io::{stderr", "log::"],
        exempt: &[],
    },
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn files_below(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns the code of a file without its unit tests, which may look across layers.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned()
}

/// Returns the layers that a source text names through `crate::`.
fn layers_used(text: &str) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    for (at, _) in text.match_indices("crate::") {
        // A doc link names a layer without using it.
        let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        if text[line_start..at].trim_start().starts_with("//") {
            continue;
        }
        let rest = &text[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            None => {
                used.insert(word(rest));
            }
            Some(group) => used.extend(top_level_words(group)),
        }
    }
    used
}

/// Returns the first words of the entries of a `{…}` group of a `use`, given the text after its brace.
fn top_level_words(group: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut depth = 0;
    let mut entry = String::new();
    for letter in group.chars() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => words.push(std::mem::take(&mut entry)),
            _ if depth == 0 => entry.push(letter),
            _ => {}
        }
    }
    words.push(entry);
    let first = |entry: String| entry.trim().split("::").next().unwrap_or_default().trim().to_owned();
    words.into_iter().map(first).filter(|word| !word.is_empty()).collect()
}

#[test]
fn a_group_of_uses_is_read() {
    let used = layers_used("use crate::{plan::{Cell, Plan}, units::Nanos, spec};\nlet x = crate::host::read();");
    assert_eq!(used.into_iter().collect::<Vec<_>>(), ["host", "plan", "spec", "units"]);
}

#[test]
fn layers_depend_one_way() {
    let allowed: BTreeMap<&str, &[&str]> = LAYERS.iter().copied().collect();
    let mut wrong = Vec::new();
    for path in files_below(&root().join("src"), ".rs") {
        let inside = path.strip_prefix(root().join("src")).unwrap().to_owned();
        let first = inside.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        let layer = first.trim_end_matches(".rs");
        if ["lib", "main", "bin", "cli"].contains(&layer) {
            continue;
        }
        let allowed = allowed.get(layer).unwrap_or_else(|| panic!("layer `{layer}` is not in LAYERS"));
        for used in layers_used(&code(&path)) {
            if used != layer && !allowed.contains(&used.as_str()) {
                wrong.push(format!("{}: `{layer}` must not use `{used}`", inside.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each unit of a registry is one file: a file that nobody registered would silently never run.
#[test]
fn every_unit_is_registered() {
    // Folder of the registry, and what a file of a unit contains.
    let registries = [
        ("workloads/src/structures", "static STRUCTURE: Structure"),
        ("workloads/src/structures/controls", "static CONTROL: Structure"),
        ("src/verdict/checks", "impl Check for "),
        ("src/report/sections", "const SECTION: Section"),
    ];
    for (folder, mark) in registries {
        let registry = fs::read_to_string(root().join(folder).join("mod.rs")).unwrap();
        let all = registry.split("static ALL").nth(1).and_then(|rest| rest.split("];").next()).unwrap();
        let mut n_units = 0;
        for path in files_below(&root().join(folder), ".rs") {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            if name == "mod" || !code(&path).contains(mark) {
                continue;
            }
            n_units += 1;
            assert!(all.contains(&format!("{name}::")), "{folder}/{name}.rs is not in ALL of {folder}/mod.rs");
        }
        assert!(n_units >= 6, "the mark `{mark}` finds {n_units} units in {folder}");
    }
}

/// Returns the lines of a source text that are not comments.
fn statements(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim_start().starts_with("//"))
}

#[test]
fn each_act_has_its_layer() {
    for Act { what, layer, marks, exempt } in ACTS {
        let (mut wrong, mut used, mut n_inside) = (Vec::new(), BTreeSet::new(), 0);
        for path in files_below(&root().join("src"), ".rs") {
            let inside = path.strip_prefix(root().join("src")).unwrap().to_string_lossy().into_owned();
            let code = code(&path);
            for line in statements(&code) {
                let Some(mark) = marks.iter().find(|mark| line.contains(**mark)) else { continue };
                match exempt.iter().find(|(file, exempted, _)| *file == inside && exempted == mark) {
                    _ if inside.starts_with(&format!("{layer}/")) => n_inside += 1,
                    Some(exemption) => _ = used.insert(exemption),
                    None => wrong.push(format!("{inside}: only `{layer}` {what}: {}", line.trim())),
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(n_inside > 0, "the marks find nothing in `{layer}`, which {what}");
        let unused: Vec<_> = exempt.iter().filter(|exemption| !used.contains(exemption)).collect();
        assert!(unused.is_empty(), "exempt and not there: {unused:?}");
    }
}

/// Returns the name and the number of lines of each function in a formatted source text, in which a function ends with
/// the first brace as far left as its `fn`.
fn functions(text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let words = line.trim_start();
        let indent = &line[..line.len() - words.len()];
        let Some((before, after)) = words.split_once("fn ").filter(|_| !words.starts_with("//")) else { continue };
        let qualifiers = ["pub", "const", "unsafe", "extern", "async", "\"C\"", "\"C-unwind\""];
        let is_qualifier = |word: &str| qualifiers.contains(&word) || word.starts_with("pub(") || word.ends_with(')');
        if !before.split_whitespace().all(is_qualifier) || line.ends_with([';', '}']) {
            continue;
        }
        let end = format!("{indent}}}");
        // A declaration over several lines has no body; formatted, its last line ends with `;` and is as far left.
        let is_end = |line: &&str| **line == end || line.starts_with(&format!("{indent})")) && line.ends_with(';');
        let n_lines = lines[at..].iter().position(is_end).map_or(1, |n| n + 1);
        found.push((after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect(), n_lines));
    }
    found
}

#[test]
fn functions_are_measured() {
    let text = "impl A {\n    pub(super) fn one(\n        a: u8,\n    ) {\n        {\n        }\n    }\n\n    fn two() {}\n}\n\n\
                pub const fn three() {\n    // fn no\n    let f: fn(u8) = g;\n}\n";
    assert_eq!(functions(text), [("one".to_owned(), 6), ("three".to_owned(), 4)]);
}

#[test]
fn functions_stay_short() {
    let (mut long, mut n_functions) = (Vec::new(), 0);
    for folder in ["src", "workloads/src"] {
        for path in files_below(&root().join(folder), ".rs") {
            for (name, n_lines) in functions(&code(&path)) {
                n_functions += 1;
                if n_lines > LONGEST_FUNCTION {
                    long.push(format!("{}: `{name}` has {n_lines} lines", path.display()));
                }
            }
        }
    }
    assert!(n_functions > 500, "only {n_functions} functions were found");
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn files_stay_short() {
    let mut long = Vec::new();
    for folder in ["src", "workloads/src"] {
        for path in files_below(&root().join(folder), ".rs") {
            let n_lines = fs::read_to_string(&path).unwrap().lines().count();
            if n_lines > LONGEST_FILE {
                long.push(format!("{}: {n_lines} lines", path.display()));
            }
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn structures_share_memory_through_the_shim() {
    // What bypasses `crate::sync` is no step to a model checker: its races would go unseen.
    const MARKS: [&str; 5] = ["atomic", "thread", "Mutex", "RwLock", "Condvar"];
    let mut n_through = 0;
    for path in files_below(&root().join("workloads/src/structures"), ".rs") {
        // Controls are there to be wrong, and no checker runs them.
        if path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "controls") {
            continue;
        }
        let code: String = statements(&code(&path)).collect::<Vec<_>>().join("\n");
        let ours = code.split("use crate::").skip(1).filter_map(|rest| rest.split(';').next());
        n_through += ours.filter(|import| import.contains("sync::")).count();
        let imports = ["use std::", "use parking_lot::"].into_iter().flat_map(|start| code.split(start).skip(1));
        for import in imports.filter_map(|rest| rest.split(';').next()) {
            let found = MARKS.iter().find(|mark| import.contains(**mark));
            assert!(found.is_none(), "{}: `{}` instead of crate::sync", path.display(), import.trim());
        }
        for named in ["std::sync::atomic::", "std::thread::"] {
            assert!(!code.contains(named), "{}: `{named}` instead of crate::sync", path.display());
        }
    }
    assert!(n_through > 20, "the structures use the shim {n_through} times");
}

#[test]
fn every_file_says_what_it_owns() {
    for folder in ["src", "workloads/src", "tests"] {
        for path in files_below(&root().join(folder), ".rs") {
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.starts_with("//!"), "{} does not open with `//!`", path.display());
        }
    }
}
