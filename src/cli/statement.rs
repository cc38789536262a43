//! What a structure states of itself, as text and as JSON. Both take everything from the registry.

use rare_workloads::structures::{Adt, Info, Insert, Memory, ParameterInfo, Reclaims, Search, Structure};
use serde_json::{Value, json};

use crate::{diag, spec, units::count};

/// Columns of a terminal that everything is readable on.
const COLUMNS: usize = 100;

/// Returns what the table of structures shows of one, as a block of lines.
pub(super) fn block(structure: &Structure) -> String {
    format!("{}\n{}", heading(structure), facts(structure))
}

/// Returns everything that a structure states of itself.
pub(super) fn whole(structure: &Structure) -> String {
    let info = &structure.info;
    format!(
        "{}\n\n{}\n\n{}\n{}\n{}",
        heading(structure),
        facts(structure),
        points("deviations from the source", "  - ", info.deviations),
        points("invariants", "  ", info.invariants),
        usage(info),
    )
}

fn heading(structure: &Structure) -> String {
    format!("{}: {}", structure.info.name, structure.info.title)
}

/// The statements that every structure makes, one under another.
fn facts(structure: &Structure) -> String {
    let info = &structure.info;
    let reclamation = format!("{}; {}", schemes(structure).join(", "), reclaims(info.reclaims));
    let mut lines = hanging("  source       ", info.source);
    lines.extend(hanging("  progress     ", info.progress));
    lines.extend(hanging("  semantics    ", &spec::describe(&info.semantics)));
    lines.extend(hanging("  reclamation  ", &reclamation));
    lines.extend(hanging("  memory       ", memory(info.memory)));
    lines.extend(hanging("  search       ", &search(info.search)));
    lines.extend(hanging("  range query  ", if structure.has_range_query() { "linearizable" } else { "none" }));
    if info.parameters.is_empty() {
        lines.push("  parameters   none of its own".to_owned());
    }
    for (idx, parameter) in info.parameters.iter().enumerate() {
        let label = if idx == 0 { "  parameters   " } else { "               " };
        lines.extend(hanging(label, &parameter_text(parameter)));
    }
    lines.join("\n")
}

fn parameter_text(parameter: &ParameterInfo) -> String {
    let ParameterInfo { name, default, range: (min, max), meaning } = parameter;
    format!("{name} ({} to {}, default {}): {meaning}", count(*min), count(*max), count(*default))
}

/// A list of statements under a heading, which says so when there are none.
fn points(heading: &str, bullet: &str, points: &[&str]) -> String {
    if points.is_empty() {
        return format!("{heading}: none\n");
    }
    let lines = points.iter().flat_map(|point| hanging(bullet, point));
    lines.fold(format!("{heading}\n"), |text, line| text + &line + "\n")
}

/// How a spec names the structure, with its parameters where it has some.
fn usage(info: &Info) -> String {
    let own = info.parameters.iter().map(|parameter| format!(", {}: {}", parameter.name, parameter.default));
    match own.collect::<String>() {
        own if own.is_empty() => format!("in a spec: `structures: [{}]`", info.name),
        own => format!("in a spec: `structures: [{0}]`, or `{{use: {0}, as: LABEL{own}}}`", info.name),
    }
}

/// Breaks a text behind a label, so that its later lines begin where the first does.
fn hanging(label: &str, text: &str) -> Vec<String> {
    let width = label.chars().count();
    let lines = diag::wrap(text, COLUMNS - width).into_iter().enumerate();
    lines.map(|(idx, line)| if idx == 0 { format!("{label}{line}") } else { format!("{:width$}{line}", "") }).collect()
}

/// The reclamation schemes that a structure can be run under.
fn schemes(structure: &Structure) -> Vec<&'static str> {
    structure.drivers.iter().map(|(scheme, _)| scheme.name()).collect()
}

fn reclaims(reclaims: Reclaims) -> &'static str {
    match reclaims {
        Reclaims::Deferred => "removed nodes go to the scheme",
        Reclaims::AtOnce => "frees under its lock, whatever the scheme",
        Reclaims::Own => "reclaims by a scheme of its own, whatever is asked for",
        Reclaims::Nothing => "allocates nothing",
    }
}

fn memory(memory: Memory) -> &'static str {
    match memory {
        Memory::Nodes => "nodes that can be padded and pooled",
        Memory::Own => "its own, which can be neither padded nor pooled",
        Memory::Nothing => "none",
    }
}

fn search(search: Search) -> String {
    match search {
        Search::Constant => "passes as many keys in a large set as in a small one".to_owned(),
        Search::Logarithmic => "passes about the logarithm of the keys".to_owned(),
        Search::Linear => "passes every smaller key".to_owned(),
        Search::Chains(buckets) => format!("passes the keys of one of `{buckets}` chains"),
        Search::Levels(levels) => format!("passes the smaller keys of the sparsest of `{levels}` levels"),
    }
}

/// Returns everything that a structure states of itself for tools.
pub(super) fn json(structure: &Structure) -> Value {
    // Every field is named, so that one which is added cannot be forgotten here.
    let Info {
        name,
        title,
        source,
        progress,
        semantics,
        reclaims: freed,
        memory,
        search,
        deviations,
        invariants,
        parameters,
    } = &structure.info;
    let parameter = |parameter: &ParameterInfo| {
        let ParameterInfo { name, default, range: (min, max), meaning } = parameter;
        json!({"name": name, "default": default, "min": min, "max": max, "meaning": meaning})
    };
    let adt = match semantics.adt {
        Adt::OrderedDictionary => "ordered-dictionary",
        Adt::HashDictionary => "hash-dictionary",
        Adt::Nothing => "nothing",
    };
    let insert = match semantics.insert {
        Insert::IfAbsent => "if-absent",
        Insert::Nothing => "nothing",
    };
    let reclaims_word = match freed {
        Reclaims::Deferred => "deferred",
        Reclaims::AtOnce => "at-once",
        Reclaims::Own => "own",
        Reclaims::Nothing => "nothing",
    };
    let memory_word = match memory {
        Memory::Nodes => "nodes",
        Memory::Own => "own",
        Memory::Nothing => "nothing",
    };
    let search_word = match search {
        Search::Constant => "constant",
        Search::Logarithmic => "logarithmic",
        Search::Linear => "linear",
        Search::Chains(_) => "chains",
        Search::Levels(_) => "levels",
    };
    json!({
        "name": name,
        "title": title,
        "source": source,
        "progress": progress,
        "semantics": {
            "adt": adt,
            "insert": insert,
            "key_bits": semantics.key_bits,
            "value_bits": semantics.value_bits,
        },
        "reclamation": schemes(structure),
        "reclaims": reclaims_word,
        "memory": memory_word,
        "search": search_word,
        "range_query": structure.has_range_query(),
        "deviations": deviations,
        "invariants": invariants,
        "parameters": parameters.iter().map(parameter).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use rare_workloads::structures;

    use super::*;

    #[test]
    fn everything_that_is_stated_is_shown_and_fits() {
        for structure in structures::ALL {
            let text = whole(structure);
            assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
            let on_one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let Info { name, title, source, progress, deviations, invariants, parameters, .. } = &structure.info;
            let parameters = parameters.iter().flat_map(|parameter| [parameter.name, parameter.meaning]);
            let lists = deviations.iter().chain(*invariants).copied().chain(parameters).chain(schemes(structure));
            for stated in [*name, title, source, progress].into_iter().chain(lists) {
                assert!(on_one_line.contains(stated), "`{stated}` is not in\n{text}");
            }
        }
    }

    #[test]
    fn a_structure_is_not_called_like_anything_else_that_is_explained() {
        for structure in structures::ALL {
            assert_eq!(spec::explain(structure.info.name), None, "{}", structure.info.name);
        }
    }
}
