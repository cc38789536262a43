//! The command line: parser, help, completions and man page derive from these types.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

/// Compiles experiment specs into hashed run plans, runs them, and renders R.A.R.E. reports.
#[derive(Parser, Debug)]
#[command(name = "rare", version, max_term_width = 100, after_help = super::exit_help())]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,

    /// Print no progress, only results and errors
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Check, plan, run what is missing, and write the report
    Make(MakeArguments),
    /// Check specs and report every mistake at once
    Check(CheckArguments),
    /// Print the plan of a spec: cells, trials, order, estimates, hash
    Plan(PlanArguments),
    /// Run what is missing of a plan, without writing the report
    Run(MakeArguments),
    /// Write the report of a plan again from its records
    Report(ReportArguments),
    /// Measure a plan again, from its hash or a published file, and compare the environments
    Rerun(RerunArguments),
    /// List what can be run, and the plans of the store
    List(ListArguments),
    /// Show a plan of the store with its runs, and whether `make` goes on with them here
    Show(HashArguments),
    /// Check the digests of everything in the store
    Verify(VerifyArguments),
    /// Explain a diagnostic code, a key of the spec, or a structure
    Explain {
        /// A code such as E0207, a key such as key_ranges, a value such as epoch, or a structure; none lists them all
        term: Option<String>,
    },
    /// Print the JSON Schema of the spec, for editors
    Schema,
    /// Plant each fault that a check exists for, and tell whether it is caught
    Selftest(SelftestArguments),
    /// Tell what this machine can and cannot honour
    Doctor(StoreArguments),
    /// Print shell completions
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the man page
    Man,
}

/// Where reports are.
#[derive(Args, Debug, Clone)]
pub struct StoreArguments {
    /// Folder of the reports
    #[arg(long, value_name = "DIR", default_value = Self::DEFAULT, value_hint = ValueHint::DirPath)]
    pub reports: PathBuf,
}

impl StoreArguments {
    /// The folder when none is named, below the current one.
    pub const DEFAULT: &str = "reports";
}

/// What to list.
#[derive(Args, Debug)]
pub struct ListArguments {
    /// One kind of thing, with all that is known of each; none lists everything in short
    #[arg(value_enum, value_name = "KIND")]
    pub kind: Option<Kind>,
    /// Print it as JSON, for tools
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    #[allow(missing_docs, reason = "documented at its type")]
    pub store: StoreArguments,
}

/// Kinds of things that can be listed, in the order in which they are.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What can be measured
    Structures,
    /// What can serve its memory
    Allocators,
    /// What can give removed nodes back
    Reclamation,
    /// What can be checked
    Checks,
    /// Structures with a planted fault, which a check must find
    Controls,
    /// What the store holds
    Plans,
}

impl Kind {
    /// The word on the command line, which is the heading too.
    pub fn name(self) -> &'static str {
        match self {
            Self::Structures => "structures",
            Self::Allocators => "allocators",
            Self::Reclamation => "reclamation",
            Self::Checks => "checks",
            Self::Controls => "controls",
            Self::Plans => "plans",
        }
    }
}

/// A spec and where its reports are.
#[derive(Args, Debug, Clone)]
pub struct MakeArguments {
    /// The spec
    #[arg(value_name = "SPEC", value_hint = ValueHint::FilePath)]
    pub spec: PathBuf,
    /// Lay the `quick` block of the spec over it; the report says so on every page
    #[arg(long)]
    pub quick: bool,
    /// Run the trials again that failed
    #[arg(long)]
    pub retry_failed: bool,
    /// Start a new run even if one could be continued
    #[arg(long)]
    pub fresh: bool,
    #[command(flatten)]
    #[allow(missing_docs, reason = "documented at its type")]
    pub reporting: ReportingArguments,
}

/// Where reports are, and what they are made with.
#[derive(Args, Debug, Clone)]
pub struct ReportingArguments {
    #[command(flatten)]
    #[allow(missing_docs, reason = "documented at its type")]
    pub store: StoreArguments,
    /// Folder whose templates replace the built-in ones of the same name
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub templates: Option<PathBuf>,
}

/// Specs to check.
#[derive(Args, Debug)]
pub struct CheckArguments {
    /// The specs
    #[arg(value_name = "SPEC", required = true, value_hint = ValueHint::FilePath)]
    pub specs: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
}

/// How diagnostics are written.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people
    Text,
    /// For editors
    Json,
}

/// A spec to plan.
#[derive(Args, Debug)]
pub struct PlanArguments {
    /// The spec
    #[arg(value_name = "SPEC", value_hint = ValueHint::FilePath)]
    pub spec: PathBuf,
    /// Lay the `quick` block over the spec
    #[arg(long)]
    pub quick: bool,
    /// Print the canonical plan whose SHA-256 is the hash
    #[arg(long, conflicts_with_all = ["explain", "yaml"])]
    pub json: bool,
    /// Print the same as YAML, for reading and diffing
    #[arg(long, conflicts_with = "explain")]
    pub yaml: bool,
    /// List everything that enters the hash, and what does not and why
    #[arg(long)]
    pub explain: bool,
}

/// A plan of the store.
#[derive(Args, Debug)]
pub struct HashArguments {
    /// Plan hash, or a unique prefix of at least 6 digits, or NAME/HASH
    #[arg(value_name = "HASH")]
    pub hash: String,
    #[command(flatten)]
    #[allow(missing_docs, reason = "documented at its type")]
    pub store: StoreArguments,
}

/// A plan whose report is written again.
#[derive(Args, Debug)]
pub struct ReportArguments {
    /// Plan hash, or a unique prefix of at least 6 digits, or NAME/HASH
    #[arg(value_name = "HASH")]
    pub hash: String,
    #[command(flatten)]
    #[allow(missing_docs, reason = "documented at its type")]
    pub reporting: ReportingArguments,
}

/// A plan to run again.
#[derive(Args, Debug)]
pub struct RerunArguments {
    /// Plan hash, prefix or NAME/HASH, path of a plan.json, or path of a published report.html
    #[arg(value_name = "HASH|FILE", value_hint = ValueHint::FilePath)]
    pub plan: String,
    /// Go on with the newest run of the plan, if trials are missing in it, instead of starting another
    #[arg(long)]
    pub resume: bool,
    #[command(flatten)]
    #[allow(missing_docs, reason = "documented at its type")]
    pub reporting: ReportingArguments,
}

/// What to plant.
#[derive(Args, Debug)]
pub struct SelftestArguments {
    /// Plant only the faults that this check must catch
    #[arg(long, value_name = "CHECK")]
    pub only: Option<String>,
    /// Run a spec without a fault so many times too, and count false alarms
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub clean: u32,
}

/// What to verify.
#[derive(Args, Debug)]
pub struct VerifyArguments {
    /// Plan hash, prefix or NAME/HASH; none verifies the whole store
    #[arg(value_name = "HASH")]
    pub hash: Option<String>,
    /// Keep the good records of damaged journals; the damaged file stays beside them
    #[arg(long)]
    pub repair: bool,
    #[command(flatten)]
    #[allow(missing_docs, reason = "documented at its type")]
    pub store: StoreArguments,
}
