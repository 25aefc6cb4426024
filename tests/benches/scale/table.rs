//! Table of the figures with their goals.

/// Rows, in the order in which they were measured.
#[derive(Default)]
pub(crate) struct Table(Vec<Row>);

struct Row {
    what: String,
    figure: String,
    goal: String,
    is_kept: Option<bool>,
}

impl Table {
    /// Adds a figure that has no goal.
    pub(crate) fn tell(&mut self, what: impl Into<String>, figure: impl Into<String>) {
        self.add(what.into(), figure.into(), String::new(), None);
    }

    /// Adds a figure that should be below its goal.
    pub(crate) fn judge(
        &mut self,
        what: impl Into<String>,
        (figure, unit): (f64, &str),
        goal: f64,
    ) {
        let shown = |n: f64| match n {
            n if n >= 100.0 => format!("{n:.0} {unit}"),
            n => format!("{n:.2} {unit}"),
        };
        let goal_shown = format!("< {}", shown(goal));
        self.add(what.into(), shown(figure), goal_shown, Some(figure < goal));
    }

    fn add(&mut self, what: String, figure: String, goal: String, is_kept: Option<bool>) {
        println!("{what}: {figure} {goal}");
        self.0.push(Row {
            what,
            figure,
            goal,
            is_kept,
        });
    }

    pub(crate) fn print(&self) {
        println!("\n| what | figure | goal | |\n|---|---|---|---|");
        for row in &self.0 {
            let mark = match row.is_kept {
                None => "",
                Some(true) => "kept",
                Some(false) => "missed",
            };
            println!("| {} | {} | {} | {mark} |", row.what, row.figure, row.goal);
        }
    }
}
