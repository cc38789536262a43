//! Linear axes from zero.

/// An axis from zero to its last tick.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    /// Tick values, ascending from zero.
    pub ticks: Vec<f64>,
    /// Digits after the point that tell the ticks apart.
    n_digits: usize,
}

impl Scale {
    /// Chooses round ticks so that the last one is at least `max`.
    pub(super) fn up_to(max: f64) -> Self {
        let max = if max > 0.0 && max.is_finite() { max } else { 1.0 };
        let (mut power, mut n_digits) = (1.0, 0usize);
        while power * 10.0 <= max / 2.0 {
            power *= 10.0;
        }
        while power > max / 2.0 {
            power /= 10.0;
            n_digits += 1;
        }
        // Three to six steps of 1, 2 or 5 times a power of ten.
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power * 5.0 >= max).unwrap_or(10.0);
        let n_steps = (max / (step * power)).ceil().max(1.0) as usize;
        let n_digits = if step == 10.0 { n_digits.saturating_sub(1) } else { n_digits };
        // Multiplied before it is divided, so that a tick such as 0.3 is the closest double to it.
        let ticks = (0..=n_steps)
            .map(|k| if power < 1.0 { k as f64 * step / (1.0 / power).round() } else { k as f64 * step * power });
        Self { ticks: ticks.collect(), n_digits }
    }

    /// Returns the end of the axis.
    pub(super) fn max(&self) -> f64 {
        self.ticks[self.ticks.len() - 1]
    }

    /// Writes a tick.
    pub(super) fn label(&self, tick: f64) -> String {
        format!("{tick:.*}", self.n_digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_data() {
        for max in [1e-3, 0.07, 0.3, 0.99, 1.0, 1.3, 4.9, 5.1, 9.99, 10.0, 42.0, 137.0, 1e4] {
            let scale = Scale::up_to(max);
            assert!(scale.ticks[0] == 0.0 && scale.max() >= max && scale.max() <= max * 2.0, "{max}: {scale:?}");
            assert!((3..=7).contains(&scale.ticks.len()), "{max}: {scale:?}");
            let labels: Vec<String> = scale.ticks.iter().map(|&tick| scale.label(tick)).collect();
            let parsed: Vec<f64> = labels.iter().map(|label| label.parse().unwrap()).collect();
            assert_eq!(parsed, scale.ticks, "labels say what the ticks are");
        }
        assert_eq!(Scale::up_to(0.0).max(), 1.0);
    }
}
