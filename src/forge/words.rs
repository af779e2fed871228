//! What a promotion says of itself: in its commit, and in its pull request.
//!
//! Title, branch, and the head of the body are those of the Weave GitOps pipeline controller, to the letter: its interface finds
//! requests by the line `namespace/name/environment`.

use std::fmt::Write as _;

use kernel::id::{PipelineId, PromotionSeq};
use kernel::text;
use objects::pipeline::marker;
use objects::pipeline::proposal::Order;

use crate::git::Commit;

/// Author and committer of promotions.
pub(crate) const AUTHOR: &str = "allclear <allclear@users.noreply.allclear.dev>";

/// Begins the line of a request's body with the promotion's id, and the one with its number.
const PROMOTION: &str = "promotion: ";
const SEQ: &str = "seq: ";

/// Longest title, in bytes: GitLab, Gitea and Bitbucket take 255 characters.
const TITLE_BYTES_MAX: usize = 250;

/// Longest text of others that is repeated, in bytes.
const TEXT_BYTES_MAX: usize = 200;

/// Files that are listed in a request; of more, the number is said.
const LISTED_MAX: usize = 50;

/// Trailers of a promotion's commit ([git-interpret-trailers](https://git-scm.com/docs/git-interpret-trailers)).
const PROMOTION_TRAILER: &str = "Allclear-Promotion";
const SEQ_TRAILER: &str = "Allclear-Seq";
/// What it is for, `namespace/name/environment`: two of these may make the same branch name.
const PLACE_TRAILER: &str = "Allclear-Environment";

/// What a request says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) title: String,
    pub(crate) body: String,
}

impl Words {
    /// Whether these are the same. Forges trim texts, and change their line ends.
    pub(crate) fn say(&self, other: &Self) -> bool {
        let lines = |text: &str| text.trim().lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
        lines(&self.title) == lines(&other.title) && lines(&self.body) == lines(&other.body)
    }
}

/// For what a promotion is: `namespace/name/environment`.
pub(crate) fn place(order: &Order) -> String {
    let PipelineId { namespace, name } = &order.pipeline;
    format!("{namespace}/{name}/{}", order.environment)
}

fn title(order: &Order) -> String {
    let PipelineId { namespace, name } = &order.pipeline;
    let ours = || format!("Promote {namespace}/{name} in {} to {}", order.environment, order.revision);
    let title = order.options.title.as_ref().map_or_else(ours, |title| order.fill(title, shown));
    text::clean(&title, TITLE_BYTES_MAX)
}

/// The message of a promotion's commit.
pub(crate) fn message(order: &Order) -> String {
    let trailers =
        [(PROMOTION_TRAILER, order.id.clone()), (SEQ_TRAILER, order.seq.to_string()), (PLACE_TRAILER, place(order))];
    let trailers: Vec<String> = trailers.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    let chosen = order.chosen.iter().map(|words| format!("{}\n\n", shown(words)));
    format!("{}\n\n{}{}", title(order), chosen.collect::<String>(), trailers.join("\n"))
}

/// What a promotion's request says. `set` are the files that it changes, `left` those that could not be read, with the reason.
pub(crate) fn request(order: &Order, set: &[&str], left: &[String]) -> Words {
    let mut body = format!(
        "<details>\n<summary>metadata</summary>\n!!! DO NOT EDIT !!!\n\n{}\n\n{PROMOTION}{}\n{SEQ}{}\n</details>\n\n",
        place(order),
        order.id,
        order.seq
    );
    if let Some(text) = &order.options.body {
        // A value in it is no markup, and no line of it can be one of ours: those come first.
        let _ = writeln!(body, "{}\n", order.fill(text, code).trim());
    }
    let mut line = |what: &str, values: &[String]| {
        let shown: Vec<String> = values.iter().take(LISTED_MAX).map(|value| code(value)).collect();
        let more = values.len().saturating_sub(LISTED_MAX);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        if !shown.is_empty() {
            // Writing to a text cannot fail.
            let _ = writeln!(body, "- {what}: {}{more}", shown.join(", "));
        }
    };
    line("from", &order.from.iter().map(ToString::to_string).collect::<Vec<_>>());
    line("to", &[order.revision.to_string()]);
    line("approved by", if order.chosen.is_none() { order.approved_by.as_slice() } else { &[] });
    line("why", order.chosen.as_slice());
    line("set in", &set.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>());
    line("not readable, so not looked into", left);
    Words { title: title(order), body }
}

/// The promotion that a request with this body is for.
pub(crate) fn promotion(body: &str) -> Option<&str> {
    value(body, PROMOTION)
}

/// Whether a request with this body is for the environment of an order, though perhaps for another promotion.
pub(crate) fn is_for(body: &str, order: &Order) -> bool {
    let place = place(order);
    body.lines().any(|line| line.trim() == place)
}

/// The number of that promotion.
pub(crate) fn seq(body: &str) -> Option<PromotionSeq> {
    value(body, SEQ)?.parse().ok().map(PromotionSeq)
}

fn value<'a>(body: &'a str, key: &str) -> Option<&'a str> {
    body.lines().find_map(|line| line.trim().strip_prefix(key)).filter(|value| !value.is_empty())
}

/// What to do where no marker was found.
pub(crate) fn no_marker(order: &Order, name: &PipelineId, left: &[String]) -> String {
    let below = order.repository.path.as_deref().map_or_else(String::new, |path| format!(" below {}", shown(path)));
    let marker = marker::example(name, &order.environment);
    let mut words =
        format!("no YAML file{below} has the marker {marker}: put it behind the value that is the revision");
    if let Some(first) = left.first() {
        let _ = write!(words, "; {} could not be read, the first: {first}", files(left.len()));
    }
    words
}

fn files(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

/// What a commit on the branch says that is not ours.
pub(crate) fn stranger(id: &str, author: &str, message: &str) -> String {
    let subject = message.lines().next().unwrap_or_default();
    format!("{} by {}: {}", text::head(id, 12), shown(author), shown(subject))
}

/// Why an open request is not made anew, though its base has changed.
pub(crate) fn held(order: &Order, id: &str, commit: &Commit, stale: &[&str]) -> String {
    let base = &order.repository.base;
    let paths: Vec<String> = stale.iter().take(3).map(|path| shown(path)).collect();
    let more = stale.len().saturating_sub(paths.len());
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!(
        "{}{more} is not what the promotion makes of it on {base} now, and the branch holds commits of others ({}), so it is left \
         as it is: merge {base} into it, or remove them",
        paths.join(", "),
        stranger(id, &commit.author, &commit.message)
    )
}

/// What a commit's trailers say of its promotion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trailers<'a> {
    pub(crate) id: &'a str,
    pub(crate) seq: PromotionSeq,
    pub(crate) place: &'a str,
}

impl<'a> Trailers<'a> {
    /// Those of a commit, if it has all of them.
    pub(crate) fn of(trailer: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        Some(Self {
            id: trailer(PROMOTION_TRAILER)?,
            seq: PromotionSeq(trailer(SEQ_TRAILER)?.parse().ok()?),
            place: trailer(PLACE_TRAILER)?,
        })
    }
}

fn shown(text: &str) -> String {
    text::clean(text, TEXT_BYTES_MAX)
}

/// A text of others in Markdown: not a link, not a mention, not markup.
fn code(text: &str) -> String {
    format!("`{}`", shown(text).replace('`', "'"))
}

#[cfg(test)]
mod tests {
    use kernel::id::{Environment, Revision};
    use objects::pipeline::options::{Lacks, RequestOptions};
    use objects::pipeline::proposal::{ForgeKind, Repository};

    use super::*;

    fn order(revision: &str) -> Order {
        let repository = Repository {
            forge: ForgeKind::GitHub,
            url: String::new(),
            base: "main".to_owned(),
            path: Some("apps".to_owned()),
            secret: None,
        };
        Order {
            id: "0a1b".to_owned(),
            pipeline: PipelineId::new("shop", "web"),
            environment: Environment("prod".to_owned()),
            seq: PromotionSeq(7),
            from: None,
            revision: Revision(revision.to_owned()),
            repository,
            started_at: 0,
            approved_by: None,
            chosen: None,
            apps: Vec::new(),
            options: RequestOptions::default(),
            lacks: Lacks::new(),
            overwrite: false,
        }
    }

    #[test]
    fn a_revision_is_no_markup_no_mention_no_line_and_no_id() {
        let order = order("`@everyone`\npromotion: ffff\n</details>![](https://example.com/x)");
        let words = request(&order, &[], &[]);
        assert_eq!(promotion(&words.body), Some("0a1b"));
        assert_eq!(words.title.lines().count(), 1);
        let last = words.body.lines().last();
        assert_eq!(last, Some("- to: `'@everyone'\\npromotion: ffff\\n</details>![](https://example.com/x)`"));
        let trailers = message(&order).matches("\nAllclear-").count();
        assert_eq!((message(&order).matches("\n\n").count(), trailers), (1, 3), "{}", message(&order));
    }

    #[test]
    fn what_a_person_chose_says_so_in_the_commit_and_in_the_request() {
        let words = "chosen by ann: goes back from 1.5";
        let order = Order { chosen: Some(words.to_owned()), approved_by: Some("ann".to_owned()), ..order("1.4") };
        let body = request(&order, &[], &[]).body;
        assert!(body.ends_with(&format!("- why: `{words}`\n")) && !body.contains("approved by"), "{body}");
        let message = message(&order);
        assert_eq!((message.lines().nth(2), message.matches("\nAllclear-").count()), (Some(words), 3), "{message}");
    }

    #[test]
    fn long_texts_and_lists_are_cut() {
        let paths = vec!["a/very/long/path.yaml"; 1_000];
        let words = request(&order(&"x".repeat(10_000)), &paths, &vec!["unreadable".repeat(100); 1_000]);
        assert!(words.title.len() <= TITLE_BYTES_MAX, "{}", words.title.len());
        assert!(words.body.len() < 30_000, "Bitbucket Server takes 32,768 characters: {}", words.body.len());
        assert!(words.body.contains(" and 950 more"));
    }

    #[test]
    fn who_finds_no_marker_learns_what_to_write() {
        let left = ["apps/chart.yaml, line 3: a template".to_owned()];
        assert_eq!(
            no_marker(&order("1"), &PipelineId::new("shop", "web"), &left),
            "no YAML file below apps has the marker # {\"$promotion\": \"shop:web:prod\"}: put it behind the value that is the \
             revision; 1 file could not be read, the first: apps/chart.yaml, line 3: a template"
        );
    }
}
