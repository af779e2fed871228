//! What a team wants of its pull requests beside what they set: how they look, and what the forge is to do with them.
//!
//! None of it tells one request from another. It counts when a request is opened, or taken over by a later promotion; what people
//! change in it afterwards stays.

use std::collections::BTreeMap;
use std::fmt;

use crate::form::named;
use kernel::template::{self, Malformed};

/// Longest title and longest body that are templates, in bytes.
const TITLE_BYTES_MAX: usize = 200;
const BODY_BYTES_MAX: usize = 4_000;

/// Labels, and reviewers, of one request. GitHub takes 15 reviewers and 100 labels.
const LABELS_MAX: usize = 10;
const REVIEWERS_MAX: usize = 10;

/// Longest label, in characters: GitHub's.
const LABEL_CHARS_MAX: usize = 50;

/// Longest name of a user or a team, in characters.
const NAME_CHARS_MAX: usize = 100;

/// Begin the title of a draft, on GitLab and Gitea.
const DRAFT_MARKS: [&str; 5] = ["draft:", "[draft]", "(draft)", "wip:", "[wip]"];

/// Begins the name of a team.
pub const TEAM: &str = "team:";

/// What is wanted of the requests into an environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RequestOptions {
    pub labels: Vec<String>,
    pub reviewers: Vec<Reviewer>,
    /// It is not to be merged before a person says that it is ready.
    pub draft: bool,
    /// The title, in place of ours.
    pub title: Option<Template>,
    /// A text before what we say of the promotion.
    pub body: Option<Template>,
    /// The forge merges it by itself, as soon as its own rules allow that.
    pub auto_merge: Option<MergeMethod>,
}

/// Why an option cannot be: its field, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidOption(pub String);

/// For the end of a function.
pub(super) fn refused<T>(why: impl Into<String>) -> Result<T, InvalidOption> {
    Err(InvalidOption(why.into()))
}

/// What of its options a request lacks, and why: [`LABELS`], [`AUTO_MERGE`], and reviewers as they are written.
pub type Lacks = BTreeMap<String, String>;

pub const LABELS: &str = "labels";
pub const AUTO_MERGE: &str = "autoMerge";

/// For people.
pub fn words(lacks: &Lacks) -> Option<String> {
    let all: Vec<String> = lacks.iter().map(|(what, why)| format!("{what}: {why}")).collect();
    (!all.is_empty()).then(|| format!("it lacks {}", all.join("; ")))
}

/// Who is asked for a review.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reviewer {
    User(String),
    /// By its short name in the organization.
    Team(String),
}

named! {
    /// How a forge merges.
    pub enum MergeMethod("a way to merge") {
        Merge = "Merge",
        Squash = "Squash",
        Rebase = "Rebase",
    }
}

named! {
    /// What a template may name, between `{{` and `}}`.
    pub enum Value("a value of a template") {
        Namespace = "namespace",
        Pipeline = "pipeline",
        Environment = "environment",
        Revision = "revision",
        /// The present revision of the environment, or `nothing`.
        From = "from",
    }
}

/// A text with places for values of a promotion.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Template(template::Template<Value>);

impl RequestOptions {
    /// Of what is to be done with a request once it is open, that which it lacks.
    #[must_use]
    pub fn lacking(&self, lacks: &Lacks) -> Self {
        let is_lacking = |what: &str| lacks.contains_key(what);
        Self {
            labels: if is_lacking(LABELS) { self.labels.clone() } else { Vec::new() },
            reviewers: self.reviewers.iter().filter(|one| is_lacking(&one.to_string())).cloned().collect(),
            auto_merge: self.auto_merge.filter(|_| is_lacking(AUTO_MERGE)),
            ..self.clone()
        }
    }

    /// Whether there are no more labels and reviewers than may be, and each can be one.
    ///
    /// # Errors
    /// Names the field, and why it cannot be.
    pub fn check(&self) -> Result<(), InvalidOption> {
        let is_label = |label: &String| {
            let plain = |one: char| !one.is_control() && one != ',';
            !label.trim().is_empty() && label.chars().count() <= LABEL_CHARS_MAX && label.chars().all(plain)
        };
        if let Some(label) = self.labels.iter().find(|label| !is_label(label)) {
            return refused(format!("labels: {label:?} is not 1 to {LABEL_CHARS_MAX} characters without a comma"));
        }
        if self.labels.len() > LABELS_MAX || self.reviewers.len() > REVIEWERS_MAX {
            return refused(format!("labels and reviewers: {LABELS_MAX} and {REVIEWERS_MAX} at most"));
        }
        if self.draft && self.auto_merge.is_some() {
            let why = "a draft is not merged before a person says that it is ready; choose one";
            return refused(format!("draft and autoMerge: {why}"));
        }
        Ok(())
    }
}

impl fmt::Display for Reviewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(name) => f.write_str(name),
            Self::Team(name) => write!(f, "{TEAM}{name}"),
        }
    }
}

impl Reviewer {
    /// Reads `ann` or `team:sre`.
    ///
    /// # Errors
    /// In words: it is no name.
    pub fn parse(text: &str) -> Result<Self, InvalidOption> {
        let (name, is_team) = text.strip_prefix(TEAM).map_or((text, false), |name| (name, true));
        let is_plain = |one: char| one.is_ascii_alphanumeric() || "._-".contains(one);
        if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(is_plain) {
            return refused(format!("reviewers: {text:?} is no name: write ann, or {TEAM}sre"));
        }
        Ok(if is_team { Self::Team(name.to_owned()) } else { Self::User(name.to_owned()) })
    }

    /// The users and the teams among these.
    pub fn apart(reviewers: &[Self]) -> (Vec<&str>, Vec<&str>) {
        let (mut users, mut teams) = (Vec::new(), Vec::new());
        for reviewer in reviewers {
            match reviewer {
                Self::User(name) => users.push(name.as_str()),
                Self::Team(name) => teams.push(name.as_str()),
            }
        }
        (users, teams)
    }
}

impl Template {
    /// Reads a title: one line.
    ///
    /// # Errors
    /// In words: what is wrong, and the values that there are.
    pub fn title(text: &str) -> Result<Self, InvalidOption> {
        let template = Self::parse("title", text, TITLE_BYTES_MAX)?;
        if text.chars().any(char::is_control) {
            return refused("title: it is one line");
        }
        let begins = text.trim_start().to_ascii_lowercase();
        if DRAFT_MARKS.iter().any(|mark| begins.starts_with(mark)) {
            return refused("title: it makes the request a draft on some forges; set draft instead");
        }
        Ok(template)
    }

    /// Reads a text of several lines.
    ///
    /// # Errors
    /// As [`Self::title`].
    pub fn body(text: &str) -> Result<Self, InvalidOption> {
        Self::parse("body", text, BODY_BYTES_MAX)
    }

    fn parse(field: &str, text: &str, bytes_max: usize) -> Result<Self, InvalidOption> {
        if text.len() > bytes_max || text.trim().is_empty() {
            return refused(format!("{field}: 1 to {bytes_max} bytes"));
        }
        template::Template::parse(text, Value::named).map(Self).map_err(|why| {
            let known = match &why {
                Malformed::Unknown(_) => format!("; there are {}", Value::ALL.map(Value::name).join(", ")),
                Malformed::Open => String::new(),
            };
            InvalidOption(format!("{field}: {why}{known}"))
        })
    }

    /// The text with these values.
    pub fn filled(&self, of: impl Fn(Value) -> String) -> String {
        self.0.filled(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Result<String, InvalidOption> {
        Template::body(text).map(|template| template.filled(|value| format!("<{}>", value.name())))
    }

    #[test]
    fn a_template_names_values_and_nothing_else() {
        assert_eq!(filled("{{ revision }} into {{environment}}!"), Ok("<revision> into <environment>!".to_owned()));
        assert_eq!(filled("{{from}}: {{namespace}}/{{pipeline}}"), Ok("<from>: <namespace>/<pipeline>".to_owned()));
        assert_eq!(filled("{ }} {x}"), Ok("{ }} {x}".to_owned()), "braces alone are text");
        for (text, words) in [
            ("", "1 to 4000 bytes"),
            ("{{ secret }}", "no value \"secret\"; there are namespace, pipeline, environment, revision, from"),
            ("{{ revision", "has no }}"),
            ("{{ revision | upper }}", "there is no value"),
            ("{{ {{ revision }} }}", "there is no value"),
        ] {
            let refused = filled(text).expect_err(text).to_string();
            assert!(refused.contains(words), "{refused}");
        }
        assert!(Template::title("two\nlines").is_err_and(|why| why.0.contains("one line")));
        assert!(Template::title("Draft: {{ revision }}").is_err_and(|why| why.0.contains("set draft")));
        assert!(Template::title(&"x".repeat(201)).is_err() && Template::body(&"x".repeat(201)).is_ok());
    }

    #[test]
    fn a_value_is_never_read_as_a_template() {
        let filled = Template::title("to {{ revision }}").map(|title| title.filled(|_| "{{ namespace }}".to_owned()));
        assert_eq!(filled, Ok("to {{ namespace }}".to_owned()));
    }

    #[test]
    fn labels_and_reviewers_are_few_and_plain() {
        let wants = |labels: &[&str], draft: bool| RequestOptions {
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            draft,
            auto_merge: Some(MergeMethod::Merge),
            ..RequestOptions::default()
        };
        for (options, words) in [
            (wants(&["a,b"], false), "comma"),
            (wants(&["a\nb"], false), "comma"),
            (wants(&[" "], false), "1 to 50"),
            (wants(&["a"; 11], false), "at most"),
            (wants(&["a"], true), "choose one"),
        ] {
            let refused = options.check().expect_err(words).to_string();
            assert!(refused.contains(words), "{refused}");
        }
        assert_eq!(wants(&["promotion: prod", "ü"], false).check(), Ok(()));
        for name in ["", "team:", "a b", "@ann", "ann,bob"] {
            assert!(Reviewer::parse(name).is_err(), "{name}");
        }
        let reviewers = ["ann", "team:sre"].map(|name| Reviewer::parse(name).unwrap());
        assert_eq!(Reviewer::apart(&reviewers), (vec!["ann"], vec!["sre"]));
    }
}
