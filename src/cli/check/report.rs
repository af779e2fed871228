//! What a check came to, for people and for programs.
//!
//! Not for how any of it is found out.

use std::fmt;

use serde::{Serialize, Serializer};

use super::catalog::{Check, Group};
use crate::looking::layout::{Tone, behind, line, toned};

/// Columns before the text of a finding.
const INDENT: usize = 4;

/// What a check came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    Good,
    /// It should be known, and stops nothing.
    Warning,
    /// It does not hold, and something does not work for it.
    Failed,
    /// It could not be made, because another one failed, or the caller may not ask.
    NotTried,
}

impl Mark {
    const fn tone(self) -> Tone {
        match self {
            Self::Good => Tone::Good,
            Self::Warning => Tone::Look,
            Self::Failed => Tone::Bad,
            Self::NotTried => Tone::Aside,
        }
    }

    const fn sign(self) -> &'static str {
        match self {
            Self::Good => "✓",
            Self::Warning => "!",
            Self::Failed => "✗",
            Self::NotTried => "–",
        }
    }
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub check: Check,
    /// Of what, where there are several: a namespace, a Redis, a host.
    pub about: Option<String>,
    /// What it came to.
    pub mark: Mark,
    pub reason: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// A finding as programs read it; the names of its fields do not change.
#[derive(Serialize)]
struct Row<'a> {
    check: &'a str,
    group: Group,
    about: Option<&'a str>,
    result: Mark,
    reason: &'a str,
    hint: Option<&'a str>,
    docs: String,
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { check, about, mark, reason, hint } = self;
        let row = Row {
            check: check.id,
            group: check.group,
            about: about.as_deref(),
            result: *mark,
            reason,
            hint: hint.as_deref(),
            docs: check.docs(),
        };
        row.serialize(serializer)
    }
}

impl Check {
    /// Where it is explained.
    pub fn docs(&self) -> String {
        format!("docs/check.md#{}", self.id)
    }

    fn found(self, mark: Mark, reason: impl ToString) -> Finding {
        Finding { check: self, about: None, mark, reason: reason.to_string(), hint: None }
    }

    pub(super) fn good(self, reason: impl ToString) -> Finding {
        self.found(Mark::Good, reason)
    }

    /// It should be known.
    pub(super) fn warning(self, reason: impl ToString) -> Finding {
        self.found(Mark::Warning, reason)
    }

    /// It does not hold.
    pub(super) fn failed(self, reason: impl ToString) -> Finding {
        self.found(Mark::Failed, reason)
    }

    /// It could not be made, because `other` failed.
    pub(super) fn after(self, other: Check) -> Finding {
        self.untried(format!("not tried: {}", other.id))
    }

    /// It could not be made, and why.
    pub(super) fn untried(self, reason: impl ToString) -> Finding {
        self.found(Mark::NotTried, reason)
    }
}

impl Finding {
    pub(super) fn of(self, about: impl ToString) -> Self {
        Self { about: Some(about.to_string()), ..self }
    }

    /// With what to do about it; an empty hint is none.
    pub(super) fn hint(self, hint: impl ToString) -> Self {
        Self { hint: Some(hint.to_string()).filter(|hint| !hint.is_empty()), ..self }
    }

    /// In a pipe it is one line; on a terminal the cure and its page have lines of their own.
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = self.about.as_ref().map(|about| format!(" ({about})")).unwrap_or_default();
        let reason = format!("{}{about}: {}", self.check.id, self.reason);
        let is_open = matches!(self.mark, Mark::Warning | Mark::Failed);
        let hint = self.hint.as_deref().filter(|_| is_open);
        let docs = if is_open { format!("[{}]", self.check.docs()) } else { String::new() };
        let sign = format!("  {} ", toned(f, self.mark.tone(), self.mark.sign()));
        if f.width().is_none() {
            let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
            return behind(f, (&sign, INDENT), Tone::Plain, &format!("{reason}{hint} {docs}"));
        }
        behind(f, (&sign, INDENT), Tone::Plain, &reason)?;
        let margin = " ".repeat(INDENT);
        let below = hint.map(|hint| (Tone::Plain, hint)).into_iter().chain(is_open.then_some((Tone::Aside, &*docs)));
        for (tone, text) in below {
            behind(f, (&margin, INDENT), tone, text)?;
        }
        Ok(())
    }
}

/// All findings, and as whom they were made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Only what has to hold before an installation was checked.
    pub pre: bool,
    /// As whom the API server was asked, and where.
    pub asked: String,
    /// The account whose rights in the cluster were reviewed.
    pub rights_of: String,
    /// The credentials for AWS, in words.
    pub aws_asked: String,
    pub good: usize,
    /// How many should be known.
    pub warnings: usize,
    /// How many do not hold.
    pub failed: usize,
    /// How many could not be made.
    pub not_tried: usize,
    /// In the order of the catalogue.
    pub findings: Vec<Finding>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    pub cluster: String,
    pub rights_of: String,
    pub aws: String,
}

impl Report {
    /// All of it in order.
    pub(super) fn new(pre: bool, asked: Asked, mut findings: Vec<Finding>) -> Self {
        findings.sort_by_cached_key(|finding| (finding.check.place(), finding.about.clone()));
        let count = |mark| findings.iter().filter(|finding| finding.mark == mark).count();
        let Asked { cluster, rights_of, aws } = asked;
        Self {
            pre,
            asked: cluster,
            rights_of,
            aws_asked: aws,
            good: count(Mark::Good),
            warnings: count(Mark::Warning),
            failed: count(Mark::Failed),
            not_tried: count(Mark::NotTried),
            findings,
        }
    }

    /// What is not good yet, in a few words.
    pub(super) fn open(&self) -> String {
        let open = self.findings.iter().filter(|finding| finding.mark == Mark::Failed);
        let names: Vec<String> = open
            .map(|finding| match &finding.about {
                Some(about) => format!("{} ({about})", finding.check.id),
                None => finding.check.id.to_owned(),
            })
            .collect();
        names.join(", ")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(f, Tone::Plain, &format!("asked {}", self.asked))?;
        if !self.rights_of.is_empty() {
            line(f, Tone::Plain, &format!("rights of {}", self.rights_of))?;
        }
        line(f, Tone::Plain, &format!("AWS asked {}", self.aws_asked))?;
        let mut group = None;
        for finding in &self.findings {
            if group != Some(finding.check.group) {
                group = Some(finding.check.group);
                line(f, Tone::Title, finding.check.group.title())?;
            }
            finding.write(f)?;
        }
        let Self { good, warnings, failed, not_tried, .. } = self;
        let sum = format!("{good} ✓, {warnings} !, {failed} ✗, {not_tried} not tried");
        let tone = if *failed > 0 { Tone::Bad } else { Tone::Good };
        writeln!(f, "{}", toned(f, tone, &sum).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::cli::check::catalog::{API_SERVER, CONFIGURATION, REDIS_AUTH, REDIS_ROLE};
    use crate::looking::layout::Screen;

    fn report() -> Report {
        let findings = vec![
            API_SERVER.good("https://10.96.0.1"),
            CONFIGURATION.warning("a key is not known"),
            REDIS_AUTH
                .failed("failed to reach it: the server wants a password\u{1b}[2J, and says so in many words that nobody reads")
                .of("redis:6379")
                .hint("put both into the URL, redis://user:password@host"),
            REDIS_ROLE.after(REDIS_AUTH).of("redis:6379").hint("no cure is shown for what was not tried"),
        ];
        let asked =
            Asked { cluster: "https://10.96.0.1".to_owned(), rights_of: "ada".to_owned(), aws: "here".to_owned() };
        Report::new(false, asked, findings)
    }

    #[test]
    fn in_a_pipe_a_finding_is_one_line_and_on_a_terminal_its_cure_stands_below_it() {
        expect![[r#"
            asked https://10.96.0.1
            rights of ada
            AWS asked here
            configuration
              ! configuration: a key is not known [docs/check.md#configuration]
            cluster
              ✓ api-server: https://10.96.0.1
            redis
              ✗ redis-auth (redis:6379): failed to reach it: the server wants a password\u{1b}[2J, and says so in many words that nobody reads; put both into the URL, redis://user:password@host [docs/check.md#redis-auth]
              – redis-role (redis:6379): not tried: redis-auth
            1 ✓, 1 !, 1 ✗, 1 not tried
        "#]].assert_eq(&report().to_string());
        let screen = Screen { columns: Some(60), is_coloured: true, now_ms: None };
        expect![[r#"
            asked https://10.96.0.1
            rights of ada
            AWS asked here
            ␛[1mconfiguration␛[0m
              ␛[33m!␛[0m configuration: a key is not known
                ␛[2m[docs/check.md#configuration]␛[0m
            ␛[1mcluster␛[0m
              ␛[32m✓␛[0m api-server: https://10.96.0.1
            ␛[1mredis␛[0m
              ␛[31m✗␛[0m redis-auth (redis:6379): failed to reach it: the server
                  wants a password\u{1b}[2J, and says so in many words
                  that nobody reads
                put both into the URL, redis://user:password@host
                ␛[2m[docs/check.md#redis-auth]␛[0m
              ␛[2m–␛[0m redis-role (redis:6379): not tried: redis-auth
            ␛[31m1 ✓, 1 !, 1 ✗, 1 not tried␛[0m
        "#]]
        .assert_eq(&screen.draw(&report()).replace('\u{1b}', "␛"));
    }
}
