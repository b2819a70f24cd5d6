//! One panel of the picture, as plain SVG: dots on a line, or curves. All axes are logarithmic.
//!
//! Knows nothing of servers: names, colours and numbers go in.

use std::fmt::Write as _;

use super::phases::bytes;

/// Where a panel stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Place {
    /// Where its axes are: left, right, top, bottom.
    fn inside(self, names_left: bool) -> (f64, f64, f64, f64) {
        let (before, after) = if names_left { (124.0, 84.0) } else { (84.0, 134.0) };
        let (right, bottom) = (self.left + self.width - after, self.top + self.height - 44.0);
        (self.left + before, right, self.top + 66.0, bottom)
    }

    fn title(self, title: &str, about: &str) -> String {
        let (x, y) = (self.left + 24.0, self.top);
        format!(
            "<text class=\"t\" x=\"{x}\" y=\"{}\">{}</text><text class=\"d\" x=\"{x}\" y=\"{}\">{}</text>\n",
            y + 30.0,
            escape(title),
            y + 48.0,
            escape(about)
        )
    }
}

/// A logarithmic axis: from values to places.
struct Axis {
    values: (f64, f64),
    places: (f64, f64),
}

impl Axis {
    fn over(values: impl Iterator<Item = f64>, places: (f64, f64)) -> Option<Self> {
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for value in values.filter(|value| value.is_finite() && *value > 0.0) {
            (least, most) = (least.min(value), most.max(value));
        }
        // A little room on both sides, and never no width at all.
        (most > 0.0).then(|| Self { values: (least * 0.8, (most * 1.25).max(least * 2.0)), places })
    }

    fn at(&self, value: f64) -> f64 {
        let ((from, to), (start, end)) = (self.values, self.places);
        start + log2(value.max(from) / from) / log2(to / from) * (end - start)
    }

    /// Powers of ten within it; where there are few, what stands between them too.
    fn ticks(&self) -> Vec<f64> {
        let (from, to) = self.values;
        let steps: [&[f64]; 3] = [&[1.0], &[1.0, 2.0, 5.0], &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0]];
        let mut all = Vec::new();
        for step in steps {
            all = (0..=12).flat_map(|p| step.iter().map(move |n| n * 10_f64.powi(p))).collect();
            all.retain(|tick| *tick >= from && *tick <= to);
            if all.len() >= 3 {
                break;
            }
        }
        all
    }
}

/// The binary logarithm of 1 or more, to a millionth of what a picture shows. It would be all that needs
/// the system's library of mathematics, which is otherwise not loaded whenever the command starts.
fn log2(mut value: f64) -> f64 {
    let (mut whole, mut bit, mut part) = (0.0, 1.0, 0.0);
    while value >= 2.0 && value.is_finite() {
        (value, whole) = (value / 2.0, whole + 1.0);
    }
    for _ in 0..40 {
        (value, bit) = (value * value, bit / 2.0);
        if value >= 2.0 {
            (value, part) = (value / 2.0, part + bit);
        }
    }
    whole + part
}

/// A row for each name: a dot, and a line from it to something worse.
pub(super) struct Dots {
    pub(super) title: String,
    pub(super) about: String,
    /// How a number is written.
    pub(super) unit: fn(f64) -> String,
    pub(super) rows: Vec<(String, &'static str, f64, f64)>,
}

impl Dots {
    pub(super) fn draw(&self, place: Place) -> String {
        let (left, right, top, bottom) = place.inside(true);
        let mut out = place.title(&self.title, &self.about);
        let values = self.rows.iter().flat_map(|row| [row.2, row.3]);
        let Some(axis) = Axis::over(values, (left, right)) else { return out };
        for tick in axis.ticks() {
            let x = axis.at(tick);
            let _ = writeln!(
                out,
                "<line class=\"g\" x1=\"{x:.1}\" y1=\"{top}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>\
                 <text class=\"d m\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                bottom + 18.0,
                short(&(self.unit)(tick))
            );
        }
        let step = ((bottom - top) / self.rows.len().max(1) as f64).min(36.0);
        for (at, (name, colour, value, worse)) in self.rows.iter().enumerate() {
            let y = top + step * (at as f64 + 0.5);
            let (from, to) = (axis.at(*value), axis.at(*worse));
            let _ = writeln!(
                out,
                "<text class=\"e\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\
                 <line x1=\"{from:.1}\" y1=\"{y:.1}\" x2=\"{to:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\" \
                 stroke-width=\"3\" stroke-opacity=\".4\" stroke-linecap=\"round\"/>\
                 <circle cx=\"{from:.1}\" cy=\"{y:.1}\" r=\"5.5\" fill=\"{colour}\"/>\
                 <text class=\"d\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                left - 12.0,
                y + 4.0,
                escape(name),
                right + 10.0,
                y + 4.0,
                (self.unit)(*value)
            );
        }
        out
    }
}

/// A curve for each name, sizes across and times up.
pub(super) struct Curves {
    pub(super) title: String,
    pub(super) about: String,
    pub(super) lines: Vec<Curve>,
}

/// One of them: what it is called, and its points.
pub(super) struct Curve {
    pub(super) name: String,
    pub(super) colour: &'static str,
    pub(super) points: Vec<(f64, f64)>,
}

impl Curves {
    pub(super) fn draw(&self, place: Place) -> String {
        let (left, right, top, bottom) = place.inside(false);
        let mut out = place.title(&self.title, &self.about);
        let points = || self.lines.iter().flat_map(|line| line.points.iter().copied());
        let across = Axis::over(points().map(|(size, _)| size), (left, right));
        let up = Axis::over(points().map(|(_, time)| time), (bottom, top));
        let (Some(across), Some(up)) = (across, up) else { return out };
        for tick in up.ticks() {
            let y = up.at(tick);
            let _ = writeln!(
                out,
                "<line class=\"g\" x1=\"{left}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\
                 <text class=\"d e\" x=\"{}\" y=\"{:.1}\">{}</text>",
                left - 8.0,
                y + 4.0,
                short(&super::table::nanos(tick))
            );
        }
        let mut sizes: Vec<f64> = points().map(|(size, _)| size).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        // Every second one where there are many.
        let skip = sizes.len().div_ceil(5).max(1);
        for size in sizes.iter().rev().step_by(skip) {
            let _ = writeln!(
                out,
                "<text class=\"d m\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                across.at(*size),
                bottom + 18.0,
                bytes(*size as usize)
            );
        }
        let mut ends = Vec::new();
        // The first on top of the others.
        for Curve { name, colour, points } in self.lines.iter().rev() {
            let places: Vec<(f64, f64)> =
                points.iter().map(|(size, time)| (across.at(*size), up.at(*time))).collect();
            curve(&mut out, colour, &places);
            ends.extend(places.last().map(|(x, y)| (*x, *y, name.as_str(), *colour)));
        }
        names(&mut out, ends, (right, top, bottom));
        out
    }
}

fn curve(out: &mut String, colour: &str, places: &[(f64, f64)]) {
    let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = writeln!(
        out,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
         stroke-linejoin=\"round\"/>",
        path.join(" ")
    );
    for (x, y) in places {
        let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.8\" fill=\"{colour}\"/>");
    }
}

/// The names at the ends of the curves, moved apart where they would cover each other.
fn names(out: &mut String, mut ends: Vec<(f64, f64, &str, &str)>, room: (f64, f64, f64)) {
    const APART: f64 = 15.0;
    let (right, top, bottom) = room;
    ends.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut free = top - 8.0;
    let mut places = Vec::new();
    for (_, y, ..) in &ends {
        free = y.max(free);
        places.push(free);
        free += APART;
    }
    let mut most = bottom + 4.0;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - APART;
    }
    for ((x, y, name, colour), place) in ends.iter().zip(places) {
        let (dot, tip) = (right + 24.0, right + 19.0);
        let _ = writeln!(
            out,
            "<path d=\"M{:.1},{y:.1} L{tip},{place:.1}\" stroke=\"{colour}\" stroke-opacity=\".5\" \
             fill=\"none\"/><circle cx=\"{dot}\" cy=\"{place:.1}\" r=\"4\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + 4.0,
            dot + 9.0,
            place + 4.0,
            escape(name)
        );
    }
}

/// Without places that say nothing: `10.0 µs` is `10 µs`.
fn short(number: &str) -> String {
    match number.split_once('.') {
        Some((whole, rest)) => {
            let places = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            let digits = rest[..rest.len() - places.len()].trim_end_matches('0');
            let dot = if digits.is_empty() { "" } else { "." };
            format!("{whole}{dot}{digits}{places}")
        }
        None => number.to_owned(),
    }
}

/// Text in a picture.
pub(super) fn escape(text: &str) -> String {
    let clean = text.chars().filter(|c| !c.is_control());
    clean.fold(String::new(), |mut out, character| {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_goes_from_the_least_to_the_most() {
        let axis = Axis::over([1_000.0, 100_000.0, f64::NAN].into_iter(), (0.0, 100.0)).unwrap();
        assert!(axis.at(1_000.0) > 0.0 && axis.at(100_000.0) < 100.0);
        assert!((axis.at(10_000.0) - 50.0).abs() < 1.0, "{}", axis.at(10_000.0));
        assert_eq!(axis.ticks(), [1e3, 1e4, 1e5]);
        assert!(Axis::over([5.0, 5.0].into_iter(), (0.0, 1.0)).unwrap().at(5.0).is_finite());
        assert!(Axis::over([].into_iter(), (0.0, 1.0)).is_none());
    }

    #[test]
    fn logarithms_are_right_to_nine_places() {
        for (value, want) in [(1.0, 0.0), (1.25, 0.321_928_094_887), (1000.0, 9.965_784_284_662)] {
            assert!((log2(value) - want).abs() < 1e-9, "{value}: {}", log2(value));
        }
    }

    #[test]
    fn names_cannot_break_the_picture_and_numbers_are_short() {
        assert_eq!(escape("<a href=\"x\">&\u{1b}"), "&lt;a href=&quot;x&quot;&gt;&amp;");
        let table =
            [("10.0 µs", "10 µs"), ("1.50 ms", "1.5 ms"), ("100k", "100k"), ("1.00M", "1M")];
        for (number, text) in table {
            assert_eq!(short(number), text);
        }
    }
}
