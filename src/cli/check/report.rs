//! What a check came to, for people and for programs.
//!
//! Not for how any of it is found out.

use std::fmt;

use serde::{Serialize, Serializer};

use super::catalog::{Check, Group};

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

    fn line(&self) -> String {
        let about = self.about.as_ref().map(|about| format!(" ({about})")).unwrap_or_default();
        let mut line = format!("  {} {}{about}: {}", self.mark.sign(), self.check.id, self.reason);
        if matches!(self.mark, Mark::Warning | Mark::Failed) {
            if let Some(hint) = &self.hint {
                line = format!("{line}; {hint}");
            }
            line = format!("{line} [{}]", self.check.docs());
        }
        line
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
        writeln!(f, "asked {}", self.asked)?;
        if !self.rights_of.is_empty() {
            writeln!(f, "rights of {}", self.rights_of)?;
        }
        writeln!(f, "AWS asked {}", self.aws_asked)?;
        let mut group = None;
        for finding in &self.findings {
            if group != Some(finding.check.group) {
                group = Some(finding.check.group);
                writeln!(f, "{}", finding.check.group.title())?;
            }
            writeln!(f, "{}", finding.line())?;
        }
        let Self { good, warnings, failed, not_tried, .. } = self;
        writeln!(f, "{good} ✓, {warnings} !, {failed} ✗, {not_tried} not tried")
    }
}
