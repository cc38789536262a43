//! What can be named in a spec, as tables from the registries.

use rare_workloads::{
    protocol::Reclamation,
    structures::{self, Reclaims},
};

use crate::{spec::value::Allocator, verdict::checks};

/// Returns the structures, allocators, reclamation schemes and checks of this build as text.
pub(super) fn text() -> String {
    let mut lines = vec!["structures".to_owned()];
    let width = structures::ALL.iter().map(|structure| structure.info.name.len()).max().unwrap_or(0);
    for structure in structures::ALL {
        let info = &structure.info;
        lines.push(format!("  {:width$}  {}", info.name, info.title));
        lines.push(format!("  {:width$}  {}; {}", "", info.progress, reclaims(info.reclaims)));
    }
    lines.push("controls: structures with a planted fault, for tests of the checks".to_owned());
    let width = structures::CONTROLS.iter().map(|control| control.info.name.len()).max().unwrap_or(0);
    let faults = structures::CONTROLS.iter().map(|control| (control.info.name, control.info.deviations.join("; ")));
    lines.extend(faults.map(|(name, fault)| format!("  {name:width$}  {fault}")));
    lines.push(format!("allocators\n  {}, or {{preload: PATH}}", Allocator::LINKED.join(", ")));
    let schemes: Vec<&str> = Reclamation::ALL.iter().map(|scheme| scheme.name()).collect();
    lines.push(format!("reclamation\n  {}", schemes.join(", ")));
    lines.push("checks".to_owned());
    let width = checks::ALL.iter().map(|check| check.info().name.len()).max().unwrap_or(0);
    lines.extend(checks::ALL.iter().map(|check| format!("  {:width$}  {}", check.info().name, check.info().title)));
    lines.join("\n")
}

fn reclaims(reclaims: Reclaims) -> &'static str {
    match reclaims {
        Reclaims::Deferred => "removed nodes go to the reclamation scheme",
        Reclaims::AtOnce => "frees under its lock, whatever the scheme",
        Reclaims::Own => "reclaims by a scheme of its own, whatever is asked for",
        Reclaims::Nothing => "allocates nothing",
    }
}
