//! `rare plan`: what would run, without running it.

use super::{
    arguments::PlanArguments,
    console::Console,
    exit::{Exit, Failure},
    experiment::Experiment,
};
use crate::plan::{self, Plan};

/// Writes a plan as YAML: the same content as its canonical JSON, whose bytes the hash is of.
fn yaml(plan: &Plan) -> Result<String, Failure> {
    let bug = |error: &dyn std::error::Error| Failure::from_error(Exit::Bug, error);
    let value: serde_json::Value = serde_json::from_slice(&plan.canonical()).map_err(|error| bug(&error))?;
    serde_yaml::to_string(&value).map_err(|error| bug(&error))
}

/// Prints the listing of a plan, its canonical JSON, or what its hash is made of.
pub(super) fn plan(console: &Console, arguments: &PlanArguments) -> Result<Exit, Failure> {
    let experiment = Experiment::load(console, &arguments.spec, arguments.quick)?;
    if arguments.json {
        console.write(String::from_utf8_lossy(&experiment.plan.canonical()));
    } else if arguments.yaml {
        console.write(yaml(&experiment.plan)?);
    } else if arguments.explain {
        console.line(experiment.plan.explain());
    } else {
        let n_cpus = super::n_cpus();
        console.line(plan::listing(&experiment.plan, n_cpus));
    }
    Ok(Exit::Valid)
}
