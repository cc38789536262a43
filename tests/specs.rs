//! Every committed spec is one that its reader can run: it compiles without a word, asks a question, and ends in time.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::{collections::BTreeSet, fs, path::Path};

use rare::{
    diag::{self, Source},
    plan::Plan,
    spec::{self, Compiled, value::Parameter},
    units::Nanos,
};

const SECOND: u64 = 1_000_000_000;

/// Longest time that a spec is expected to take on two CPUs.
const WHOLE: Nanos = Nanos(300 * SECOND);

/// The same of its quick run. What the checks add is estimated at about twice what it takes.
const QUICK: Nanos = Nanos(80 * SECOND);

/// Specs whose question cannot be answered in [`WHOLE`].
const LONGER: &[(&str, Nanos, &str)] =
    &[("key-range", Nanos(420 * SECOND), "ten million keys take seconds to fill in")];

/// Names and texts of the committed specs.
fn committed() -> Vec<(String, Source)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("specs");
    let folders = [folder.clone(), folder.join("lessons")].into_iter();
    let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    let read = |path: std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, Source { name: path.display().to_string(), text: fs::read_to_string(path).unwrap() })
    };
    files.map(read).collect()
}

/// Compiles a spec that must have neither mistakes nor warnings.
fn compile(source: &Source, quick: bool) -> (Compiled, Plan) {
    let show = |found: &[diag::Diagnostic]| diag::render(found, source, false);
    let compiled = spec::compile(source, quick).unwrap_or_else(|found| panic!("{}", show(&found)));
    assert!(compiled.warnings.is_empty(), "{}", show(&compiled.warnings));
    let plan =
        Plan::compile(&compiled.spec, rare::verdict::probes).unwrap_or_else(|error| panic!("{}: {error}", source.name));
    (compiled, plan)
}

#[test]
fn each_compiles_and_ends_in_time() {
    let specs = committed();
    assert!(specs.len() >= 10, "only {} specs were found", specs.len());
    for (name, source) in &specs {
        let longer = LONGER.iter().find(|(longer, _, _)| longer == name).map(|(_, time, _)| *time);
        for (quick, limit) in [(false, longer.unwrap_or(WHOLE)), (true, QUICK)] {
            let (Compiled { spec, .. }, plan) = compile(source, quick);
            assert_eq!(spec.name, *name, "the name of a spec is that of its file");
            assert!(spec.question.is_some(), "{name} asks nothing");
            let wall = plan.estimate(2).wall;
            assert!(wall <= limit, "{name}, quick {quick}: {} s of at most {} s", wall.0 / SECOND, limit.0 / SECOND);
        }
        let (whole, quick) = (compile(source, false).1, compile(source, true).1);
        assert!(quick.estimate(2).wall < whole.estimate(2).wall, "the quick run of {name} is not shorter");
    }
    for (name, _, _) in LONGER {
        assert!(specs.iter().any(|(known, _)| known == name), "there is no {name}");
    }
}

/// The main job, which is promised: six trees under two allocators and two pinnings.
#[test]
fn the_trees_are_compared_under_two_allocators_and_two_pinnings() {
    let (_, source) = committed().into_iter().find(|(name, _)| name == "bst").unwrap();
    for quick in [false, true] {
        let (Compiled { spec, .. }, _) = compile(&source, quick);
        let axis = |parameter: Parameter| spec.axis(parameter).iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        let trees = ["abtree17", "bcco10", "citrus14", "dgt15", "efrb10", "nm14"];
        assert!(axis(Parameter::Structure).iter().eq(trees), "{:?}", axis(Parameter::Structure));
        assert_eq!((axis(Parameter::Allocator).len(), axis(Parameter::Pinning).len()), (2, 2));
    }
}
