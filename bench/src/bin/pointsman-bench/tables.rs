//! Writes a report as tables.

use std::io::{self, Write};

use pointsman_bench::{BenchReport, Figure, MeasurementUnit, TimeSeries};

/// The blanks between two columns.
const COLUMN_GAP: usize = 2;

/// Writes the figures, then each time series.
pub(crate) fn write_report(out: &mut impl Write, report: &BenchReport) -> io::Result<()> {
    let head = ["MEASUREMENT", "RESULT", "COMPARED WITH", "RATIO", "GOAL", ""].map(String::from);
    let rows = [head].into_iter().chain(report.figures.iter().map(format_figure_row));
    write_table(out, rows.map(Vec::from).collect())?;
    for series in &report.time_series {
        writeln!(out, "\n{}", series.name)?;
        write_table(out, format_time_series_rows(series))?;
    }
    Ok(())
}

fn format_figure_row(figure: &Figure) -> [String; 6] {
    let reference = figure.compared_with.as_ref();
    let verdict = match figure.goal_reached {
        Some(true) => "reached",
        Some(false) => "missed",
        None => "",
    };
    [
        figure.name.clone(),
        format_measured_value(figure.value, figure.unit),
        reference
            .map(|(name, value)| format!("{} ({name})", format_measured_value(*value, figure.unit)))
            .unwrap_or_default(),
        figure.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
        figure.goal.clone().unwrap_or_default(),
        verdict.to_owned(),
    ]
}

/// A row for each time, with a column for each measured value.
fn format_time_series_rows(series: &TimeSeries) -> Vec<Vec<String>> {
    let head =
        ["AFTER".to_owned()].into_iter().chain(series.lines.iter().map(|line| line.name.to_uppercase()));
    let rows = series.times.iter().enumerate().map(|(i, time)| {
        let values = series.lines.iter().map(|line| {
            let value = line.values.get(i).copied();
            value.map_or_else(String::new, |value| format_measured_value(value, line.unit))
        });
        [format!("{time:.0} s")].into_iter().chain(values).collect()
    });
    [head.collect()].into_iter().chain(rows).collect()
}

/// Writes rows in aligned columns.
fn write_table(out: &mut impl Write, rows: Vec<Vec<String>>) -> io::Result<()> {
    let mut widths = vec![0; rows.iter().map(Vec::len).max().unwrap_or(0)];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count() + COLUMN_GAP);
        }
    }
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        writeln!(out, "{}", cells.collect::<String>().trim_end())?;
    }
    Ok(())
}

fn format_measured_value(value: f64, unit: MeasurementUnit) -> String {
    let sign = unit.suffix();
    match unit {
        MeasurementUnit::PerSecond | MeasurementUnit::Rows | MeasurementUnit::Bytes => {
            format!("{value:.0}{sign}")
        }
        MeasurementUnit::Milliseconds => format!("{value:.2}{sign}"),
        MeasurementUnit::Megabytes if value < 1.0 => format!("{value:.2}{sign}"),
        MeasurementUnit::Megabytes => format!("{value:.0}{sign}"),
    }
}

#[cfg(test)]
mod tests {
    use pointsman_bench::TimeSeriesLine;

    use super::*;

    #[test]
    fn figures_and_time_series_are_written_in_aligned_columns() {
        let emits = Figure::new("emits", 1000.4, MeasurementUnit::PerSecond)
            .with_comparison("plain SQL", 2000.0)
            .with_min_ratio(0.75);
        let memory = Figure::new("memory", 0.5, MeasurementUnit::Megabytes);
        let line = TimeSeriesLine { name: "rows".into(), unit: MeasurementUnit::Rows, values: vec![7.0] };
        let series = TimeSeries { name: "size at full load".into(), times: vec![2.0], lines: vec![line] };
        let report = BenchReport { figures: vec![emits, memory], time_series: vec![series] };
        let mut out = vec![];
        write_report(&mut out, &report).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\
MEASUREMENT  RESULT   COMPARED WITH       RATIO  GOAL
emits        1000/s   2000/s (plain SQL)  0.50   ≥ 0.75 ×  missed
memory       0.50 MB

size at full load
AFTER  ROWS
2 s    7 rows
"
        );
    }
}
