//! Expands a spec into its cells.
//!
//! The axes are crossed by an odometer in the order of [`Parameter`], the first slowest; linked axes are one wheel of
//! it. Then structures replace the parameters that they fix, `exclude` leaves cells out, and `include` adds some.
//! Whoever calls has bounded the crossing before ([`super::limits`]).

use std::collections::{BTreeMap, BTreeSet};

use super::{
    error::{RuleFault, RuleProblem},
    rules::{Indices, Matcher},
};
use crate::spec::{
    Spec,
    model::Rule,
    value::{Parameter, Value},
};

/// The cells of a plan.
pub(super) struct Expansion {
    /// Every value that some cell takes, by parameter, in order of first use.
    pub(super) values: [Vec<Value>; Parameter::COUNT],
    /// The cells as indices into the values, each once; none when all are excluded.
    pub(super) cells: Vec<Indices>,
    /// The rules that match or add nothing.
    pub(super) faults: Vec<RuleFault>,
}

/// Expands `spec`.
pub(super) fn expand(spec: &Spec) -> Expansion {
    let mut palette = Palette::default();
    let crossing = Wheel::all_of(spec, &[], &mut palette);
    let inclusions: Vec<Vec<Wheel>> =
        spec.include.iter().map(|inclusion| Wheel::all_of(spec, &inclusion.values, &mut palette)).collect();
    let overrides = Overrides::of(spec, &mut palette);
    let mut exclusion = Exclusion::of(spec, &palette);

    let mut cells = UniqueCells::default();
    turn(&crossing, |cell| {
        let cell = overrides.apply(cell, &[]);
        if !exclusion.matches(&cell) {
            cells.add(cell);
        }
    });
    let mut faults = exclusion.faults();
    for (inclusion, wheels) in spec.include.iter().zip(&inclusions) {
        let n_before = cells.listed.len();
        turn(wheels, |cell| cells.add(overrides.apply(cell, &inclusion.values)));
        if cells.listed.len() == n_before {
            faults.push(RuleFault { at: inclusion.at.clone(), problem: RuleProblem::IncludesNothing });
        }
    }
    let (values, cells) = palette.renumbered(cells.listed);
    Expansion { values, cells, faults }
}

/// Returns the lengths of the wheels of the crossing, and those of each inclusion.
pub(super) fn lengths(spec: &Spec) -> impl Iterator<Item = Vec<usize>> {
    let every_choice = std::iter::once(&[][..]).chain(spec.include.iter().map(|inclusion| &inclusion.values[..]));
    every_choice.map(|chosen| linked(spec, chosen).iter().map(|wheel| axis_length(spec, chosen, wheel)).collect())
}

/// Parameters with the values that an inclusion chooses for them.
type Chosen = [(Parameter, Vec<Value>)];

/// One wheel of the odometer: parameters that advance together.
struct Wheel {
    /// Each parameter with the palette's indices of its values.
    columns: Vec<(Parameter, Vec<u32>)>,
    length: usize,
}

impl Wheel {
    /// The wheels of a crossing, slowest first. Chosen values stand in for the axes of their parameters.
    fn all_of(spec: &Spec, chosen: &Chosen, palette: &mut Palette) -> Vec<Self> {
        let mut wheel = |parameters: Vec<Parameter>| {
            let length = axis_length(spec, chosen, &parameters);
            let column = |parameter| (parameter, palette.place_all(parameter, axis(spec, chosen, parameter)));
            Self { columns: parameters.into_iter().map(column).collect(), length }
        };
        linked(spec, chosen).into_iter().map(&mut wheel).collect()
    }
}

/// Groups the parameters into wheels. A parameter with chosen values leaves the group it is linked to.
fn linked(spec: &Spec, chosen: &Chosen) -> Vec<Vec<Parameter>> {
    let is_chosen = |parameter: Parameter| chosen.iter().any(|(it, _)| *it == parameter);
    let mut wheels: Vec<Vec<Parameter>> = Vec::new();
    for parameter in Parameter::ALL {
        let group = spec.zip.iter().find(|group| group.contains(&parameter) && !is_chosen(parameter));
        let wheel = group.and_then(|group| {
            wheels.iter_mut().find(|wheel| wheel.iter().any(|it| group.contains(it) && !is_chosen(*it)))
        });
        match wheel {
            Some(wheel) => wheel.push(parameter),
            None => wheels.push(vec![parameter]),
        }
    }
    wheels
}

fn axis<'s>(spec: &'s Spec, chosen: &'s Chosen, parameter: Parameter) -> &'s [Value] {
    let chosen = chosen.iter().find(|(it, _)| *it == parameter);
    chosen.map_or(spec.axis(parameter), |(_, values)| values)
}

fn axis_length(spec: &Spec, chosen: &Chosen, wheel: &[Parameter]) -> usize {
    let mut lengths = wheel.iter().map(|&parameter| axis(spec, chosen, parameter).len());
    let first = lengths.next().expect("a wheel has at least one parameter");
    assert!(lengths.all(|length| length == first), "spec links axes of unequal lengths: {wheel:?}");
    first
}

/// Turns the odometer through every position, the last wheel fastest.
fn turn(wheels: &[Wheel], mut visit: impl FnMut(Indices)) {
    assert!(wheels.iter().all(|wheel| wheel.length > 0), "spec has an axis without values");
    let mut positions = vec![0; wheels.len()];
    loop {
        let mut cell = [0; Parameter::COUNT];
        for (wheel, &position) in wheels.iter().zip(&positions) {
            wheel.columns.iter().for_each(|(parameter, column)| cell[*parameter as usize] = column[position]);
        }
        visit(cell);
        let Some(advancing) = (0..wheels.len()).rev().find(|&idx| positions[idx] + 1 < wheels[idx].length) else {
            return;
        };
        positions[advancing] += 1;
        positions[advancing + 1..].fill(0);
    }
}

/// Parameters that structures fix for themselves, by the palette's index of the structure.
struct Overrides(BTreeMap<u32, Vec<(Parameter, u32)>>);

impl Overrides {
    fn of(spec: &Spec, palette: &mut Palette) -> Self {
        let mut overrides = BTreeMap::<u32, Vec<_>>::new();
        for (label, parameter, value) in &spec.overrides {
            let structures = palette.values[Parameter::Structure as usize].iter();
            let labelled = |value: &Value| matches!(value, Value::Structure(structure) if structure.label == *label);
            let structure_idx = structures.clone().position(labelled).expect("an override names a structure's label");
            let value_idx = palette.place(*parameter, value);
            overrides.entry(structure_idx as u32).or_default().push((*parameter, value_idx));
        }
        Self(overrides)
    }

    /// Replaces what the structure of `cell` fixes, save where an inclusion chooses the value itself.
    fn apply(&self, mut cell: Indices, chosen: &Chosen) -> Indices {
        for (parameter, value_idx) in self.0.get(&cell[Parameter::Structure as usize]).into_iter().flatten() {
            if chosen.iter().all(|(it, _)| it != parameter) {
                cell[*parameter as usize] = *value_idx;
            }
        }
        cell
    }
}

/// The `exclude` rules, and whether each has matched a cell.
struct Exclusion<'s> {
    rules: Vec<(&'s Rule, Matcher, bool)>,
}

impl<'s> Exclusion<'s> {
    fn of(spec: &'s Spec, palette: &Palette) -> Self {
        let resolved = |rule| (rule, Matcher::new(rule, &palette.values), false);
        Self { rules: spec.exclude.iter().map(resolved).collect() }
    }

    /// Tells whether any rule matches. Each one is asked, so that a rule in the shadow of another is not taken for one
    /// that matches nothing.
    fn matches(&mut self, cell: &Indices) -> bool {
        let mut is_excluded = false;
        for (_, matcher, has_matched) in &mut self.rules {
            let matches = matcher.matches(cell);
            *has_matched |= matches;
            is_excluded |= matches;
        }
        is_excluded
    }

    fn faults(&self) -> Vec<RuleFault> {
        let idle = self.rules.iter().filter(|(_, _, has_matched)| !has_matched);
        idle.map(|(rule, ..)| RuleFault { at: rule.at.clone(), problem: RuleProblem::ExcludesNothing }).collect()
    }
}

/// Cells in order of their first appearance.
#[derive(Default)]
struct UniqueCells {
    seen: BTreeSet<Indices>,
    listed: Vec<Indices>,
}

impl UniqueCells {
    fn add(&mut self, cell: Indices) {
        if self.seen.insert(cell) {
            self.listed.push(cell);
        }
    }
}

/// Every value that a cell may take, numbered while the wheels are made.
#[derive(Default)]
struct Palette {
    values: [Vec<Value>; Parameter::COUNT],
    places: [BTreeMap<Value, u32>; Parameter::COUNT],
}

impl Palette {
    fn place(&mut self, parameter: Parameter, value: &Value) -> u32 {
        let (values, places) = (&mut self.values[parameter as usize], &mut self.places[parameter as usize]);
        *places.entry(value.clone()).or_insert_with(|| {
            values.push(value.clone());
            u32::try_from(values.len() - 1).expect("a spec of bounded size has fewer values")
        })
    }

    fn place_all(&mut self, parameter: Parameter, values: &[Value]) -> Vec<u32> {
        values.iter().map(|value| self.place(parameter, value)).collect()
    }

    /// Renumbers the values in order of first use by `cells` and drops those that no cell takes.
    fn renumbered(self, mut cells: Vec<Indices>) -> ([Vec<Value>; Parameter::COUNT], Vec<Indices>) {
        let mut values: [Vec<Value>; Parameter::COUNT] = Default::default();
        let mut renumbering: [Vec<Option<u32>>; Parameter::COUNT] =
            std::array::from_fn(|parameter| vec![None; self.values[parameter].len()]);
        for cell in &mut cells {
            for (parameter, value_idx) in cell.iter_mut().enumerate() {
                let old_idx = *value_idx as usize;
                *value_idx = *renumbering[parameter][old_idx].get_or_insert_with(|| {
                    values[parameter].push(self.values[parameter][old_idx].clone());
                    values[parameter].len() as u32 - 1
                });
            }
        }
        (values, cells)
    }
}
