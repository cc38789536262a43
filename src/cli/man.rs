//! `rare man`: one page for everything, from the parser, the table of exit codes and the tables here.

use clap::CommandFactory;
use clap_mangen::roff::{Roff, bold, italic, roman};

use super::{
    arguments::Arguments,
    console::Console,
    exit::{Exit, Failure},
};

/// Environment variables that a user may set. What `rare` sets for its workers is not among them.
const VARIABLES: [(&str, &str); 4] = [
    (
        crate::run::worker::WORKER_VARIABLE,
        "The program that runs trials, instead of the rare-worker beside rare. It must belong to the same build.",
    ),
    (
        crate::store::lock::MACHINE_LOCK_VARIABLE,
        "The file whose lock keeps a second run from measuring on the same machine, instead of \
         /tmp/rare-measuring.lock: for containers that share CPUs but not /tmp.",
    ),
    ("NO_COLOR", "If set and not empty, no colours."),
    ("TERM", "If dumb, no colours, and plain lines of progress instead of one that redraws itself."),
];

/// What a plan's folder holds.
const FILES: [(&str, &str); 6] = [
    ("reports/NAME/HASH/plan.json", "The plan. Its SHA-256 begins with HASH."),
    ("reports/NAME/HASH/spec.yaml", "The spec as it was last run."),
    ("reports/NAME/HASH/runs/RUN/trials.jsonl", "The journal: one proven record a line, on the disk before it counts."),
    ("reports/NAME/HASH/runs/RUN/environment.json", "Every parameter of the machine and the build, before and after."),
    ("reports/NAME/HASH/report.html, report.md, figures/, data.csv", "The report of the newest run."),
    ("reports/NAME/HASH/manifest.json", "The digest of every file; absent while something is unfinished."),
];

/// Commands for the page's examples, each with what it does.
const EXAMPLES: [(&str, &str); 4] = [
    ("rare make specs/bst.yaml", "Run what is missing of an experiment and write its report."),
    ("rare make specs/bst.yaml --quick", "The same in seconds, to see whether the spec is what you mean."),
    ("rare rerun report.html", "Measure the plan inside a published report on this machine."),
    ("rare verify", "Check every digest of everything under reports/."),
];

/// Prints the man page.
pub(super) fn man(console: &Console) -> Result<Exit, Failure> {
    let mut page = Vec::new();
    render(&mut page).map_err(|error| Failure::from_error(Exit::Bug, &error))?;
    console.write(String::from_utf8_lossy(&page));
    Ok(Exit::Valid)
}

fn render(page: &mut Vec<u8>) -> std::io::Result<()> {
    let command = Arguments::command();
    let man = clap_mangen::Man::new(command.clone());
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    commands(&command).to_writer(page)?;
    let exits = Exit::TABLE.map(|(exit, meaning)| ((exit as u8).to_string(), meaning));
    table("EXIT STATUS", exits.iter().map(|(code, meaning)| (code.as_str(), *meaning))).to_writer(page)?;
    table("ENVIRONMENT", VARIABLES).to_writer(page)?;
    table("FILES", FILES).to_writer(page)?;
    table("EXAMPLES", EXAMPLES).to_writer(page)
}

/// Every command with its arguments: there is one page, not one for each.
fn commands(command: &clap::Command) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["COMMANDS"]);
    for command in command.get_subcommands() {
        let values = command.get_positionals().map(placeholder).collect::<Vec<_>>().join(" ");
        roff.control("SS", [format!("rare {} {values}", command.get_name()).trim_end()]);
        roff.text([roman(command.get_about().map(ToString::to_string).unwrap_or_default())]);
        for argument in command.get_arguments().filter(|argument| !argument.is_global_set()) {
            roff.control("TP", []);
            roff.text(match argument.get_long() {
                None => vec![italic(placeholder(argument))],
                Some(long) if argument.get_action().takes_values() => {
                    vec![bold(format!("--{long}")), roman(" "), italic(placeholder(argument))]
                }
                Some(long) => vec![bold(format!("--{long}"))],
            });
            roff.text([roman(help(argument))]);
        }
    }
    roff
}

/// The name of an argument's value.
fn placeholder(argument: &clap::Arg) -> String {
    let named = argument.get_value_names().and_then(|names| names.first());
    let name = named.map_or_else(|| argument.get_id().to_string().to_uppercase(), ToString::to_string);
    let name = if argument.is_positional() && !argument.is_required_set() { format!("[{name}]") } else { name };
    if argument.get_num_args().is_some_and(|range| range.max_values() > 1) { format!("{name}...") } else { name }
}

/// The help of an argument with its values and its default.
fn help(argument: &clap::Arg) -> String {
    let mut help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let values = argument.get_possible_values();
    if argument.get_action().takes_values() && !values.is_empty() {
        let names: Vec<&str> = values.iter().map(|value| value.get_name()).collect();
        help.push_str(&format!(": {}", names.join(", ")));
    }
    if let [default] = argument.get_default_values() {
        help.push_str(&format!(" (default: {})", default.to_string_lossy()));
    }
    help
}

fn table<'t>(title: &str, rows: impl IntoIterator<Item = (&'t str, &'t str)>) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    for (term, meaning) in rows {
        roff.control("TP", []);
        roff.text([bold(term)]);
        roff.text([roman(meaning)]);
    }
    roff
}
