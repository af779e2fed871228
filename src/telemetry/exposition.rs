//! The two text forms in which metrics are read, and which of them a reader wants.
//!
//! Prometheus names both in `Accept` and takes OpenMetrics first; a person with curl, and readers that know nothing else, get the
//! older one, which all of them read. Not for what is in it.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Prometheus text, version 0.0.4: <https://prometheus.io/docs/instrumenting/exposition_formats/>.
    Prometheus,
    /// OpenMetrics 1.0: <https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md>.
    OpenMetrics,
}

/// Parts of an `Accept` that are looked at. Prometheus sends six.
const PARTS_MAX: usize = 32;

impl Form {
    /// The value of `Content-Type`.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// The form that this value of `Accept` prefers. OpenMetrics has to be named, in version 1.0.0 or in none; where both are
    /// liked the same it is taken.
    pub fn wanted(accept: &str) -> Self {
        let (mut open, mut plain) = (0, 0);
        for part in accept.split(',').take(PARTS_MAX) {
            let mut words = part.split(';').map(str::trim);
            let kind = words.next().unwrap_or_default().to_ascii_lowercase();
            let parameters: Vec<(&str, &str)> = words.filter_map(|word| word.split_once('=')).collect();
            let parameter =
                |name: &str| parameters.iter().find(|(found, _)| found.trim() == name).map(|(_, value)| value.trim());
            let weight = parameter("q").map_or(1_000, thousandths);
            match kind.as_str() {
                "application/openmetrics-text" if matches!(parameter("version"), None | Some("1.0.0")) => {
                    open = open.max(weight);
                }
                "text/plain" => plain = plain.max(weight),
                _ => {}
            }
        }
        if open > 0 && open >= plain { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// These metrics, which are in OpenMetrics but for its last line, in this form.
    pub(super) fn of(self, metrics: &str) -> String {
        match self {
            Self::OpenMetrics => format!("{metrics}# EOF\n"),
            Self::Prometheus => prometheus(metrics),
        }
    }
}

/// A weight between 0 and 1 with three digits at most (RFC 9110, 12.4.2), times 1,000; what is none counts as 0.
fn thousandths(weight: &str) -> u32 {
    let (whole, part) = weight.split_once('.').unwrap_or((weight, ""));
    let part = format!("{part:0<3}");
    match (whole, part.parse::<u32>()) {
        ("1", Ok(_)) => 1_000,
        ("0", Ok(part)) if part < 1_000 => part,
        _ => 0,
    }
}

/// The older form names a counter and an info as their samples are named, has no units, and no end.
fn prometheus(metrics: &str) -> String {
    let mut text = String::with_capacity(metrics.len());
    let mut help = None;
    for line in metrics.lines() {
        if let Some(words) = line.strip_prefix("# HELP ") {
            help = words.split_once(' ');
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|words| words.split_once(' ')) {
            let (ending, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                kind => ("", kind),
            };
            if let Some((_, words)) = help.take() {
                text.push_str(&format!("# HELP {name}{ending} {words}\n"));
            }
            text.push_str(&format!("# TYPE {name}{ending} {kind}\n"));
        } else if !line.starts_with('#') {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each of these sends: from their sources and from the wire.
    #[test]
    fn each_reader_gets_what_it_can_read() {
        let readers = [
            // curl, a browser, nothing at all.
            ("*/*", Form::Prometheus),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Form::Prometheus),
            ("", Form::Prometheus),
            // Prometheus 2.42 and 3: scrape/scrape.go.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                 text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                Form::OpenMetrics,
            ),
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                 application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
                 text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                Form::OpenMetrics,
            ),
            // A Prometheus configured to scrape text first; one that knows only the draft of OpenMetrics.
            ("text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5", Form::Prometheus),
            ("application/openmetrics-text; version=0.0.1, text/plain; q=0.2", Form::Prometheus),
            ("application/openmetrics-text;q=0", Form::Prometheus),
            ("application/openmetrics-text;q=rather", Form::Prometheus),
            ("Application/OpenMetrics-Text", Form::OpenMetrics),
        ];
        for (accept, form) in readers {
            assert_eq!(Form::wanted(accept), form, "{accept}");
        }
    }

    #[test]
    fn the_older_form_has_names_that_its_samples_have() {
        let metrics = "# HELP a_runs Runs.\n# TYPE a_runs counter\n# UNIT a_runs runs\na_runs_total{kind=\"x\"} 1\n\
                       # HELP a_build What runs.\n# TYPE a_build info\na_build_info{version=\"1\"} 1\n\
                       # HELP a_now Now.\n# TYPE a_now gauge\na_now 3\n";
        let expected = "# HELP a_runs_total Runs.\n# TYPE a_runs_total counter\na_runs_total{kind=\"x\"} 1\n\
                        # HELP a_build_info What runs.\n# TYPE a_build_info gauge\na_build_info{version=\"1\"} 1\n\
                        # HELP a_now Now.\n# TYPE a_now gauge\na_now 3\n";
        assert_eq!(Form::Prometheus.of(metrics), expected);
        assert_eq!(Form::OpenMetrics.of(metrics), format!("{metrics}# EOF\n"));
    }
}
